//go:build !linux

package telemetry

import (
	"os/exec"
	"syscall"
)

func childAttr() *syscall.SysProcAttr { return nil }

func endChild(cmd *exec.Cmd) error { return cmd.Process.Kill() }
