package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/event"
)

// errRefused is the error of a command that was not agreed to.
var errRefused = errors.New("not agreed to; nothing was changed")

// yesFlag adds --yes to a command that asks before it destroys.
func yesFlag(c *cobra.Command, yes *bool) {
	c.Flags().BoolVarP(yes, "yes", "y", false, "do it without asking; where input is no terminal, and with --json, nothing is asked either")
}

// asks reports whether a person can be asked. Where none can, the command line
// was written by a script, which means what it says.
func (a *app) asks() bool { return !a.json && a.atTerminal() }

// agree asks before something is destroyed: it shows what goes and what it
// costs to keep, and wants a yes, or the name where one must be typed. Several
// questions are answered together; name is typed then for all of them.
func (a *app) agree(ctx context.Context, yes bool, questions ...event.Question) error {
	if yes || !a.asks() || len(questions) == 0 {
		return nil
	}
	name := questions[0].Name
	for _, q := range questions {
		writeQuestion(a.err, q)
		if len(questions) > 1 && q.Name != "" {
			name = "all"
		}
	}
	want := "[y/N] "
	if name != "" {
		want = sanitize.Sprintf("type %s to agree: ", name)
	}
	said, interrupted := a.askUntil(want)
	switch {
	case interrupted || ctx.Err() != nil:
		return context.Canceled
	case name != "" && said == name, name == "" && (strings.EqualFold(said, "y") || strings.EqualFold(said, "yes")):
		return nil
	}
	return errRefused
}

func writeQuestion(out io.Writer, q event.Question) {
	sanitize.Fprintf(out, "%s\n", q.Title)
	for _, f := range q.Facts {
		sanitize.Fprintf(out, "  %-10s %s\n", f.Label, f.Text)
	}
}
