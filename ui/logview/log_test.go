package logview

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func lines(l *Log) []string {
	out := make([]string, l.Lines())
	for i := range out {
		out[i] = l.Line(i)
	}
	return out
}

func TestALogReadsWhatATerminalWouldShow(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     string // lines joined by |
	}{
		{"lines", "a\nb\n", "a|b"},
		{"an open line counts", "a\nb", "a|b"},
		{"empty lines count", "\n\na\n", "||a"},
		{"Windows line ends", "a\r\nb\r\n", "a|b"},
		{"two returns before a newline", "a\r\r\nb\n", "a|b"},
		{"the last state of a progress bar", "10%\r50%\r100%\ndone\n", "100%|done"},
		{"a bar that begins with the return", "\r10%\r50%", "50%"},
		{"a return at the end changes nothing yet", "50%\r", "50%"},
		{"a wiped bar leaves what comes next", "50%\r   \rdone\n", "done"},
		{"backspaces", "|\b/\b-\bok\n", "ok"},
		{"backspaces stop at the line's start", "a\n\b\b\bé\bb\n", "a|b"},
		{"colours stay, other escapes go", "\x1b[31mred\x1b[2K\n", "\x1b[31mred\x1b[0m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole, pieces := New(Limits{}), New(Limits{})
			whole.Append([]byte(c.in))
			for i := range len(c.in) {
				pieces.Append([]byte(c.in[i : i+1]))
			}
			if got := strings.Join(lines(whole), "|"); got != c.want {
				t.Errorf("at once: %q, want %q", got, c.want)
			}
			if got := strings.Join(lines(pieces), "|"); got != c.want {
				t.Errorf("in pieces: %q, want %q", got, c.want)
			}
		})
	}
}

func TestOldLinesAreDroppedAndCounted(t *testing.T) {
	l := New(Limits{Lines: 3})
	l.Append([]byte("1\n2\n3\n4\n5\nopen"))
	if got := strings.Join(lines(l), "|"); got != "3|4|5|open" || l.Dropped() != 2 {
		t.Errorf("%q, %d dropped", got, l.Dropped())
	}
	l = New(Limits{Bytes: 10})
	l.Append([]byte("12345\n67890\nabcde\n"))
	if got := strings.Join(lines(l), "|"); got != "67890|abcde" || l.Dropped() != 1 || l.Bytes() != 10 {
		t.Errorf("%q, %d dropped, %d bytes", got, l.Dropped(), l.Bytes())
	}
}

func TestALineOf100MBIsCutWithANote(t *testing.T) {
	l := New(Limits{})
	piece := bytes.Repeat([]byte("x"), 1_000_000)
	for range 100 {
		l.Append(piece)
	}
	for _, state := range []string{"open", "closed"} {
		got := l.Line(0)
		if !strings.HasSuffix(got, "x … [cut here: 100 MB more in this line]") || len(got) > defaultLine+100 {
			t.Errorf("%s: %d bytes, ending %q", state, len(got), got[max(0, len(got)-60):])
		}
		v := NewView(l)
		sizes(t, v.Draw(80, 24, Styles{}), 80, 24)
		v.SetWrap(true)
		if !strings.Contains(v.Draw(80, 24, Styles{}), "100 MB more") {
			t.Errorf("%s: the end of the wrapped line has no note", state)
		}
		l.Append([]byte("\n"))
	}
	if l.Append([]byte("next\n")); l.Line(l.Lines()-1) != "next" {
		t.Errorf("the next line is %q", l.Line(l.Lines()-1))
	}
}

// TestALogKeepsTheNewestLines compares with the simplest log there is.
func TestALogKeepsTheNewestLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(1, 20).Draw(t, "keep")
		l := New(Limits{Lines: keep})
		var all []string
		for range rapid.IntRange(0, 60).Draw(t, "appends") {
			line := rapid.StringMatching(`[a-z ]{0,12}`).Draw(t, "line")
			all = append(all, line)
			cut := rapid.IntRange(0, len(line)).Draw(t, "cut")
			l.Append([]byte(line[:cut]))
			l.Append([]byte(line[cut:] + "\n"))
		}
		kept := all[max(0, len(all)-keep):]
		if l.Lines() != len(kept) || l.Dropped() != int64(len(all)-len(kept)) {
			t.Fatalf("%d lines and %d dropped, want %d of %d", l.Lines(), l.Dropped(), len(kept), len(all))
		}
		for i, want := range kept {
			if got := l.Line(i); got != want {
				t.Fatalf("line %d is %q, want %q", i, got, want)
			}
		}
	})
}

func TestAFullLogUsesBoundedMemory(t *testing.T) {
	l := New(Limits{Bytes: 8 << 20})
	line := bytes.Repeat([]byte("step 1: loss 1.25\n"), 1000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 1000 {
		l.Append(line)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("%d MB for 8 MB of lines", grown>>20)
	}
	if got := int64(l.Lines()) + l.Dropped(); got != 1_000_000 {
		t.Errorf("%d lines kept or dropped, want 1000000", got)
	}
}

func FuzzAppend(f *testing.F) {
	for i := range stuff {
		f.Add([]byte(strings.Join(stuff[i:], "")), i)
	}
	f.Fuzz(func(t *testing.T, p []byte, cut int) {
		cut = min(max(cut, 0), len(p))
		whole, pieces := New(Limits{Line: 50}), New(Limits{Line: 50})
		whole.Append(p)
		pieces.Append(p[:cut])
		pieces.Append(p[cut:])
		a, b := lines(whole), lines(pieces)
		if strings.Join(a, "|") != strings.Join(b, "|") {
			t.Fatalf("at once %q, cut at %d %q", a, cut, b)
		}
		v := NewView(whole)
		sizes(t, v.Draw(17, 5, Styles{}), 17, 5)
		v.SetWrap(true)
		v.Search("a")
		sizes(t, v.Draw(17, 5, Styles{}), 17, 5)
	})
}

func million() []byte {
	var b bytes.Buffer
	for i := range 1_000_000 {
		fmt.Fprintf(&b, "step %d: loss 1.2345 lr 0.001 tokens/s 12345\n", i)
	}
	return b.Bytes()
}

func BenchmarkAppendMillionLines(b *testing.B) {
	p := million()
	for b.Loop() {
		l := New(Limits{})
		for at := 0; at < len(p); at += 32 << 10 {
			l.Append(p[at:min(at+32<<10, len(p))])
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	l := New(Limits{})
	l.Append(million())
	coloured := New(Limits{})
	for i := range 100_000 {
		coloured.Append(fmt.Appendf(nil, "\x1b[32mstep\x1b[0m %d: loss \x1b[1m1.23\x1b[0m 50%%|█████     | größe %s\n", i, strings.Repeat("x", 100)))
	}
	for name, l := range map[string]*Log{"plain": l, "coloured": coloured} {
		for _, wrap := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/wrap=%v", name, wrap), func(b *testing.B) {
				v := NewView(l)
				v.SetWrap(wrap)
				for b.Loop() {
					v.Draw(160, 48, Styles{})
				}
			})
		}
	}
	b.Run("scrolling", func(b *testing.B) {
		v := NewView(coloured)
		for b.Loop() {
			v.Page(-1)
			v.Draw(160, 48, Styles{})
		}
	})
	b.Run("longest lines", func(b *testing.B) {
		long := New(Limits{})
		for range 200 {
			long.Append([]byte(strings.Repeat("50%|█████     | \x1b[31mgröße\x1b[0m ", 5000) + "\n"))
		}
		v := NewView(long)
		for b.Loop() {
			v.Page(-1)
			v.Draw(160, 48, Styles{})
			if v.top == 0 {
				v.End()
			}
		}
	})
	b.Run("searching", func(b *testing.B) {
		v := NewView(l)
		v.Search("loss")
		for b.Loop() {
			v.Draw(160, 48, Styles{})
		}
	})
}

func BenchmarkSearchMillionLinesInVain(b *testing.B) {
	l := New(Limits{})
	l.Append(million())
	for _, query := range []string{"error", "Error", "fehlgröße"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				NewView(l).Search(query)
			}
		})
	}
}
