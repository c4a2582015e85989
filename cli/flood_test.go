package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench/event"
)

// writes counts what it is given.
type writes struct {
	bytes.Buffer
	times int
}

func (w *writes) Write(p []byte) (int, error) {
	w.times++
	return w.Buffer.Write(p)
}

// A log that grew by a million lines is not a million writes: each of them would be
// a call of the system, and the terminal would be the slower for it.
func TestAFloodOfLinesIsPrintedInPieces(t *testing.T) {
	var text, want strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d\n", i)
		fmt.Fprintf(&want, "rank 3 | line %d\n", i)
	}
	text.WriteString("old\rnew")
	want.WriteString("rank 3 | new\n")
	out := &writes{}
	p := &printer{w: out, ranks: out, rank: allRanks, logs: map[logKey]*logLines{},
		readLog: func(_ string, _ int, off int64, b []byte) (int, error) { return copy(b, text.String()[off:]), nil }}
	size := int64(text.Len())
	for _, grown := range []int64{1, size / 3, size / 2, size} {
		if err := p.print([]event.Event{{Run: "r", Body: event.LogGrew{Rank: 3, Size: grown}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.endLogs(event.Event{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	if out.String() != want.String() {
		t.Errorf("%d bytes were printed, want %d", out.Len(), want.Len())
	}
	if out.times > 20 {
		t.Errorf("%d writes", out.times)
	}
}
