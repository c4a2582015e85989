// Package gauge reads one frame of a progress bar: how far it is, of how much, and what it says
// beside that.
package gauge

import (
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Bar is one frame of a progress bar.
type Bar struct {
	Title    string
	N, Total float64
	Body     string // what it says beside its progress
	Rest     string // what stands on the line behind it
	Whole    bool   // it shows averages over its length: only the last frame counts
	Share    bool   // it counts in percent alone, as one of a download does
	Begins   bool   // it is drawn for the first time, and what stands before it is no title of its own
	Titled   bool   // its title tells of values, and is Title without their numbers
}

// Read reads a frame of tqdm, Keras, rich, Ultralytics and fastprogress.
func Read(text string) (Bar, bool) {
	if i := strings.Index(text, "%|"); i > 0 {
		return tqdmBar(text, i)
	}
	if b, ok := percentBar(text); ok {
		return b, true
	}
	if i := strings.IndexByte(text, '|'); i > 0 {
		if b, ok := walledBar(text, i); ok {
			return b, true
		}
	}
	if i := strings.Index(text, "━"); i >= 0 || strings.Contains(text, "╸") {
		return linedBar(text, i)
	}
	if i := strings.Index(text, "it/s"); i > 0 || strings.Contains(text, "s/it") || strings.Contains(text, "it [") {
		if b, ok := endlessBar(text); ok {
			return b, true
		}
	}
	return kerasBar(text)
}

// tqdmBar reads "title:  22%|██  | 9/40 [00:00<00:00, 43.50it/s, loss=1.48]",
// where percent is where "%|" stands, and fastprogress's "|██--| 2.50% [1/40 …]".
func tqdmBar(text string, percent int) (b Bar, ok bool) {
	start := percent
	for start > 0 && (lexis.IsDigit(text[start-1]) || text[start-1] == '.') {
		start--
	}
	b.Title = strings.TrimRight(text[:start], " :\t")
	close := strings.IndexByte(text[percent+2:], '|')
	after := ""
	if close < 0 { // its picture ends where the text begins
		after = strings.TrimLeftFunc(text[percent+2:], func(c rune) bool { return c == ' ' || c > 0x7f })
	} else {
		after = text[percent+2+close+1:]
	}
	if b.counted(after) {
		b.Begins = b.N == 0 && b.Title != "" && strings.HasPrefix(b.Body, "00:00<?") && text[len(strings.TrimRight(text[:start], " \t"))-1] != ':'
		return b, true
	}
	// "Epoch [1/3]: [1/40]  2%|█  |, loss=1.71 [00:00<?]" counts before its picture.
	open := strings.LastIndexByte(b.Title, '[')
	if open < 0 || b.Title[len(b.Title)-1] != ']' {
		return b, false
	}
	c, next, ok := lexis.OfTotal(b.Title, open+1)
	if !ok || c.Total == 0 || next != len(b.Title)-1 {
		return b, false
	}
	b.N, b.Total, b.Title = c.N, c.Total, strings.TrimRight(b.Title[:open], " :")
	b.Body, _, _ = strings.Cut(after, " [")
	return b, true
}

// counted reads what follows the picture of a bar: "9/40 [00:00<00:00, 4it/s, loss=1]".
func (b *Bar) counted(text string) bool {
	c, next, ok := lexis.OfTotal(text, lexis.SkipBlanks(text, 0))
	if !ok {
		return false
	}
	b.N, b.Total = c.N, c.Total
	text = text[next:]
	open := strings.IndexByte(text, '[')
	if open < 0 {
		b.Body = text
		return true
	}
	close := closing(text, open)
	b.Body, b.Rest = text[open+1:close], text[min(close+1, len(text)):]
	if strings.ContainsAny(text[:open], "=:") { // "16/20 loss=1.25 [00:18<00:04]"
		b.Body = text[:open] + ", " + b.Body
	}
	return true
}

// closing is where the bracket closes that opens at i.
func closing(text string, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// linedBar reads rich's "Epoch 0/2 ━━━╺━━ 5/40 0:00:00 • 0:00:01 148.78it/s loss: 1.4",
// Keras 3's "60/60 ━━━━ 0s 7ms/step - loss: 1.3" and Ultralytics's "640: 100% ━━ 8/8 1.2it/s 9s".
func linedBar(text string, i int) (b Bar, ok bool) {
	if i < 0 {
		i = strings.Index(text, "╸")
	}
	before := text[:i]
	after := strings.TrimLeft(text[i:], "━╸╺─ ")
	if c, next, ok := lexis.OfTotal(before, lexis.SkipBlanks(before, 0)); ok && c.Total > 0 && strings.TrimSpace(before[next:]) == "" {
		return Bar{N: c.N, Total: c.Total, Body: after, Whole: true}, true
	}
	b.Title = strings.TrimRight(before, " ")
	if end := len(b.Title); end > 0 && b.Title[end-1] == '%' {
		b.Title = strings.TrimRight(strings.TrimRight(b.Title[:end-1], "0123456789."), " :")
	}
	c, next, ok := lexis.OfTotal(after, 0)
	if !ok {
		return b, false
	}
	b.N, b.Total, b.Body = c.N, c.Total, after[next:]
	return b, true
}

// endlessBar reads a bar that knows no total: "192it [00:09, 21.32it/s, loss=1]",
// and Ultralytics's ": 100% 8/8 [00:09<00:00,  1.17s/it]".
func endlessBar(text string) (b Bar, ok bool) {
	open := strings.Index(text, " [")
	for open > 0 && !(open+3 < len(text) && lexis.IsDigit(text[open+2]) && strings.Contains(text[open:min(len(text), open+12)], ":")) {
		next := strings.Index(text[open+1:], " [")
		if next < 0 {
			return b, false
		}
		open += 1 + next
	}
	if open <= 0 {
		return b, false
	}
	count := text[:open]
	cut := strings.LastIndexByte(count, ' ') + 1
	c, next, ok := lexis.OfTotal(count, cut)
	unit := ""
	if ok {
		unit = count[next:]
	}
	if !ok || unit != "it" && (unit != "" || c.Total == 0) {
		return b, false
	}
	b.Title = strings.TrimRight(count[:cut], " ")
	if strings.HasSuffix(b.Title, "%") {
		b.Title = strings.TrimRight(strings.TrimRight(b.Title, "0123456789.%"), " :")
	}
	b.Title = strings.TrimRight(b.Title, " :")
	close := closing(text, open+1)
	b.N, b.Total, b.Body, b.Rest = c.N, c.Total, text[open+2:close], text[min(close+1, len(text)):]
	return b, true
}

// kerasBar reads " 9/60 [===>....] - ETA: 0s - loss: 1.67", "60/60 - 0s - loss: 1.28"
// and "9/Unknown - 0s - loss: 1.67".
func kerasBar(text string) (b Bar, ok bool) {
	at := lexis.SkipBlanks(text, 0)
	if at < len(text) && text[at] == '[' {
		return innerBar(text[at:])
	}
	if at >= len(text) || !lexis.IsDigit(text[at]) {
		return b, false
	}
	c, next, ok := lexis.OfTotal(text, at)
	if !ok || next >= len(text) {
		return b, false
	}
	rest := text[next:]
	if body, unknown := strings.CutPrefix(rest, "/Unknown "); unknown { // how long it is shows when the first epoch is over
		return Bar{N: c.N, Total: math.Inf(1), Body: body, Whole: true}, true
	}
	if c.Total == 0 {
		return b, false
	}
	switch {
	case strings.HasPrefix(rest, " - ") && !strings.HasPrefix(rest, " - {") && rest[len(rest)-1] != '%': // "3/12 - 25%" says how far the run is
	case len(rest) > 3 && rest[1] == '[' && strings.IndexByte("=.>", rest[2]) >= 0:
		if close := strings.IndexByte(rest, ']'); close > 0 {
			rest = rest[close+1:]
		}
	default:
		return b, false
	}
	return Bar{N: c.N, Total: c.Total, Body: newest(rest), Whole: true}, true
}

// innerBar reads "[=== 2/40 ==>.......]  Loss: 1.67 | Acc: 41.0%", which counts inside its picture.
func innerBar(text string) (b Bar, ok bool) {
	inside, body, ok := strings.Cut(text[1:], "]")
	count := strings.Trim(inside, "=->.#")
	if !ok || len(count) == len(inside) || len(count) < len(" 1/2 ") || count[0] != ' ' || count[len(count)-1] != ' ' {
		return b, false
	}
	c, next, ok := lexis.OfTotal(count, lexis.SkipBlanks(count, 0))
	if !ok || c.Total == 0 || strings.TrimSpace(count[next:]) != "" {
		return b, false
	}
	return Bar{N: c.N, Total: c.Total, Body: body, Whole: true}, true
}

// percentBar reads "Training:  25% |█████     | Accuracy: 0.71", which counts nothing but percent.
func percentBar(text string) (b Bar, ok bool) {
	i := strings.Index(text, "% |")
	if i <= 0 {
		return b, false
	}
	end := strings.IndexByte(text[i+len("% |"):], '|')
	picture := text[i+len("% |"):][:max(end, 0)]
	if end <= 0 || !isPicture(picture) {
		return b, false
	}
	start := len(strings.TrimRight(text[:i], "0123456789."))
	if strings.IndexByte(text[:start], '/') >= 0 { // it counts something else, too
		return b, false
	}
	percent, ok := lexis.Number(text, start)
	b = Bar{Title: strings.TrimRight(text[:start], " :"), N: percent.Value, Total: 100, Body: text[i+len("% |")+end+1:], Whole: true, Share: true}
	return b, ok && percent.Next == i && percent.Value <= b.Total
}

// isPicture reports whether text is nothing but what bars are drawn with.
func isPicture(text string) bool {
	return text != "" && strings.TrimLeftFunc(text, func(c rune) bool {
		return c == ' ' || c == '=' || c == '#' || c == '>' || c >= 0x2588 && c <= 0x259f
	}) == ""
}

// walledBar reads bars whose picture stands between two walls, the first at i, and that count before it,
// "Epoch 1/2 4/40 |###    | loss: 1.4" and "10% (4 of 40) |##   |", or behind it and what spins there,
// "Epoch 1/2 |███    | ▂▄▆ 4/40 [10%] in 0s (~1s, 5.1/s) loss=1.4".
func walledBar(text string, i int) (b Bar, ok bool) {
	end := strings.IndexByte(text[i+1:], '|') + i + 1
	if end <= i+1 || !isPicture(text[i+1:end]) {
		return b, false
	}
	before, after := strings.TrimRight(text[:i], " "), text[end+1:]
	if b, ok := spunBar(before, after); ok {
		return b, true
	}
	count := strings.TrimSuffix(before, ")")
	if count == "" || !lexis.IsDigit(count[len(count)-1]) {
		return b, false
	}
	at := strings.LastIndexByte(count, '(') + 1
	if at == 0 {
		at = strings.LastIndexByte(count, ' ') + 1
	}
	c, next, ok := lexis.OfTotal(count, at)
	title := strings.TrimRight(count[:at], " (")
	if !ok || c.Total == 0 || next != len(count) || (at > 0 && count[at-1] == '(') != (len(count) < len(before)) || len(title) >= 5 && strings.EqualFold(title[len(title)-5:], "epoch") {
		return b, false
	}
	if strings.HasSuffix(title, "%") {
		title = strings.TrimRight(title, "0123456789.% ")
	}
	return Bar{Title: title, N: c.N, Total: c.Total, Body: after}, true
}

// spunBar reads what stands before and behind the picture of a bar that counts behind what spins.
func spunBar(before, after string) (b Bar, ok bool) {
	after = strings.TrimLeftFunc(after, func(c rune) bool { return c == ' ' || c > 0x7f })
	c, next, ok := lexis.OfTotal(after, 0)
	if !ok || c.Total == 0 || !strings.HasPrefix(after[next:], " [") {
		return b, false
	}
	share, body, ok := strings.Cut(after[next+len(" ["):], "%] in ")
	if _, whole := lexis.Number(share, 0); !ok || !whole {
		return b, false
	}
	_, body, _ = strings.Cut(body, ")")
	return Bar{Title: before, N: c.N, Total: c.Total, Body: body}, true
}

// Form is the title of a bar without its numbers, of one whose title tells of values: they change
// from frame to frame.
func Form(title string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c == '.' || c == '-' || c == '+' {
			return -1
		}
		return c
	}, title)
}

// Uncounted is a title without the number at its end, where that counts as the bar does: "GEN 3" at
// 3/16 or 4/16.
func Uncounted(title string, n float64) string {
	start := len(strings.TrimRight(title, "0123456789"))
	if f, ok := lexis.Number(title, start); ok && f.Next == len(title) && math.Abs(f.Value-n) <= 1 {
		return strings.TrimRight(title[:start], " ")
	}
	return title
}
