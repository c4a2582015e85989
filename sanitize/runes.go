package sanitize

import (
	"unicode"
	"unicode/utf8"
)

// class is what becomes of a character that is not ASCII.
type class uint8

const (
	kept     class = iota
	dropped        // removed without a trace
	replaced       // becomes U+FFFD
	mark           // combining: kept, but only so many in a row
	space          // becomes a space
	flag           // a regional indicator: becomes its letter
)

const firstFlag, lastFlag = 0x1f1e6, 0x1f1ff

// dropTable lists invisible characters that are no format characters (Cf) by
// category: fillers, joiners and selectors that change width or look without
// being seen.
var dropTable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian selectors
		{Lo: 0x200b, Hi: 0x200f, Stride: 1}, // zero-width and direction marks
		{Lo: 0x202a, Hi: 0x202e, Stride: 1}, // bidi embeddings and overrides
		{Lo: 0x2060, Hi: 0x206f, Stride: 1}, // word joiner, bidi isolates
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // half-width Hangul filler
		{Lo: 0xfff0, Hi: 0xfff8, Stride: 1}, // unassigned, ignorable
	},
	R32: []unicode.Range32{
		{Lo: 0x1f3fb, Hi: 0x1f3ff, Stride: 1}, // skin tones
		{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, more selectors
	},
}

// classOf decides on a character that utf8 decoded from size bytes.
func classOf(r rune, size int) class {
	switch {
	case r == utf8.RuneError && size == 1:
		return replaced
	case r < 0xa0:
		return dropped // C1
	case r < 0x300:
		if r == 0xad {
			return dropped // soft hyphen: one cell wide or none, as one likes
		}
		return kept
	case r >= 0x2500 && r <= 0x28ff:
		return kept // boxes, blocks, braille: what progress bars are made of
	case r >= 0x4e00 && r < 0xa000, r >= 0xac00 && r <= 0xd7a3:
		return kept // the common ideographs and syllables
	case r >= firstFlag && r <= lastFlag:
		return flag
	case r == 0x2028 || r == 0x2029:
		return space // line and paragraph separator
	case r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef:
		return replaced // noncharacters
	case unicode.Is(dropTable, r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Me, r):
		return dropped
	case unicode.Is(unicode.Mn, r), joinedJamo(r), spacingMark(r):
		return mark
	}
	return kept
}

// spacingMark reports whether r joins the character before it to one that is
// seen as one, although it takes room: the vowel signs of Indic scripts, and AM
// of Thai and Lao (Unicode Standard Annex #29, SpacingMark).
func spacingMark(r rune) bool {
	return unicode.Is(unicode.Mc, r) || r == 0xe33 || r == 0xeb3
}

// joinedJamo reports whether r is a Hangul vowel or final that joins the
// syllable before it and so takes no cell of its own.
func joinedJamo(r rune) bool {
	return r >= 0x1161 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff
}

// textTable and cleanTable mark the bytes that pass unread: printable ASCII
// and tab, and in cleanTable newline too.
var textTable, cleanTable = func() (text, clean [256]bool) {
	for c := 0x20; c < 0x7f; c++ {
		text[c] = true
	}
	text['\t'] = true
	clean = text
	clean['\n'] = true
	return text, clean
}()

func textPrefix[T ~string | ~[]byte](p T) int {
	for i := range len(p) {
		if !textTable[p[i]] {
			return i
		}
	}
	return len(p)
}

func cleanPrefix[T ~string | ~[]byte](p T) int {
	for i := range len(p) {
		if !cleanTable[p[i]] {
			return i
		}
	}
	return len(p)
}

// drawnPrefix is the length of the boxes, blocks and braille that p begins with
// (U+2500 to U+28FF): progress bars and the screen are made of them.
func drawnPrefix[T ~string | ~[]byte](p T) int {
	i := 0
	for i+2 < len(p) && p[i] == 0xe2 && p[i+1] >= 0x94 && p[i+1] <= 0xa3 && p[i+2]&0xc0 == 0x80 {
		i += 3
	}
	return i
}
