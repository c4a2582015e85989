package sanitize

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
	"pgregory.net/rapid"
)

// check fails when out holds anything but text, newline, tab and SGR, or a
// line that leaves attributes open. It knows nothing of the parser it checks.
func check(t fataler, out string) {
	if !utf8.ValidString(out) {
		t.Fatalf("invalid UTF-8 in %q", out)
	}
	for line := range strings.SplitSeq(out, "\n") {
		open := false
		for line != "" {
			if params, rest, ok := leadingSGR(line); ok {
				open = strings.Trim(params, "0;:") != ""
				line = rest
				continue
			}
			r, n := utf8.DecodeRuneInString(line)
			if r != '\t' && forbidden(r) {
				t.Fatalf("%U in %q", r, out)
			}
			line = line[n:]
		}
		if open {
			t.Fatalf("a line is left coloured in %q", out)
		}
	}
}

type fataler interface{ Fatalf(string, ...any) }

// leadingSGR cuts ESC [ digits, semicolons, colons m from the front of s.
func leadingSGR(s string) (params, rest string, ok bool) {
	if !strings.HasPrefix(s, "\x1b[") {
		return "", s, false
	}
	end := strings.IndexFunc(s[2:], func(r rune) bool { return !strings.ContainsRune("0123456789;:", r) }) + 2
	if end < 2 || end > 2+maxSGR || s[end] != 'm' {
		return "", s, false
	}
	return s[2:end], s[end+1:], true
}

func forbidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Me, r) ||
		unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.Noncharacter_Code_Point, r) ||
		unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Regional_Indicator, r) || r >= 0xe0000 && r <= 0xe0fff
}

// terminal is an independent judge: a terminal model that notes everything
// that is not text or attributes.
func terminal(t fataler, out string) {
	const w, h = 400, 4
	e := vt.NewEmulator(w, h)
	// Closing the emulator itself would race with the reader.
	stop := func() { _ = e.InputPipe().(io.Closer).Close() }
	defer stop()
	answers := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, e)
		answers <- n
	}()
	var events []string
	note := func(what string) { events = append(events, what) }
	e.SetCallbacks(vt.Callbacks{
		Bell:             func() { note("bell") },
		Title:            func(string) { note("title") },
		IconName:         func(string) { note("icon name") },
		AltScreen:        func(bool) { note("alternate screen") },
		CursorVisibility: func(bool) { note("cursor visibility") },
		CursorStyle:      func(vt.CursorStyle, bool) { note("cursor style") },
		WorkingDirectory: func(string) { note("working directory") },
		EnableMode:       func(ansi.Mode) { note("mode on") },
		DisableMode:      func(ansi.Mode) { note("mode off") },
	})
	for line := range strings.SplitSeq(out, "\n") {
		line = strings.ReplaceAll(line, "\t", " ")
		if e.WidthMethod() == nil || ansi.StringWidth(line) > w-1 || ansi.StringWidthWc(line) > w-1 {
			continue // it would wrap, as any text may
		}
		_, _ = e.WriteString("\r")
		y := e.CursorPosition().Y
		_, _ = e.WriteString(line)
		if p := e.CursorPosition(); p.Y != y || p.X > w-1 {
			t.Fatalf("the cursor left its line: %v after %q", p, line)
		}
		_, _ = e.WriteString("\r\n")
		// What comes after a line may not be painted by it.
		_, _ = e.WriteString("x")
		at := e.CursorPosition()
		if c := e.CellAt(at.X-1, at.Y); c == nil || c.Content != "x" || c.Style != (uv.Style{}) {
			t.Fatalf("%q leaves the next line as %+v", line, c)
		}
		_, _ = e.WriteString("\r\n")
	}
	stop()
	if len(events) > 0 {
		t.Fatalf("%v by %q", events, out)
	}
	if n := <-answers; n > 0 {
		t.Fatalf("the terminal answered %d bytes to %q", n, out)
	}
}

// pieces are what hostile output is made of; random bytes alone would hardly
// ever be a whole sequence.
var pieces = []string{
	"loss 1.25", "中", "é", "e\u0301", "\u0301", "\t", "\n", "\r", "\r\n", " ", "\x1b", "\x1b[", "\x1b[31m", "\x1b[0m", "\x1b[m",
	"\x1b[38;5;0m", "\x1b[38;2;1;2;3m", "\x1b[4:3m", "\x1b[>4;1m", "\x1b[?25l", "\x1b[?1049h", "\x1b[2J", "\x1b[10;10H", "\x1b[6n",
	"\x1b[1;2;", "m", "31m", "\x1b]0;title\x07", "\x1b]0;", "\x07", "\x1b\\", "\x1b]8;;http://x\x1b\\", "\x1bP", "\x1b_", "\x1b^", "\x1bX",
	"\x1bc", "\x1b(0", "\x1b#8", "\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x0e", "\x0f", "\x08", "\x7f", "\x00", "\x18", "\x1a", "\x05",
	"\u009b", "\u009d", "\u0090", "\u009c", "\u0085", "\x9b", "\x9d", "\xc2", "\xe2\x82", "\xf0\x9f", "\xff", "\xed\xa0\x80", "\xc0\x9b",
	"\u202e", "\u2066", "\u2069", "\u200b", "\u200d", "\ufeff", "\ufe0f", "\U000e0041", "👩", "🏽", "🇩🇪", "\ufffe", "\U0010ffff", "\u2028",
}

func drawn() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom(pieces), rapid.SampledFrom(pieces), rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 6), func(b []byte) string { return string(b) }))
	return rapid.Map(rapid.SliceOfN(piece, 0, 20), func(p []string) string { return strings.Join(p, "") })
}

func all(t fataler, in string) {
	for name, out := range map[string]string{"Text": Text(in), "Line": Line(in), "Plain": Plain(in)} {
		check(t, out)
		if name == "Line" && strings.Contains(out, "\n") || name == "Plain" && strings.Contains(out, "\x1b") {
			t.Fatalf("%s(%q) = %q", name, in, out)
		}
	}
	out := Text(in)
	if again := Text(out); again != out {
		t.Fatalf("Text is not stable: %q, then %q", out, again)
	}
	if got := string(Append([]byte("p"), []byte(in))); got != "p"+Line(in) {
		t.Fatalf("Append(%q) = %q, Line is %q", in, got, Line(in))
	}
	if plain := strings.ReplaceAll(ansi.Strip(out), "\r", ""); plain != Plain(in) {
		t.Fatalf("colours change the text: %q and %q", plain, Plain(in))
	}
	terminal(t, out)
}

func TestAnythingComesOutSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { all(t, drawn().Draw(t, "in")) })
}

func TestAStreamIsTheSameHoweverItIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawn().Draw(t, "in")
		var s Stream
		var got []byte
		for rest := []byte(in); len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 7)).Draw(t, "n")
			got = append(got, s.Write(bytes.Clone(rest[:n]))...)
			rest = rest[n:]
		}
		got = append(got, s.Close()...)
		if want := Text(in); string(got) != want {
			t.Fatalf("in pieces %q, at once %q", got, want)
		}
	})
}

func FuzzText(f *testing.F) {
	for i := range pieces {
		f.Add(strings.Join(pieces[i:], ""))
		f.Add(pieces[i] + "text" + pieces[len(pieces)-1-i])
	}
	f.Fuzz(func(t *testing.T, in string) {
		all(t, in)
		for cut := range min(len(in), 64) {
			var s Stream
			got := string(s.Write([]byte(in[:cut]))) + string(s.Write([]byte(in[cut:]))) + string(s.Close())
			if want := Text(in); got != want {
				t.Fatalf("cut at %d: %q, at once %q", cut, got, want)
			}
		}
	})
}

// TestWidthIsNoMatterOfOpinion holds for what training output is made of; the
// two ways of counting cells differ only in a few scripts beyond.
func TestWidthIsNoMatterOfOpinion(t *testing.T) {
	for _, in := range []string{"👩\u200d👩\u200d👧", "❤\ufe0f", "👍🏽", "🇩🇪🇫🇷", "1\ufe0f\u20e3", "e\u0301", "中文", "⚠\ufe0f", "🏴\U000e0067\U000e007f", "한글"} {
		out := Text(in)
		if a, b := ansi.StringWidth(out), ansi.StringWidthWc(out); a != b {
			t.Errorf("%q becomes %q of %d or %d cells", in, out, a, b)
		}
	}
}

func bench(b *testing.B, text string) {
	p := []byte(strings.Repeat(text, 1<<20/len(text)))
	var s Stream
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		s.Write(p)
	}
}

func BenchmarkPlainText(b *testing.B) { bench(b, "step 100: loss 1.2345 lr 0.001 tokens/s 12345\n") }
func BenchmarkColours(b *testing.B)   { bench(b, "\x1b[32mstep\x1b[0m 100: loss \x1b[1m1.23\x1b[0m\n") }
func BenchmarkUnicode(b *testing.B)   { bench(b, "50%|█████     | 中文 größe\n") }
func BenchmarkBinary(b *testing.B)    { bench(b, "\x00\xff\x1b\x9b\xc2\x80\x07") }

func BenchmarkText(b *testing.B) {
	s := strings.Repeat("step 100: loss 1.2345 lr 0.001 tokens/s 12345\n", 1<<20/46)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Text(s)
	}
}

// A time limit would fail on a slow machine; a quadratic step would not come to
// an end here at all.
func TestALineOf100MBComesThrough(t *testing.T) {
	for text, total := range map[string]int{"x": 100_000_000, "\x1b[31mx": 10_000_000, "\x1b]0;": 10_000_000, "\xff": 5_000_000, "e\u0301": 5_000_000} {
		in := []byte(strings.Repeat(text, total/len(text)))
		var s Stream
		n := 0
		for rest := in; len(rest) > 0; {
			k := min(len(rest), 1<<20)
			n += len(s.Write(rest[:k]))
			rest = rest[k:]
		}
		if n > 3*len(in)+len(Reset) {
			t.Errorf("%q: %d bytes became %d", text, len(in), n)
		}
	}
}
