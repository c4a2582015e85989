package logview

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/internal/hostile"
)

// A million hostile sequences as the output of a rank: every row that a view
// draws of them is text and colours, and as wide as it is to be. What is copied
// is text.
func TestAMillionHostileSequencesAreDrawnAsText(t *testing.T) {
	const sequences, atOnce, w, h = 1_000_000, 500, 90, 40
	g := hostile.New(15)
	for n := range sequences / atOnce {
		l := New(Limits{})
		text := g.Text(atOnce)
		cut := g.IntN(len(text))
		l.Append([]byte(text[:cut]))
		l.Append([]byte(text[cut:]))
		v := NewView(l)
		v.SetWrap(n%2 == 0)
		frame := v.Draw(w, h, Styles{})
		if fault := hostile.Fault(frame, true); fault != "" {
			t.Fatal(fault)
		}
		rows := strings.Split(frame, "\n")
		if len(rows) != h {
			t.Fatalf("%d rows of %d", len(rows), h)
		}
		for _, row := range rows {
			if width := ansi.StringWidth(row); width != w {
				t.Fatalf("a row of %d cells: %q", width, row)
			}
		}
	}
}
