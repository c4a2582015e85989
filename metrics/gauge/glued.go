package gauge

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Glued is where the first line of the next training begins behind the last frame of a bar that did not end its line,
// "39552/40000 [====>.] - ETA: 0sEpoch 1/3"; the end of the text where there is none.
func Glued(text string) int {
	const epoch = "Epoch "
	at := strings.LastIndex(text, epoch)
	if at < 1 || !lexis.IsDigit(text[at-1]) && !lexis.IsLetter(text[at-1]) {
		return len(text)
	}
	if c, next, ok := lexis.OfTotal(text, at+len(epoch)); !ok || c.Total == 0 || next != len(text) {
		return len(text)
	}
	return at
}

// newest is what the last of several frames says that stand behind each other where the backspaces between them were
// dropped: " - ETA: 0s - loss: 0.9 - acc: 0.7 - 10s - loss: 0.8 - acc: 0.71".
func newest(body string) string {
	end := strings.LastIndex(body, "s - ")
	if end < 0 || !strings.HasPrefix(body, " - ETA: ") {
		return body
	}
	const dash = " - "
	start := len(strings.TrimRight(body[:end], "0123456789")) - len(dash)
	if start > 0 && strings.HasPrefix(body[start:], dash) && start+len(dash) < end {
		return body[start:]
	}
	return body
}
