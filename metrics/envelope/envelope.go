// Package envelope takes a line out of what collects the output of processes: docker stores each
// as JSON, Kubernetes behind a time and a stream, journald and the exports of CloudWatch, Loki and
// Google as JSON. The line inside is what was printed.
package envelope

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/export"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// messageKeys are what the member of an envelope is called that holds the line.
var messageKeys = map[string]bool{"log": true, "message": true, "MESSAGE": true, "@message": true, "msg": true, "line": true, "text": true, "textPayload": true}

// Unwrap reads the line in an envelope; whole is false where the line goes on in
// the next one. ok is false for a line that is no envelope.
func Unwrap(line string) (inside string, whole, ok bool) {
	if len(line) > 24 && line[0] == '{' {
		return unwrapJSON(strings.TrimRight(line, " \r"))
	}
	if len(line) > 30 && lexis.IsDigit(line[0]) && line[4] == '-' && line[10] == 'T' {
		return export.CRI(line)
	}
	return "", false, false
}

// unwrapJSON takes an object for an envelope when one of its members is a line
// and no other is a number that could be one of the training's.
func unwrapJSON(line string) (inside string, whole, ok bool) {
	if message, ok := export.Bytes(line); ok {
		return message, true, true
	}
	named := false
	for key := range messageKeys {
		named = named || strings.Contains(line, `"`+key+`"`)
	}
	if !named {
		return "", false, false
	}
	pairs, parsed := braces.Read(line, nil)
	if !parsed {
		return "", false, false
	}
	members := 0
	for _, p := range pairs {
		members++
		if messageKeys[p.Key] && p.Text != "" && !ok {
			inside, ok = p.Text, true
			continue
		}
		if p.Text == "" && !strings.Contains(p.Key, "/") && sense.Of(strings.ToLower(lexis.Snake(strings.Trim(p.Key, "_@")))) != sense.Never && !isClock(p.Key) {
			return "", false, false
		}
	}
	if !ok || members < 2 {
		return "", false, false
	}
	inside = export.Unescape(inside)
	whole = true
	if rest, of := strings.CutSuffix(inside, "\n"); of {
		inside = rest
	} else if strings.Contains(line, `"stream":`) { // docker cuts long lines
		whole = false
	}
	return inside, whole, true
}

// isClock reports whether a member of an envelope says when a line was printed.
func isClock(key string) bool {
	key = strings.ToLower(key)
	return strings.Contains(key, "time") || strings.Contains(key, "priority") || strings.HasPrefix(key, "_") || strings.HasPrefix(key, "syslog")
}
