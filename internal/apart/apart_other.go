//go:build !unix

package apart

import "os/exec"

// Set changes nothing: there are no sessions here.
func Set(*exec.Cmd) {}

// HangUp does nothing: the program sees the end of its input.
func HangUp(*exec.Cmd) {}

// Kill kills a program.
func Kill(c *exec.Cmd) { _ = c.Process.Kill() }
