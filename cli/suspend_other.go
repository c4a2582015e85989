//go:build !unix

package cli

// cannotSuspend says why this program can't be put aside with Ctrl-Z.
func cannotSuspend() string { return "this system has no job control" }
