//go:build !unix

package console

// CannotSuspend says why this program can't be put aside with Ctrl-Z.
func CannotSuspend() string { return "this system has no job control" }
