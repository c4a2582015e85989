package lexis

import (
	"unicode"
	"unicode/utf8"
)

// IsLetter reports whether a byte can begin a name: a letter, or the line below.
func IsLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

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
			if line[i] >= 0x80 {
				if end = Foreign(line, i); end > i && (i == 0 || !IsKeyByte(line[i-1])) {
					return i, end
				}
				i = max(i, end-1)
			}
			continue
		}
		inside := i > 0 && (IsKeyByte(line[i-1]) && line[i-1] != '/' || line[i-1] >= 0x80)
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
