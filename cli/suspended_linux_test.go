package cli

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A screen that kill -STOP stopped could not put the terminal back; the shell sets it
// for itself, and fg leaves it so. The screen has to take it again.
func TestTheScreenHasItsKeysAgainAfterItWasStoppedFromOutside(t *testing.T) {
	b := newBed(t)
	b.env = append(b.env, "TERM=xterm-256color")
	x := b.onTerminal(100, 30)
	before, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	x.waitFor("Nothing here yet")
	raw, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	if err != nil || raw.Lflag&unix.ICANON != 0 {
		t.Fatalf("the screen has not set the terminal: %+v %v", raw, err)
	}
	for range 2 { // again and again
		x.signal(t, syscall.SIGSTOP)
		for limit := time.Now().Add(time.Minute); !x.stopped(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatal("it is not stopped")
			}
		}
		if err := unix.IoctlSetTermios(int(x.tty.Fd()), unix.TCSETS, before); err != nil { // as a shell does
			t.Fatal(err)
		}
		x.signal(t, syscall.SIGCONT)
		for limit := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			if now, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS); err == nil && now.Lflag&unix.ICANON == 0 {
				break
			}
			if time.Now().After(limit) {
				t.Fatal("the terminal was not taken back: keys come at the end of a line, and are echoed")
			}
		}
	}
	x.types("?")
	x.waitFor("put dlwb aside") // in the help, which ? opens
	x.types("\x03")
	if code := x.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// stopped reports whether the program is stopped by a signal.
func (x *terminal) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", x.pid))
	return err == nil && strings.HasPrefix(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " T")
}

func (x *terminal) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(x.pid, sig); err != nil {
		t.Fatal(err)
	}
}
