// Package hostile is what tests of dlwb's output are made with: text as an
// attacker would write it, and a judge of what may reach a terminal. The judge
// knows nothing of package sanitize; it is written from the promise alone.
package hostile

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Fault says what in a text may not reach a terminal; empty when nothing is
// wrong. Allowed are valid UTF-8 without controls and invisible characters,
// newline and tab, and with colours also SGR: ESC [ digits ; : m.
func Fault(text string, colours bool) string {
	for at := 0; at < len(text); {
		c := text[at]
		switch {
		case c >= 0x20 && c < 0x7f, c == '\n', c == '\t':
			at++
			continue
		case c == 0x1b && colours:
			if n := sgrLen(text[at:]); n > 0 {
				at += n
				continue
			}
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRuneInString(text[at:])
			if (r != utf8.RuneError || n > 1) && !unseen(r) {
				at += n
				continue
			}
		}
		return fmt.Sprintf("byte %d is 0x%02x in %q", at, c, around(text, at))
	}
	return ""
}

// Forged says which line of a text a value began that was to stay in its own:
// values that begin lines begin with mark. Empty when there is none.
func Forged(text, mark string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, mark) {
			return fmt.Sprintf("a line was forged: %q", line)
		}
	}
	return ""
}

// sgrLen is the length of the SGR that s begins with; 0 when it begins with
// none. Parameters have a bound: terminals overflow on long ones.
func sgrLen(s string) int {
	body, found := strings.CutPrefix(s, "\x1b[")
	if !found {
		return 0
	}
	params := 0
	for params < len(body) && strings.IndexByte("0123456789;:", body[params]) >= 0 {
		params++
	}
	if params > 96 || params == len(body) || body[params] != 'm' {
		return 0
	}
	return 2 + params + 1
}

// unseen holds for characters that no terminal shows as a character of known
// width: controls, direction overrides, joiners, selectors, tags, fillers.
func unseen(r rune) bool {
	switch {
	case r < 0x300:
		return r < 0xa0 || r == 0xad
	case r >= 0x2500 && r < 0x2900:
		return false // what we draw with: the many of a frame
	case r >= 0x1f3fb && r <= 0x1f3ff, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Me, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
		unicode.Noncharacter_Code_Point, unicode.Other_Default_Ignorable_Code_Point, unicode.Regional_Indicator)
}

func around(text string, at int) string {
	return text[max(at-40, 0):min(at+40, len(text))]
}
