//go:build unix

// Package apart starts programs in a session of their own. Such a program has no
// terminal: Ctrl-C, which is meant for dlwb, does not reach it. What it starts in turn is
// in its process group, and ends with it.
package apart

import (
	"os/exec"
	"syscall"
)

// Set has a program start apart; it is called before the program starts.
func Set(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// HangUp tells a program and its process group that nobody listens any more.
func HangUp(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGHUP) }

// Kill kills a program and its process group.
func Kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
