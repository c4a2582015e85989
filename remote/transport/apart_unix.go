//go:build unix

package transport

import (
	"os/exec"
	"syscall"
)

// apart starts a program in a session, and so in a process group, of its own.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// end kills a program and what it has started in its group.
func end(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
