package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

func (a *app) rerunCommand() *cobra.Command {
	var goal workbench.Goal
	var checkout, show bool
	c := &cobra.Command{
		Use: "rerun RUN", Short: "do a run again, with its own profile; says what differs now", Args: cobra.ExactArgs(1),
		Long: `Runs the profile that a run had, from machines to results, and says what is not as
it was then: the profile's file, the commit, what was not committed, the packages.

With --checkout the code is that of then too: where the code directory differs,
the commit is checked out into a directory of its own, with what was not
committed on top. Your working tree stays as it is.`,
	}
	c.Flags().BoolVar(&checkout, "checkout", false, "use the code of then, where it differs")
	c.Flags().BoolVar(&show, "plan", false, "show what would be done and what differs, and do nothing")
	a.allowFlags(c)
	a.secretFlag(c)
	downFlag(c, &goal)
	setupFlags(c, &goal)
	c.Flags().BoolVar(&goal.Detach, "detach", false, "return when the ranks are started")
	a.trustFlag(c)
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) (err error) {
		run, err := w.FindRun(args[0])
		if err != nil {
			return err
		}
		if err := a.checkSecrets(); err != nil {
			return err
		}
		if recipe, err := w.History().Recipe(run.ID); err == nil {
			a.planned = recipe.ProfilePath
		}
		again, err := trusted(ctx, a, w, func() (*planning.Rerun, error) { return w.Plans().PlanRerun(ctx, run.ID, checkout) })
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, again.Close()) }()
		goal.RerunOf = again.Run
		if show {
			return a.answer(rerunAnswer{run.ID, again.Differs, again.Checkout != "", again.Plan}, func(out io.Writer) {
				for _, d := range again.Differs {
					sanitize.Fprintf(out, "differs: %s\n", d)
				}
				io.WriteString(out, again.Plan.Text())
			})
		}
		for _, d := range again.Differs {
			if err := a.printer(w).one(event.Event{Time: timeNow(), Cluster: again.Plan.Cluster,
				Body: event.Noticed{Level: "warning", Text: "rerun of " + run.ID + ": " + d}}); err != nil {
				return err
			}
		}
		if a.screen() && !goal.Detach {
			return a.open(ctx, w, opening{plan: again.Plan, goal: goal})
		}
		return a.do(ctx, w, again.Plan, goal)
	})
	return c
}
