package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/cleanup"
)

// rmAnswer is what rm answers with --json.
type rmAnswer struct {
	cleanup.Found
	Removed   bool               `json:"removed"`
	Compacted *cleanup.Compacted `json:"compacted"`
}

func (a *app) rmCommand() *cobra.Command {
	var sel cleanup.Selection
	var older string
	var dry, yes, compact bool
	c := &cobra.Command{
		Use: "rm [RUN...]", Short: "remove old runs with their logs, results and curves, or forget profiles",
		Long: `Removes runs that have ended: logs, results in dlwb's own directory, curves,
telemetry, recipes. Results that you had brought to a place of your own stay
there. A run with a star goes only when it is named, one that is going on never.
Profiles are forgotten: the files stay.

It shows what goes and how much room that takes; on a terminal it asks first.
--yes answers for scripts; where the input is no terminal nothing is asked.
The room in the store is used again, and goes back to the disk with --compact
or dlwb compact.`,
		Example: "  dlwb rm charlm-0314-0926\n  dlwb rm --older-than 30d --dry-run\n  dlwb rm --all-ended --compact\n  dlwb rm --profile old/dlwb.yaml",
	}
	f := c.Flags()
	f.StringArrayVar(&sel.Profiles, "profile", nil, "forget the profile of this path; may be given several times")
	f.StringVar(&older, "older-than", "", "runs that ended longer ago than this: 12h, 30d")
	f.BoolVar(&sel.AllEnded, "all-ended", false, "every run that has ended")
	f.BoolVar(&dry, "dry-run", false, "say what would be removed, and change nothing")
	f.BoolVar(&compact, "compact", false, "give the room back to the disk then")
	yesFlag(c, &yes)
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		sel.Runs = args
		if older != "" {
			var err error
			if sel.OlderThan, err = profiles.ParseDuration(older); err == nil && sel.OlderThan <= 0 {
				err = fmt.Errorf("%s: nothing is older than that by itself; --all-ended is every run that has ended", older)
			}
			if err != nil {
				return usageError{fmt.Errorf("--older-than %w", err)}
			}
		}
		if len(args)+len(sel.Profiles) == 0 && older == "" && !sel.AllEnded {
			return usageError{errors.New("name runs, or say --older-than 30d, --all-ended or --profile PATH; dlwb runs lists runs")}
		}
		plan, err := w.Cleaner().PlanCleanup(sel)
		if err != nil {
			return err
		}
		return a.remove(ctx, w, rmAnswer{Found: plan}, dry, yes, compact)
	})
	return c
}

// remove removes what was found, when that is agreed to.
func (a *app) remove(ctx context.Context, w *workbench.Workbench, found rmAnswer, dry, yes, compact bool) error {
	if dry {
		return a.answer(found, func(out io.Writer) { writeQuestion(out, found.Question()) })
	}
	if !found.Empty() {
		if err := a.agree(ctx, yes, found.Question()); err != nil {
			return err
		}
	}
	if err := w.Cleaner().CleanUp(found.Found); err != nil {
		return err
	}
	found.Removed = !found.Empty()
	if compact {
		made, err := w.Cleaner().Compact()
		if err != nil {
			return err
		}
		found.Compacted = &made
	}
	return a.answer(found, func(out io.Writer) { writeRemoved(out, found) })
}

func writeRemoved(out io.Writer, r rmAnswer) {
	if r.Empty() {
		fmt.Fprintln(out, "there is nothing to remove")
	}
	for _, run := range r.Runs {
		sanitize.Fprintf(out, "removed %s: %s\n", run.Run, run.Text())
	}
	for _, path := range r.Profiles {
		sanitize.Fprintf(out, "forgot %s\n", path)
	}
	for _, k := range r.Kept {
		sanitize.Fprintf(out, "kept %s: %s\n", k.Run, k.Why)
	}
	if r.Compacted != nil {
		sanitize.Fprintf(out, "%s\n", r.Compacted.Text())
	}
}

func (a *app) compactCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compact", Short: "give the room of removed runs in the store back to the disk", Args: cobra.NoArgs,
		Long: `Writes the store anew without the holes that removed runs and old telemetry left.
It needs as much free room on the disk as the store takes; runs go on meanwhile.`,
		RunE: a.with(func(_ context.Context, w *workbench.Workbench, _ []string) error {
			made, err := w.Cleaner().Compact()
			if err != nil {
				return err
			}
			return a.answer(made, func(out io.Writer) { sanitize.Fprintf(out, "%s\n", made.Text()) })
		}),
	}
}
