package console

import (
	"io"
	"strings"
	"testing"
)

func TestWhoeverTypesTheWayOutOfAShellLeavesIt(t *testing.T) {
	for _, c := range []struct {
		typed string
		heard bool
		out   bool
	}{
		{"ls -l\r", true, false},
		{"~.", true, true},
		{"ls\r~.", true, true},
		{"ls ~.\r", true, false},
		{"~~.", true, false},
		{"cd ~\r", true, false},
		{"\x03", true, false}, // it is the node's
		{"\x03", false, true},
		{"sleep 9\r\x03", false, true},
	} {
		left := false
		e := NewEscape(io.MultiReader(strings.NewReader(c.typed[:1]), strings.NewReader(c.typed[1:])),
			func() bool { return c.heard }, func() { left = true })
		passed, err := io.ReadAll(e)
		if err != nil || left != c.out || !c.out && string(passed) != c.typed {
			t.Errorf("%q, heard %v: left %v, passed %q, %v", c.typed, c.heard, left, passed, err)
		}
	}
}
