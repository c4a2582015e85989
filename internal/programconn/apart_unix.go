//go:build unix

package programconn

import (
	"os/exec"
	"syscall"
)

// apart gives a program a session of its own, which has no terminal.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// hangUp tells a program and what it has started that nobody listens any more, as
// OpenSSH tells its proxy.
func hangUp(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGHUP) }

func killAll(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
