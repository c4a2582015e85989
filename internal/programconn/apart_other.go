//go:build !unix

package programconn

import "os/exec"

func apart(*exec.Cmd) {}

// hangUp: the program sees the end of its input.
func hangUp(*exec.Cmd) {}

func killAll(c *exec.Cmd) { _ = c.Process.Kill() }
