package hostile

import (
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// Generator makes hostile text, the same for the same seed. It knows the
// grammar of escape sequences: random bytes would hardly ever be one.
type Generator struct{ *rand.Rand }

// New returns a Generator.
func New(seed uint64) Generator { return Generator{rand.New(rand.NewPCG(seed, 0x646c7762))} }

// Text returns n pieces, most of them escape sequences or characters that may
// not be seen, some of them cut short.
func (g Generator) Text(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(g.Piece())
	}
	return b.String()
}

// Piece is one sequence, character or word.
func (g Generator) Piece() string {
	s := g.whole()
	if len(s) > 1 && g.IntN(8) == 0 {
		s = s[:1+g.IntN(len(s)-1)] // also in the middle of a character
	}
	return s
}

func (g Generator) whole() string {
	switch g.IntN(12) {
	case 0, 1:
		return g.pick(words)
	case 2:
		return g.control()
	case 3:
		return g.string7bit()
	case 4:
		return string(rune(0x80+g.IntN(0x20))) + g.payload() // C1 as UTF-8
	case 5:
		return string([]byte{byte(0x80 + g.IntN(0x20))}) + g.payload() // C1 as a byte
	case 6:
		return string(rune(g.pick(controls)[0]))
	case 7:
		return g.pick(invisible)
	case 8:
		return g.pick(broken)
	case 9:
		return "\x1b" + string(rune(0x20+g.IntN(0x5f)))
	case 10:
		return g.anyRune()
	}
	return string([]byte{byte(g.IntN(256)), byte(g.IntN(256))})
}

func (g Generator) pick(from []string) string { return from[g.IntN(len(from))] }

// control is a CSI sequence, now and then with SGR's end.
func (g Generator) control() string {
	var b strings.Builder
	b.WriteString(g.pick([]string{"\x1b[", "\u009b", "\x9b"}))
	for range g.IntN(6) {
		b.WriteString(g.pick(parameters))
	}
	if g.IntN(2) == 0 {
		return b.String() + "m"
	}
	b.WriteByte(byte(0x40 + g.IntN(0x3f)))
	return b.String()
}

// string7bit is OSC, DCS, APC, PM or SOS with its payload, mostly with an end.
func (g Generator) string7bit() string {
	return g.pick([]string{"\x1b]", "\x1bP", "\x1b_", "\x1b^", "\x1bX"}) + g.payload() +
		g.pick([]string{"\x07", "\x1b\\", "\u009c", "\x9c", "\x18", ""})
}

func (g Generator) payload() string { return g.pick(payloads) }

// anyRune is any code point that UTF-8 has a form for.
func (g Generator) anyRune() string {
	for {
		if r := rune(g.IntN(utf8.MaxRune + 1)); utf8.ValidRune(r) {
			return string(r)
		}
	}
}

var (
	words      = []string{"loss 1.25", "epoch 3", "中文", "größe", "é", " ", "\t", "\n", "█▌", "/", `"`, "\\", "<&>", "%s%n", "e\u0301"}
	controls   = []string{"\x00", "\x01", "\x05", "\x07", "\x08", "\x0b", "\x0c", "\r", "\x0e", "\x0f", "\x18", "\x1a", "\x1b", "\x1f", "\x7f"}
	parameters = []string{"0", "1", "31", ";", ":", "38;2;1;2;3", "?25", ">4", "=", "!", " ", "$", "'", "99999999", "\x07", "\n"}
	payloads   = []string{
		"0;title", "2;title", "52;c;ZXZpbA==", "8;;http://evil.example", "4;1;rgb:00/00/00", "1337;File=:AAAA", "777;notify;a;b", "9;note",
		"q#0;2;0", "G a=T", "", "31m", "2J", "6n", "?1049h", "+q544e", "50;#1", "\n", "é\x1b[31m",
	}
	invisible = []string{
		"\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a",
		"\u202b", "\u202c", "\u202d", "\u202e", "\u2060", "\u2066", "\u2067", "\u2068", "\u2069", "\u206f", "\u3164", "\ufe0f", "\ufeff",
		"\uffa0", "\ufffe", "\uffff", "\ufdd0", "\ufff9", "\U0001f3fb", "\U0001f1e9\U0001f1ea", "\U000e0001", "\U000e0041", "\U000e007f", "\U000e0100",
		"👩\u200d👩\u200d👧", "\u20dd", "\u0301\u0301\u0301\u0301\u0301\u0301", "\U0001d173",
	}
	broken = []string{
		"\xff", "\xfe", "\xc2", "\xe2\x80", "\xf0\x9f\x92", "\xc0\x9b", "\xe0\x80\x9b", "\xf0\x80\x80\x9b", "\xed\xa0\x80", "\xed\xb2\x80",
		"\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xc1\xbf", "\x80", "\xbf\xbf", "\xc2\x1b[31m",
	}
)
