//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// barScript draws a bar with carriage returns, a state each time that it is told to, and
// asks something without ending the line.
const barScript = `
import os, time
def await_(name):
    while not os.path.exists(os.environ["HERE"] + "/" + name):
        time.sleep(0.05)
print("\rbar: 10%", end="", flush=True)
await_("more")
print("\rbar: 20%", end="", flush=True)
await_("most")
print("\rbar: all\nshall it go on? ", end="", flush=True)
await_("yes")
print("yes", flush=True)
`

// A line that has no end yet is seen on a terminal, and whole lines are as they were.
func TestALineThatHasNoEndIsShownAndWrittenOver(t *testing.T) {
	for _, args := range [][]string{{"logs", "-f"}, {"attach", "--plain"}} {
		t.Run(args[0], func(t *testing.T) {
			b := newBed(t)
			here := t.TempDir()
			b.write("train.py", barScript)
			b.write("dlwb.yaml", "name: bed\nprovider: local\nrun:\n  engine: plain\n  command: train.py\n  env: {HERE: "+here+"}\n")
			if r := b.run("run", "--detach", "--plain"); r.code != 0 {
				t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
			b.env = append(b.env, "TERM=xterm")
			x := b.onTerminal(100, 30, args...)
			for _, state := range []struct{ shows, goesOn string }{
				{"rank 0 | bar: 10%", "more"}, {"\r\x1b[Krank 0 | bar: 20%", "most"}, {"\r\x1b[Krank 0 | bar: all\r\nrank 0 | shall it go on? ", "yes"},
			} {
				x.shows(state.shows)
				if err := os.WriteFile(filepath.Join(here, state.goesOn), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if code := <-x.ended; code != 0 {
				t.Errorf("exit code %d\n%s", code, x.shown)
			}
			x.shows("\r\x1b[Krank 0 | shall it go on? yes\r\n")
			if r := b.run("logs"); r.stdout != "rank 0 | bar: all\nrank 0 | shall it go on? yes\n" || strings.Contains(r.stdout, "\x1b") {
				t.Errorf("a pipe gets %q", r.stdout)
			}
		})
	}
}
