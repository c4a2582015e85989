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
	"github.com/dlwb/dlwb/workbench/chain"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/sweep"
)

func (a *app) sweepCommand() *cobra.Command {
	var goal workbench.Goal
	var again, show bool
	c := &cobra.Command{
		Use: "sweep [PROFILE]", Short: "run the trials of a profile's sweep, several at once, and find the best",
		Long: `Runs the command of a profile once for each trial of its sweep, on the nodes of its
cluster, which is brought up when it is not there, or each as a job of slurm,
kubernetes, sagemaker or ecs. Each trial is a run of its own: dlwb runs, logs, compare
and export know it. Where machines are paid for, the budget and the lifetime of the
profile are those of all trials together.

Ctrl-C, and even kill -9, leave the trials that run going on; dlwb sweep goes on with
them, and runs none twice. A sweep that is done shows its leaderboard; --again
begins it anew. A change of the command or of what is varied makes another sweep;
one of metric, mode or stop does not, and the leaderboard follows it. Trials that had
other code keep their values; a warning names them.`,
		Args: cobra.MaximumNArgs(1),
	}
	a.allowFlags(c)
	a.secretFlag(c)
	a.trustFlag(c)
	setupFlags(c, &goal)
	c.Flags().BoolVar(&goal.Down, "down", false, "remove the cluster in the end")
	c.Flags().BoolVar(&again, "again", false, "begin a sweep anew that was begun before")
	c.Flags().BoolVar(&show, "show", false, "show the leaderboard as it is now, and run nothing")
	c.MarkFlagsMutuallyExclusive("again", "show")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		if show {
			return a.showSweep(w, args)
		}
		plan, err := a.planOf(ctx, w, args)
		if err == nil {
			err = hasSweep(plan.Profile)
		}
		if err != nil {
			return err
		}
		return a.sweep(ctx, w, plan, goal, again)
	})
	return c
}

func hasSweep(p *profiles.Profile) error {
	if p.Sweep.Given() {
		return nil
	}
	return usageError{fmt.Errorf("%w: add sweep: {parameters: {lr: [0.1, 0.01]}}", profiles.Errors{p.Fault("sweep", "sweep", "the profile has none", "", "dlwb help profile shows its keys")})}
}

// showSweep shows what is on record, and asks nobody.
func (a *app) showSweep(w *workbench.Workbench, args []string) error {
	path, err := profileOf(w, args)
	if err != nil {
		return err
	}
	p, err := profiles.LoadToShow(path)
	if err == nil {
		err = hasSweep(p)
	}
	if err != nil {
		return err
	}
	board, err := workbench.NewFlows(w).Board(p)
	if err != nil {
		return err
	}
	return a.answer(board, func(out io.Writer) { writeBoard(out, board) })
}

// sweep runs the trials and prints how they go.
func (a *app) sweep(ctx context.Context, w *workbench.Workbench, plan *planning.Plan, goal workbench.Goal, again bool) error {
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	a.skip = ofTrials()
	var out workbench.SweepOutcome
	var err error
	a.narrate(w, plan.Cluster, enough, func() { out, err = workbench.NewFlows(w).Sweep(ctx, plan, goal, again) })
	if !a.json && out.Board.Trials > 0 {
		writeBoard(a.out, out.Board)
	}
	if ctx.Err() != nil && out.Board.Running > 0 {
		a.hint("%d trials go on; dlwb sweep goes on with them, dlwb down %s ends everything", out.Board.Running, plan.Cluster)
	}
	if err != nil {
		return a.conclude(w, out.Outcome, err)
	}
	if out.Board.Done+out.Board.Early == 0 {
		return runError{ExitFailed}
	}
	return a.conclude(w, out.Outcome, nil)
}

// ofTrials leaves out what a single trial prints and does: there are many at once. What
// is waited for until the first one runs is told, as machines may be made for it.
func ofTrials() func(event.Event) bool {
	begun := false
	return func(e event.Event) bool {
		switch e.Body.(type) {
		case event.RunStarted:
			begun = true
			return false
		case event.RunEnded, event.Noticed:
			return false
		case event.StepStarted:
			return e.Run != "" && begun
		}
		return e.Run != ""
	}
}

func writeBoard(out io.Writer, b event.SweepChanged) {
	for _, line := range sweep.Text(b) {
		sanitize.Fprintf(out, "%s\n", line)
	}
}

func (a *app) chainCommand() *cobra.Command {
	var goal workbench.Goal
	var force bool
	c := &cobra.Command{
		Use: "chain [PROFILE]", Short: "run a profile behind those that it names in after",
		Long: `Runs the profiles that PROFILE names in after, those that they name, and PROFILE
itself, each when those before it are done. The results of one are a channel of the
next, named like its profile (DLWB_CHANNEL_NAME). A step whose profile, code, inputs
and predecessors are as they were is skipped. One that fails ends the chain. All
are planned before the first begins: where one can't run, none is begun.`,
		Args: cobra.MaximumNArgs(1),
	}
	a.allowFlags(c)
	a.secretFlag(c)
	c.Flags().BoolVar(&goal.Down, "down", false, "remove the cluster of each step when it is done")
	c.Flags().BoolVar(&force, "force", false, "run every step, also what is done and unchanged")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		path, err := profileOf(w, args)
		if err != nil {
			return err
		}
		p := a.printer(w)
		failed := new(chain.Failed)
		err = chain.Run(ctx, chain.Owner{
			Plan: func(ctx context.Context, path string) (*planning.Plan, error) {
				return a.planOf(ctx, w, []string{path})
			},
			Sent: w.Plans().Sent, Done: workbench.NewFlows(w).DoneWith, Results: w.ResultsOf,
			Do: func(ctx context.Context, plan *planning.Plan, key string) (string, *event.RunEnded, error) {
				step := goal
				step.Key = key
				var out workbench.Outcome
				err := error(nil)
				a.narrate(w, plan.Cluster, func() {}, func() { out, err = w.Do(ctx, plan, step) })
				if err != nil {
					err = a.conclude(w, out, err)
				}
				return out.Run, out.Ended, err
			},
			Tell: func(s event.ChainStep) { _ = p.one(event.Event{Time: timeNow(), Cluster: s.Profile, Body: s}) },
		}, path, force)
		if errors.As(err, &failed) {
			a.report(failed.Fault)
			return runError{max(failed.Code, ExitFailed)}
		}
		return err
	})
	return c
}
