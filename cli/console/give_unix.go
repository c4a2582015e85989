//go:build unix

package console

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// hand has a program get a terminal to itself when it starts: its process group is the
// one in the foreground, so that no process that waits for it is signalled by the keys.
// back puts the group of this process there again.
func hand(program *exec.Cmd, tty *os.File) (back func()) {
	program.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: int(tty.Fd())}
	program.Cancel = func() error { return program.Process.Signal(syscall.SIGHUP) } // as when the terminal is gone
	return func() {
		signal.Ignore(syscall.SIGTTOU) // which stops who sets this from the background
		defer signal.Reset(syscall.SIGTTOU)
		_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	}
}
