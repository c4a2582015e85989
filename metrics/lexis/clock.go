package lexis

import "strings"

// stages are parts of a step by which its clocks are called, when nothing else is in the name.
var stages = words("forward backward fwd bwd load loading fetch")

// IsClock reports whether a name in lower case is a word for time, cut short, or what a part of a
// step took: dur, elap, fwd.
func IsClock(name string) bool {
	if len(name) < 3 {
		return false
	}
	for _, word := range [...]string{"duration", "elapsed", "remaining", "seconds", "runtime", "walltime", "timing"} {
		if strings.HasPrefix(word, name) {
			return true
		}
	}
	return stages[name]
}
