package wire

import (
	"regexp"
	"strings"
)

// AnyFits reports whether one of the patterns matches one of the values.
func AnyFits(patterns, values []string) bool {
	for _, p := range patterns {
		for _, v := range values {
			if Fits(p, v) {
				return true
			}
		}
	}
	return false
}

// Fits matches with AWS's wildcards: * for any characters, ? for one, and a
// backslash before one that means itself.
func Fits(pattern, value string) bool {
	if !strings.ContainsAny(pattern, `*?\`) {
		return pattern == value
	}
	var re strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*':
			re.WriteString("(?s:.*)")
		case c == '?':
			re.WriteString("(?s:.)")
		case c == '\\' && i+1 < len(pattern):
			i++
			re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			re.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	ok, err := regexp.MatchString("^"+re.String()+"$", value)
	return err == nil && ok
}
