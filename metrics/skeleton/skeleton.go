// Package skeleton is for telling lines of one form: a line without its numbers, as a
// hash, and where they stood.
package skeleton

import (
	"math/bits"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Most bounds the numbers of a line of which it is noted where they stand.
const Most = 96

// Skeleton is the room in which one line after the other is looked at.
type Skeleton struct {
	runs [Most]uint16 // where the digits of the present line begin
	N    int          // how many numbers it has
}

// Spot is where a number begins: so far before the first digit of a run.
type Spot struct{ Run, Before int16 }

// Nowhere is the spot of what is always the same, such as nan.
var Nowhere = Spot{Run: -1}

// At is where the number of a spot begins in the present line.
func (s *Skeleton) At(p Spot) int { return int(s.runs[p.Run]) - int(p.Before) }

// SpotOf is the spot of a number that begins at i.
func (s *Skeleton) SpotOf(i int) (Spot, bool) {
	for run := range s.N {
		if at := int(s.runs[run]); at >= i {
			return Spot{int16(run), int16(at - i)}, at-i <= 2
		}
	}
	return Spot{}, false
}

// Of is the hash of a line with its numbers left out, and notes where
// they begin. Lines with the same skeleton say the same, with other numbers. It
// looks at eight bytes at a time: every line of a run comes through here.
func (s *Skeleton) Of(line string) uint64 {
	hash := uint64(14695981039346656037)
	s.N = 0
	inName, from := false, 0 // whether the last digits may be part of a name, and where they ended
	for i := 0; i < len(line); {
		word := eight(line, i)
		n := min(bits.TrailingZeros64(^others(word)&highBits)/8, len(line)-i)
		if i += n; n == 8 {
			hash = mix(hash, word)
			continue
		}
		word = word&(1<<(8*n)-1) | uint64(n)<<56
		if i == len(line) {
			hash = mix(hash, word)
			break
		}
		end := i + digitsAt(line, i)
		joined := i > from && nameBytes[line[i-1]] == joins
		inName = afterName(line[from:i], inName)
		if from = end; inName && !(joined && end > i+2) {
			hash = mix(hash, word) // the digits of acc@1, top-5 and layer_2 are part of a name
			for ; i < end; i++ {
				hash = mix(hash, uint64(line[i]))
			}
			continue
		}
		if s.N < Most {
			s.runs[s.N] = uint16(i)
		}
		s.N++
		hash = mix(hash, word|'0'<<56)
		i = end
	}
	hash = mix(hash, hash>>32)
	return hash ^ hash>>32 | 1
}

const (
	lowBits  = 0x0101010101010101
	highBits = 0x80 * lowBits
)

// eight are the eight bytes at i, or as many as there are, the first the lowest.
func eight(line string, i int) (word uint64) {
	if i+8 <= len(line) {
		s := line[i : i+8]
		return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	}
	for k := len(line) - 1; k >= i; k-- {
		word = word<<8 | uint64(line[k])
	}
	return word
}

// others has the highest bit of each byte of a word set that is no digit.
func others(word uint64) uint64 {
	word ^= '0' * lowBits // digits become 0 to 9
	return (word&^highBits + (0x80-10)*lowBits) | word
}

// digitsAt is how many digits stand at i, where there is one.
func digitsAt(line string, i int) int {
	if n := bits.TrailingZeros64(others(eight(line, i))&highBits) / 8; n < 8 {
		return n
	}
	return lexis.Digits(line, i) - i
}

func mix(hash, word uint64) uint64 {
	return bits.RotateLeft64((hash^word)*0x9e3779b97f4a7c15, 29)
}

// afterName reports whether digits behind a text are part of a name, when they
// would have been before it.
func afterName(text string, inName bool) bool {
	for i := len(text) - 1; i >= 0; i-- {
		if kind := nameBytes[text[i]]; kind != joins {
			return kind == begins
		}
	}
	return inName
}

// What a byte says about digits behind it.
const (
	ends   = iota // they are a number
	begins        // they are part of a name
	joins         // as before it
)

var nameBytes = func() (t [256]uint8) {
	for c := range t {
		switch b := byte(c); {
		case lexis.IsLetter(b) || b == '@':
			t[c] = begins
		case b == '-' || b == '.' || b == '/':
			t[c] = joins
		}
	}
	return t
}()

// LongDigits reports whether a name has a number inside that a skeleton may
// have left out.
func LongDigits(name string) bool {
	if strings.Contains(name, "top_") {
		return true
	}
	for i := 0; i < len(name); i++ {
		if end := lexis.Digits(name, i); end > i+2 {
			return true
		}
	}
	return false
}
