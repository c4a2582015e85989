//go:build unix

package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/dlwb/dlwb/internal/hostile"
)

// onScreen runs dlwb with a terminal as its output and nothing as its input, and
// gives all that the terminal got.
func (b *bed) onScreen(args ...string) (code int, got string) {
	b.t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		b.t.Fatal(err)
	}
	defer master.Close()
	c := b.command(args...)
	c.Stdout, c.Stderr = tty, tty
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	_ = tty.Close()
	var all bytes.Buffer
	_, _ = io.Copy(&all, master) // ends with an error when the last writer has gone
	_ = c.Wait()
	return c.ProcessState.ExitCode(), strings.ReplaceAll(all.String(), "\r\n", "\n")
}

// Bytes as they are go to files and programs. A terminal gets text, or nothing
// and what to do instead.
func TestATerminalGetsNoBytesAsTheyAre(t *testing.T) {
	b := newBed(t)
	raw := "\x1b]0;title\x07\x1b[31mred\x1b[0m\x1b[2J\u009b31m\xff\n"
	b.write("noise.bin", raw)
	b.profile("import sys\nsys.stdout.buffer.write(open('noise.bin', 'rb').read())\nprint('step 1 loss: 0.5')\n", "")
	if r := b.run("run"); r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, c := range []struct {
		args  string
		code  int
		exact string // what a pipe gets; empty: it is not looked at
		shown string
	}{
		{"logs --raw", 2, raw + "step 1 loss: 0.5\n", "logs alone for a terminal"},
		{"logs", 0, "", "\x1b[31mred\x1b[0m"},
		{"ssh bed 0 -- cat dlwb/bed/code/noise.bin", 0, raw, "\x1b[31mred\x1b[0m"},
		{"ssh bed 0 -- printf \\033[31mred", 0, "\x1b[31mred", "\x1b[31mred\x1b[0m"},
		{"exec bed -- cat dlwb/bed/code/noise.bin", 0, "", "node0 | red"},
		{"export --format parquet", 2, "", "name one with -o"},
		{"export --format csv", 0, "", "loss"},
	} {
		if c.exact != "" {
			if r := b.run(strings.Fields(c.args)...); r.code != 0 || r.stdout != c.exact {
				t.Errorf("dlwb %s into a pipe: exit code %d, %q\n%s", c.args, r.code, r.stdout, r.stderr)
			}
		}
		code, got := b.onScreen(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(got, c.shown) {
			t.Errorf("dlwb %s: exit code %d, want %d and %q\n%q", c.args, code, c.code, c.shown, got)
		}
		if fault := hostile.Fault(got, true); fault != "" {
			t.Errorf("dlwb %s: %s", c.args, fault)
		}
	}
}

// A terminal of which nothing is known gets lines, also where there would be a screen.
func TestATerminalOfWhichNothingIsKnownGetsLines(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile("print('step 1 loss: 0.5')\n", "")
	b.env = append(b.env, "TERM=")
	x := b.onTerminal(100, 30, "run", "--down")
	if code := x.exit(); code != 0 || !strings.Contains(x.shown.String(), "run succeeded") || strings.Contains(x.shown.String(), "\x1b") {
		t.Errorf("exit code %d\n%q", code, x.shown)
	}
}

func TestThePlanNamesAVariableThatLooksWrittenForAShell(t *testing.T) {
	b := newBed(t)
	b.profile("print(1)\n", "  env: {OUT: $HOME/out}\n")
	if r := b.run("plan"); r.code != 0 || !strings.Contains(r.stdout, "run.env.OUT is $HOME/out as it stands") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
