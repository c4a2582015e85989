package tuitest

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// opened is dlwb in a pseudo terminal of 120×36, at its first frame.
type opened struct {
	cmd  *exec.Cmd
	tty  *os.File
	took time.Duration // from exec to the first frame
	out  []byte        // what was written so far
}

// open starts dlwb and waits until its first frame has been written.
func open(t testing.TB, dir string, env ...string) opened {
	t.Helper()
	return startIn(t, dlwb("--theme", "dark"), dir, env...)
}

// startIn starts a command that is dlwb, as open does.
func startIn(t testing.TB, cmd *exec.Cmd, dir string, env ...string) opened {
	t.Helper()
	cmd.Env = append(append(os.Environ(), dlwbEnv(dir)...), "TERM=xterm-256color", "COLORTERM=truecolor")
	cmd.Env = append(cmd.Env, env...)
	begin := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 36, Cols: 120})
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	buf := make([]byte, 64<<10)
	for !bytes.Contains(out, []byte("› ")) {
		n, err := tty.Read(buf)
		if err != nil || time.Since(begin) > patience {
			_ = cmd.Process.Kill()
			t.Fatalf("no first frame: %v: %q", err, out)
		}
		out = append(out, buf[:n]...)
	}
	return opened{cmd, tty, time.Since(begin), out}
}

// more reads further frames until there is enough; a spinner turns meanwhile.
func (o *opened) more(t testing.TB, enough func() bool) {
	t.Helper()
	if err := o.tty.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	for !enough() {
		n, err := o.tty.Read(buf)
		if err != nil {
			t.Errorf("there is no further frame: %v", err)
			break
		}
		o.out = append(o.out, buf[:n]...)
	}
	_ = o.tty.SetReadDeadline(time.Time{})
}

// end asks dlwb to end and reads what it still writes, as terminals do.
func (o opened) end(t testing.TB) {
	t.Helper()
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	go func() { _, _ = io.Copy(io.Discard, o.tty) }()
	kill := time.AfterFunc(patience, func() { _ = o.cmd.Process.Kill() })
	_ = o.cmd.Wait() // its exit code says that it was interrupted
	if !kill.Stop() {
		t.Errorf("dlwb did not end within %s of SIGTERM", patience)
	}
	_ = o.tty.Close()
}

// It once waited for itself for ever, when both the program and Bubble Tea
// heard the signal.
func TestSignalAtTheFirstFrameEndsTheProgram(t *testing.T) {
	dir := t.TempDir()
	for range 6 {
		open(t, dir).end(t)
	}
}

// A terminal that goes need not send a hang-up, as under nohup. Nobody would ever see or
// end the dlwb that is left.
func TestADlwbWhoseTerminalIsGoneEnds(t *testing.T) {
	cmd := dlwb()
	o := startIn(t, exec.Command("sh", "-c", `trap "" HUP; exec "$0"`, cmd.Path), t.TempDir())
	if err := o.tty.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- o.cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		_ = o.cmd.Process.Kill()
		<-ended
		t.Error("it goes on a minute after its terminal has gone")
	}
}

func TestColourAndSynchronizedOutputCanBeTurnedOff(t *testing.T) {
	colour, sync := []byte("38;2;"), []byte("\x1b[?2026h")
	for _, c := range []struct {
		env          string
		colour, sync bool
	}{{"DLWB_NO_SYNC=", true, true}, {"NO_COLOR=1", false, true}, {"DLWB_NO_SYNC=1", true, false}} {
		o := open(t, t.TempDir(), c.env)
		// The first frame may be written before Bubble Tea has heard of the mode.
		o.more(t, func() bool {
			return bytes.Contains(o.out, colour) == c.colour && (!c.sync || bytes.Contains(o.out, sync))
		})
		o.end(t)
		if got := bytes.Contains(o.out, colour); got != c.colour {
			t.Errorf("%s: colours %v: %q", c.env, got, o.out)
		}
		if got := bytes.Contains(o.out, sync); got != c.sync {
			t.Errorf("%s: synchronized output %v: %q", c.env, got, o.out)
		}
	}
}

// BenchmarkFirstFrame is the time from exec to the first frame: at most 100 ms.
func BenchmarkFirstFrame(b *testing.B) {
	dir := b.TempDir()
	var sum time.Duration
	for b.Loop() {
		o := open(b, dir)
		sum += o.took
		o.end(b)
	}
	b.ReportMetric(float64(sum.Microseconds())/1000/float64(b.N), "ms/frame")
}
