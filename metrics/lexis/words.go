package lexis

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsLetter reports whether a byte can begin a name: a letter, or the line below.
func IsLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// IsWord reports whether a text is letters and no more.
func IsWord(text string) bool {
	for i := range len(text) {
		if !IsLetter(text[i]) {
			return false
		}
	}
	return text != ""
}

// keyBytes are those that a name may have inside.
var keyBytes = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = IsLetter(b) || IsDigit(b) || b == '/' || b == '.' || b == '@' || b == '-'
	}
	return t
}()

// IsKeyByte reports whether a name may have a byte inside.
func IsKeyByte(c byte) bool { return keyBytes[c] }

// NextKey finds the next word that can be a name; end is -1 when there is none.
func NextKey(line string, i int) (start, end int) {
	for ; i < len(line); i++ {
		if !IsLetter(line[i]) {
			if IsDigit(line[i]) && (i == 0 || !IsKeyByte(line[i-1])) {
				if end = Numbered(line, i); end > i {
					return i, end
				}
				i = Digits(line, i) - 1
			} else if line[i] >= 0x80 {
				if end = Foreign(line, i); end > i && (i == 0 || !IsKeyByte(line[i-1])) {
					return i, end
				}
				i = max(i, end-1)
			}
			continue
		}
		inside := i > 0 && (IsKeyByte(line[i-1]) && line[i-1] != '/' && !(i > 1 && line[i-2:i] == " @") || line[i-1] >= 0x80) // "loss @epoch 3"
		end = i
		for end < len(line) && IsKeyByte(line[end]) {
			end++
		}
		if end < len(line) && line[end] >= 0x80 { // R²
			end = max(end, Foreign(line, end))
		}
		if !inside {
			return i, end
		}
		i = end
	}
	return 0, -1
}

// Foreign is where a word ends that begins at i with letters of other scripts,
// or goes on with small numbers above the line; i when there is none.
func Foreign(line string, i int) int {
	for i < len(line) {
		if IsKeyByte(line[i]) {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		if (!unicode.IsLetter(r) || r >= 0x2100 && r < 0x2150) && r != '²' && r != '³' { // ℹ is a letter too
			break
		}
		i += size
	}
	return i
}

// SkipBlanks is where the blanks and tabs end that begin at i.
func SkipBlanks(line string, i int) int {
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	return i
}

// IsQuantity reports whether a name is a letter that may be one of a quantity: not of a clock, a
// step or a level.
func IsQuantity(name string) bool {
	return len(name) == 1 && IsLetter(name[0]) && strings.IndexByte("eistwhmEISTWHM_", name[0]) < 0
}

// Tidy leaves of a name what can be shown: no blanks, nothing invisible.
func Tidy(name string) string {
	plain := true
	for i := range len(name) {
		plain = plain && name[i] > ' ' && name[i] <= '~'
	}
	if plain {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '_'
		case r == utf8.RuneError || !unicode.IsGraphic(r) || unicode.IsSpace(r):
			return -1
		}
		return r
	}, name)
}

// IsBehindNumber reports whether the word that ends at i has a number and a blank before it, as a unit has.
func IsBehindNumber(line string, i int) bool {
	for i > 0 && IsKeyByte(line[i-1]) {
		i--
	}
	return i > 1 && line[i-1] == ' ' && IsDigit(line[i-2])
}

// WordBefore is the word with which a text ends, before a sign and blanks: "S" of "| train | S: ".
func WordBefore(text string) string {
	text = strings.TrimRight(text, " :=[(#")
	i := len(text)
	for i > 0 && IsLetter(text[i-1]) {
		i--
	}
	return text[i:]
}
