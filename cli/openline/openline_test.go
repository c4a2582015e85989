package openline

import (
	"strings"
	"testing"
)

func TestAnOpenLineIsWrittenOverAndFitsIntoARow(t *testing.T) {
	var out strings.Builder
	l := &Line{Out: &out, Wipe: func() { out.WriteString("<wiped>") }, Width: func() int { return 8 }}
	for _, text := range []string{"one", "one", "two\x1b[2J", "ten and more", ""} {
		l.Show(text)
	}
	l.Hide()
	l.Show("end")
	l.Hide()
	l.Hide()
	l.Show("left")
	l.Leave()
	l.Hide()
	if want := "one<wiped>two<wiped>ten an…<wiped>end<wiped>left\n"; out.String() != want {
		t.Errorf("%q, not %q", out.String(), want)
	}
	var none *Line
	none.Show("nothing")
	none.Hide()
}
