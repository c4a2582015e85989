package cli

import (
	"context"
	"errors"
	"syscall"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/trust"
)

// The exit codes of dlwb itself. They are stable. A command that ends with a
// run (demo, run, attach) exits with the run's own code: that of the rank that
// failed first, 128+n for a rank that signal n ended, 124 for a run that hung,
// 130 for one that was stopped.
const (
	ExitOK         = 0
	ExitFailed     = 1
	ExitUsage      = 2
	ExitUnresolved = 3
	ExitBusy       = 4
	ExitUntrusted  = 5
	ExitInterrupt  = 130
)

// ExitCodes says what each exit code means, for the help and the reference.
var ExitCodes = []struct {
	Code int
	Doc  string
}{
	{ExitOK, "done; for a run: every rank ended with code 0"},
	{ExitFailed, "it could not be done; the message says what, why and what to do next"},
	{ExitUsage, "the command line or the profile has errors; nothing was done"},
	{ExitUnresolved, "teardown could not prove that everything is gone (UNRESOLVED)"},
	{ExitBusy, "another dlwb is changing the cluster just now"},
	{ExitUntrusted, "the profile is not trusted: nothing was run, asked or connected to"},
	{ExitInterrupt, "interrupted (also: nobody reads the output any more), or the run was stopped"},
}

// usageError is a fault of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// runError carries the exit code of a run that did not succeed; what there is
// to say about it was said by events.
type runError struct{ code int }

func (runError) Error() string { return "the run did not succeed" }

// unread reports whether an error says that the reader of our output has gone,
// as head does when it has seen enough.
func unread(err error) bool { return errors.Is(err, syscall.EPIPE) }

// exitCode maps an error to the exit code of the process.
func exitCode(err error) int {
	var run runError
	var unresolved *workbench.UnresolvedError
	var busy *locks.BusyError
	var usage usageError
	var profile profiles.Errors
	switch {
	case err == nil:
		return ExitOK
	case trust.Of(err) != nil:
		return ExitUntrusted
	case errors.As(err, &unresolved):
		return ExitUnresolved
	case errors.As(err, &run):
		return run.code
	case errors.As(err, &busy):
		return ExitBusy
	case errors.As(err, &usage), errors.As(err, &profile):
		return ExitUsage
	case errors.Is(err, context.Canceled), unread(err):
		return ExitInterrupt
	}
	return ExitFailed
}
