package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// firstLine starts dlwb, reads what head -1 would, and closes the pipe.
func (b *bed) firstLine(until string, args ...string) (line string, code int) {
	b.t.Helper()
	c := b.command(args...)
	out, err := c.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	var errs strings.Builder
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for line == "" || !strings.Contains(line, until) {
		if line, err = lines.ReadString('\n'); err != nil {
			b.t.Fatalf("%q did not come: %v\n%s", until, err, errs.String())
		}
	}
	_ = out.(io.Closer).Close()
	late := time.AfterFunc(40*time.Second, func() { _ = c.Process.Kill() })
	defer late.Stop()
	_ = c.Wait()
	if strings.Contains(errs.String(), "broken pipe") {
		b.t.Errorf("it complains: %s", errs.String())
	}
	return line, c.ProcessState.ExitCode()
}

// nothingLeft checks that no process and no file of a cluster is there.
func (b *bed) nothingLeft() {
	b.t.Helper()
	if left := b.processes(); len(left) > 0 {
		b.t.Errorf("processes left: %v", left)
	}
	entries, err := os.ReadDir(filepath.Join(b.home, "state", "local"))
	for _, e := range entries {
		if err == nil && e.Name() != "filler" {
			b.t.Errorf("left: %s", e.Name())
		}
	}
}

func TestDemoIntoAClosedPipeLeavesNothing(t *testing.T) {
	b := newBed(t)
	if line, code := b.firstLine("", "demo"); code != 130 || !strings.HasPrefix(line, "plan: ") {
		t.Errorf("exit code %d after %q", code, line)
	}
	b.nothingLeft()
	if l := b.run("ls", "--json"); !strings.Contains(l.stdout, `"clusters":[]`) {
		t.Errorf("left: %s", l.stdout)
	}
}

func TestRunWithDownIntoAClosedPipeLeavesNothing(t *testing.T) {
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 4000, 0.02), "")
	if line, code := b.firstLine("rank 0 | ", "run", "--down"); code != 130 {
		t.Errorf("exit code %d after %q", code, line)
	}
	b.nothingLeft()
}

func TestRunIntoAClosedPipeGoesOn(t *testing.T) {
	sample.Leave(t)
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 150, 0.02), "")
	if line, code := b.firstLine("rank 0 | ", "run"); code != 130 {
		t.Errorf("exit code %d after %q", code, line)
	}
	if line, code := b.firstLine("rank 0 | ", "attach"); code != 130 {
		t.Errorf("attach: exit code %d after %q", code, line)
	}
	if r := b.run("attach", "--json"); r.code != 0 || r.one(t, "run_ended")["verdict"] != "succeeded" {
		t.Errorf("attach: exit code %d\n%s", r.code, r.stdout)
	}
	if line, code := b.firstLine("rank 0 | ", "logs"); code != 130 && code != 0 {
		t.Errorf("logs: exit code %d after %q", code, line)
	}
}

func TestWithoutATerminalTheListIsPrintedAlsoWhenItIsEmpty(t *testing.T) {
	b := newBed(t)
	for _, args := range [][]string{{}, {"--plain"}, {"ls"}} {
		if r := b.run(args...); r.code != 0 || !strings.HasPrefix(r.stdout, "no clusters; dlwb demo makes one") || r.stderr != "" {
			t.Errorf("%q: exit code %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestHangUpIsACleanEnd(t *testing.T) {
	// Under nohup the tests would hand it down that a hang-up means nothing.
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
	b := newBed(t).withOneNode()
	b.profile(fmt.Sprintf(lossScript, 4000, 0.02), "")
	first := b.start("run", "--down", "--json")
	first.awaitStep(5)
	first.signal(syscall.SIGHUP)
	first.await("the receipt", func(e printedEvent) bool { return e["event"] == "receipt" && e["proven"] == true })
	if code := first.end(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if help := b.run("run", "--help").stdout; !strings.Contains(help, "leaves the run going on, except with --down") {
		t.Errorf("the help does not say so:\n%s", help)
	}
}
