//go:build linux

package cli

import (
	"os"
	"strings"
	"testing"
)

// intoFull runs dlwb with a standard output that has no room.
func (b *bed) intoFull(args ...string) (said string, code int) {
	b.t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer full.Close()
	c := b.command(args...)
	var errs strings.Builder
	c.Stdout, c.Stderr = full, &errs
	_ = c.Run()
	return errs.String(), c.ProcessState.ExitCode()
}

func TestOutputThatIsLostIsSaidAndNoSuccess(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile("print('loss 1')\n", "")
	for _, args := range [][]string{{"run", "--json"}, {"run", "--plain", "--down"}, {"ls"}, {"ls", "--json"}, {"runs", "--json"}, {"logs"}} {
		if said, code := b.intoFull(args...); code != 1 || strings.Count(said, "no space left on device") != 1 {
			t.Errorf("%q: exit code %d\n%s", args, code, said)
		}
	}
	b.nothingLeft()
	b.profile("import sys; sys.exit(7)\n", "")
	if said, code := b.intoFull("run", "--json", "--down"); code != 7 || !strings.Contains(said, "output is missing: ") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	b.nothingLeft()
}
