package telemetry

import (
	"os/exec"
	"syscall"
)

// childAttr gives a child a group of its own and has the kernel end it when the
// thread that started it ends: also an agent that is killed leaves none behind.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func endChild(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
