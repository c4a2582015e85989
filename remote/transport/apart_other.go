//go:build !unix

package transport

import "os/exec"

func apart(*exec.Cmd) {}

func end(c *exec.Cmd) { _ = c.Process.Kill() }
