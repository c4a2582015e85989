//go:build linux

package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const numbers = "S 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 123456789 100 200 18446744073709551615"

func TestAProcessIsReadWhateverItsNameIs(t *testing.T) {
	want := Process{42, 7, 8, 9, 'S', 123456789}
	for _, name := range []string{"sh", "a b", "a) Z 1 2 3", "x\n42 (y) R 1", ")", "(", "", ") " + numbers} {
		p, ok := parse(42, []byte("42 ("+name+") "+numbers+"\n"))
		if !ok || p != want {
			t.Errorf("%q: %+v, %v", name, p, ok)
		}
	}
	for _, bad := range []string{"", "42", "42 (sh)", "42 (sh) S 1 2", "42 (sh) SS" + numbers[1:], "42 (sh) " + strings.Replace(numbers, "123456789", "-1", 1)} {
		if p, ok := parse(42, []byte(bad)); ok {
			t.Errorf("%q was read as %+v", bad, p)
		}
	}
}

// start starts a program that ends with the test, and gives its line of the table.
func start(t *testing.T, name string, args ...string) (*exec.Cmd, Process) {
	t.Helper()
	c := exec.Command(name, args...)
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = in.Close(), c.Process.Kill(), c.Wait() })
	p, ok := Read(c.Process.Pid)
	if !ok {
		t.Fatal("a process that was started is not there")
	}
	return c, p
}

func TestTheTableHoldsWhatRunsAndWhoStartedIt(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a) Z 1\nb (")
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(cat, odd); err != nil {
		t.Fatal(err)
	}
	c, p := start(t, odd)
	table := Table()
	if got := table[c.Process.Pid]; !got.Same(p) || got.Parent != os.Getpid() {
		t.Errorf("the table says %+v, want %+v of parent %d", got, p, os.Getpid())
	}
	set := map[int]bool{os.Getpid(): true}
	Spread(table, set)
	if !set[c.Process.Pid] || set[1] || !Own(c.Process.Pid) {
		t.Errorf("descendants %v; ours: %v", set, Own(c.Process.Pid))
	}
}

func TestAnEnvironmentAndWhereAProcessPrintsAreSeen(t *testing.T) {
	c := exec.Command("cat")
	c.Env = []string{"A=1", "COOKIE=x y"}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = in.Close(), c.Wait() }()
	if _, err := io.WriteString(in, "up"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s", Environ(c.Process.Pid)); got != "[A=1 COOKIE=x y]" {
		t.Errorf("environment %q", got)
	}
	if to := Prints(c.Process.Pid); len(to) != 2 || !strings.HasPrefix(to[0], "pipe:[") || to[1] != os.DevNull {
		t.Errorf("it prints to %q", to)
	}
}

func TestASignalReachesTheProcessThatWasMeantOrNobody(t *testing.T) {
	c, p := start(t, "cat")
	earlier := p
	earlier.Start--
	if err := earlier.Signal(syscall.SIGKILL); err == nil {
		t.Error("a process got the signal of an earlier one with its number")
	}
	if _, ok := Read(p.PID); !ok {
		t.Fatal("it is dead")
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, ok := Read(p.PID); !ok { // a zombie is not there any more
			break
		}
		if time.Now().After(end) {
			t.Fatal("it lives")
		}
	}
	_ = c.Wait()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("42 (sh) " + numbers))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if p, ok := parse(42, stat); ok && p.PID != 42 {
			t.Errorf("%+v", p)
		}
	})
}
