package sanitize

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/internal/hostile"
)

// sequences is how many random sequences the writer, the JSON encoder and the
// functions for lines are given. They come many at a time, as in a file.
const sequences, atOnce = 1_000_000, 250

func TestAMillionHostileSequencesLeaveNothingOutsideTheGrammar(t *testing.T) {
	g := hostile.New(14)
	var out bytes.Buffer
	for range sequences / atOnce {
		in := g.Text(atOnce)
		for _, colours := range []bool{false, true} {
			out.Reset()
			w := NewWriter(&out)
			if colours {
				w = NewColourWriter(&out)
			}
			inPieces(w, in, g.IntN(len(in)))
			judge(t, "the writer", out.String(), colours)
		}
		judge(t, "Word", Word(in), false)
		judge(t, "Sprintf", Sprintf("%s %v %q %x", in, []string{in}, errors.New(in[:20]), 7), false)
		text, err := MarshalJSON(map[string]string{in[:len(in)/2]: in})
		if err != nil {
			t.Fatal(err)
		}
		judge(t, "MarshalJSON", string(text), false)
		var back map[string]string
		if err := json.Unmarshal(text, &back); err != nil || len(back) != 1 || back[asJSON(in[:len(in)/2])] != asJSON(in) {
			t.Fatalf("%v: %q came back from %q", err, in, text)
		}
	}
}

func inPieces(w *Writer, in string, cut int) {
	_, _ = io.WriteString(w, in[:cut])
	_, _ = io.WriteString(w, in[cut:])
	_ = w.Close()
}

func judge(t fataler, who, out string, colours bool) {
	if f := hostile.Fault(out, colours); f != "" {
		t.Fatalf("%s: %s", who, f)
	}
}

// asJSON is what encoding/json makes of a string: invalid bytes are replaced.
func asJSON(s string) string { return string([]rune(s)) }

// The judge itself must see what it is there for.
func TestTheJudgeKnowsWhatMayNotBeSeen(t *testing.T) {
	for _, bad := range []string{"\x1b]0;x\x07", "\x1b[2J", "\u009b31m", "\x9b", "a\rb", "\x7f", "\u202e", "\u2066", "\u200d", "\u2028", "\xff", "\xc0\x9b",
		"\xed\xa0\x80", "\U000e0041", "\x1b", "\x1b[", "\x1b[31", "\x1b[>4m", "\x1b[" + strings.Repeat("1;", 60) + "m", "\ufeff", "\ufe0f"} {
		if hostile.Fault("text "+bad, true) == "" {
			t.Errorf("%q passes", bad)
		}
	}
	if hostile.Fault("\x1b[31m", false) == "" || hostile.Fault("a\tb\n中文 é \x1b[1;38:2m\u00a0", true) != "" {
		t.Error("colours or text are misjudged")
	}
}

func FuzzWriter(f *testing.F) {
	for i := range pieces {
		f.Add(strings.Join(pieces[i:], ""), i)
	}
	f.Fuzz(func(t *testing.T, in string, cut int) {
		cut = max(0, min(cut, len(in)))
		for _, c := range []struct {
			make  func(io.Writer) *Writer
			whole func(string) string
		}{{NewWriter, Plain}, {NewColourWriter, Text}} {
			var out bytes.Buffer
			inPieces(c.make(&out), in, cut)
			if want := c.whole(in); out.String() != want {
				t.Fatalf("cut at %d: %q, at once %q", cut, out.String(), want)
			}
		}
		text, err := MarshalJSON(in)
		if err != nil {
			t.Fatal(err)
		}
		judge(t, "MarshalJSON", string(text), false)
		var back string
		if err := json.Unmarshal(text, &back); err != nil || back != asJSON(in) {
			t.Fatalf("%v: %q came back as %q", err, in, back)
		}
		judge(t, "Sprintf", Sprintf("%s %q", in, in), false)
	})
}

func TestJSONSaysTheSameInCharactersThatCanBeSeen(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain <&> 中文 é e\u0301", "\"plain <&> 中文 é e\u0301\""},
		{"\u009b31m\u009d", `"\u009b31m\u009d"`},
		{"\x7f\x1b\x00\n\t", `"\u007f\u001b\u0000\n\t"`},
		{"\u202e\u2066\u2028\u200d", `"\u202e\u2066\u2028\u200d"`},
		{"\U000e0041🇩🇪", `"\udb40\udc41\ud83c\udde9\ud83c\uddea"`},
		{"\xff", `"` + `\ufffd` + `"`},
		{"e\u0301\u0301\u0301\u0301\u0301", "\"e\u0301\u0301\u0301\u0301" + `\u0301"`},
	} {
		got, err := MarshalJSON(c.in)
		if err != nil || string(got) != c.want {
			t.Errorf("%q: %s, want %s (%v)", c.in, got, c.want, err)
		}
	}
}

// What is JSON already, of a Marshaler or as it was kept, is made safe too.
func TestJSONThatOthersMadeIsEscapedToo(t *testing.T) {
	in := map[string]any{"kept": json.RawMessage("\"a\u009bb\u2028\u202e\"")}
	got, err := MarshalJSON(in)
	if want := `{"kept":"a\u009bb\u2028\u202e"}`; err != nil || string(got) != want {
		t.Errorf("%s, want %s (%v)", got, want, err)
	}
}

func TestNoArgumentForgesALineOrAColumn(t *testing.T) {
	type name string
	got := Sprintf("a\t%s\t%v\t%v\t%d\t%5.1f\t%-6s|\n", "x\ny\tz", errors.New("e\n\x1b[31mf"), []name{"l\nm"}, 7, 2.5, name("n\rp"))
	if want := "a\tx y  z\te f\t[l m]\t7\t  2.5\tn p   |\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Two that write at once do not cut into each other's lines.
func TestWritesStayTogether(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 200 {
				_, _ = io.WriteString(w, "one whole line \x1b[31mwith colours\n")
			}
		})
	}
	wg.Wait()
	if want := strings.Repeat("one whole line with colours\n", 800); out.String() != want {
		t.Errorf("lines are mixed: %.200q", out.String())
	}
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

func TestAWriterTellsThatTheOneBehindFailed(t *testing.T) {
	gone := errors.New("gone")
	for _, text := range []string{"plain\n", "é\x1b[2J\n"} {
		if _, err := NewWriter(broken{gone}).Write([]byte(text)); !errors.Is(err, gone) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := NewWriter(nil).Close(); err != nil {
		t.Errorf("nothing written, and yet: %v", err)
	}
}

func BenchmarkWriterLogLines(b *testing.B) {
	line := []byte("rank 0 | step 100: loss 1.2345 lr 0.001 tokens/s 12345\n")
	w := NewWriter(io.Discard)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		_, _ = w.Write(line)
	}
}

func BenchmarkJSONLogLines(b *testing.B) {
	line := map[string]any{"event": "log_line", "line": "step 100: loss 1.2345 lr 0.001 tokens/s 12345"}
	for b.Loop() {
		_ = WriteJSON(io.Discard, line)
	}
}
