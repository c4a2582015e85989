package shell

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// When the screen is back it says why there was no shell: what stood on the terminal
// is gone then.
func TestWhyThereWasNoShellIsToldWhenTheScreenIsBack(t *testing.T) {
	for script, want := range map[string]string{
		`exit 0`:            "the shell on node1 was closed",
		`sleep 30 & exit 0`: "the shell on node1 was closed",
		`exit 3`:            "the shell on node1 ended: exit status 3",
		`echo warning >&2; echo 'dlwb: open a shell on node1: job x is Starting' >&2; echo '  next: try again when it trains' >&2; exit 1`: "no shell on node1: open a shell on node1: job x is Starting → try again when it trains",
		`printf 'dlwb: evil \033]0;title\007' >&2; exit 1`: "no shell on node1: evil ",
		`head -c 100000 /dev/zero | tr '\0' x >&2; exit 1`: "the shell on node1 ended: exit status 1",
		`sleep 30 & echo 'dlwb: gone' >&2; exit 1`:         "no shell on node1: gone",
	} {
		c := exec.Command("/bin/sh", "-c", script)
		var terminal bytes.Buffer
		s := Watch(c, &terminal)
		got := s.Ended("node1", c.Run())
		if !strings.HasPrefix(got, want) || strings.ContainsRune(got, '\033') {
			t.Errorf("%s: %q", script, got)
		}
		if strings.Contains(script, ">&2") && terminal.Len() == 0 {
			t.Errorf("%s: nothing is on the terminal", script)
		}
	}
}
