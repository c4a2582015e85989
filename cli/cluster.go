package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/told"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

func (a *app) stopCommand() *cobra.Command {
	var machines, yes bool
	c := &cobra.Command{
		Use: "stop [RUN|CLUSTER]", Short: "end a run and keep its cluster", Args: cobra.MaximumNArgs(1),
		Long: `Ends a run; its cluster stays up and goes on to cost what it costs. With
--machines the cluster's machines are stopped too, where the provider can do
that: their disks stay and only those cost, until dlwb start or dlwb down.

On a terminal it shows what ends and asks first.`,
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			if machines {
				return a.stopMachines(ctx, w, arg(args, 0), yes)
			}
			run, err := w.FindRun(arg(args, 0))
			if err != nil {
				return err
			}
			if run.EndedAt == nil {
				if err := a.agree(ctx, yes, run.StopQuestion()); err != nil {
					return err
				}
			}
			if err := w.Stop(ctx, run.ID); err != nil {
				return err
			}
			ended, _ := w.Ended(run.ID)
			return a.answer(stopAnswer{run.ID, ended, run.EndedAt}, func(out io.Writer) {
				before := ""
				if at := run.EndedAt; at != nil {
					before = "it had already ended, at " + at.Local().Format("2006-01-02 15:04:05") + ", " + units.Clock(time.Since(*at)) + " ago: "
				}
				fmt.Fprintf(out, "run %s: %s%s\n", run.ID, before, told.Run(ended))
			})
		}),
	}
	c.Flags().BoolVar(&machines, "machines", false, "stop the machines of the cluster too, and keep their disks")
	yesFlag(c, &yes)
	return c
}

// stopMachines stops the machines of a cluster when that is agreed to.
func (a *app) stopMachines(ctx context.Context, w *workbench.Workbench, cluster string, yes bool) error {
	left, err := w.Removal(cluster)
	if err != nil {
		return err
	}
	if err := a.agree(ctx, yes, left.StopQuestion()); err != nil {
		return err
	}
	return a.switchMachines(ctx, w, cluster, w.StopMachines)
}

func (a *app) downCommand() *cobra.Command {
	var all, yes bool
	c := &cobra.Command{
		Use: "down [CLUSTER]", Short: "remove a cluster and everything in it, and prove it", Args: cobra.MaximumNArgs(1),
		Long: `Removes a cluster and everything in it, looks again, and prints the receipt. A run
that is going on is stopped first, and its results are brought home; so are those
of earlier runs that did not come home before.

On a terminal it shows what goes, what of it is not saved, and what it costs to
keep, and asks first: the name of the cluster is to be typed where a run is
going on, or it costs more than $1 an hour. Where results do not come home then
either, it says why and asks again. --yes answers for scripts. Where
the input is no terminal, and with --json, nothing is asked: a script means
what it says, and is warned of what is lost.`,
	}
	c.Flags().BoolVar(&all, "all", false, "every cluster")
	yesFlag(c, &yes)
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		names, err := a.toRemove(ctx, w, args, all)
		if err != nil {
			return err
		}
		if !yes && a.asks() {
			var questions []event.Question
			for _, name := range names {
				left, err := w.Removal(name)
				if err != nil {
					return err
				}
				questions = append(questions, left.Question())
			}
			if err := a.agree(ctx, yes, questions...); err != nil {
				return err
			}
		}
		return a.downAll(ctx, w, names, yes)
	})
	return c
}

// toRemove are the clusters that a command line of down names.
func (a *app) toRemove(ctx context.Context, w *workbench.Workbench, args []string, all bool) ([]string, error) {
	if !all {
		return []string{arg(args, 0)}, nil
	}
	if len(args) > 0 {
		return nil, usageError{errors.New("--all is every cluster: leave the name out, or --all")}
	}
	clusters, err := w.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		a.hint("there are no clusters")
	}
	return names, nil
}

// downAll removes clusters one after the other. One that can't be removed does
// not keep the others: what is up may cost money.
func (a *app) downAll(ctx context.Context, w *workbench.Workbench, names []string, yes bool) error {
	var first error
	for _, name := range names {
		err := a.down(ctx, w, name, yes)
		if first == nil {
			first = err
		} else {
			a.report(err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return first
}

// down removes a cluster. What does not come home now is asked for once more: only now
// it is known that it is lost.
func (a *app) down(ctx context.Context, w *workbench.Workbench, name string, yes bool) error {
	c, err := w.FindCluster(name)
	if err != nil {
		return err
	}
	// A teardown that was begun is finished, also when nobody listens.
	a.narrate(w, c.Name, func() {}, func() { _, err = w.TearDown(ctx, c.Name, !yes && a.asks()) })
	var unsaved *workbench.UnsavedError
	if !errors.As(err, &unsaved) || ctx.Err() != nil {
		return err
	}
	q := event.Question{Title: "Remove " + c.Name + " with what did not come home?"}
	q.Add("lost", unsaved.Left)
	if err := a.agree(ctx, yes, q); err != nil {
		return err
	}
	a.narrate(w, c.Name, func() {}, func() { _, err = w.TearDown(ctx, c.Name, false) })
	return err
}

func (a *app) pullCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pull [RUN|CLUSTER] [DIR]", Short: "bring the results of a run home again", Args: cobra.MaximumNArgs(2),
		Long: `Brings home what a run wrote and has not come home, or has changed since: of the
files below results.paths those that were not there before the run, and what its
ranks left in DLWB_RESULTS. A cluster stands for its newest run.

They go where they go at the end of the run (results.to in the profile, else
dlwb's own record of the run), or to DIR. A file there that is not of this run,
or was changed here, is not replaced: what comes then has the run's id in its
name.`,
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			run, err := w.FindRun(arg(args, 0))
			if err != nil {
				return err
			}
			got, err := w.Pull(ctx, run.ID, arg(args, 1))
			if err != nil && ctx.Err() != nil {
				a.hint("bringing home what run %s wrote was interrupted; %s; dlwb pull %s goes on", run.ID, kept(got.Files, got.Bytes, got.Dir), strings.Join(args, " "))
			}
			if err != nil {
				return err
			}
			return a.answer(got, func(out io.Writer) {
				for _, left := range got.Left {
					sanitize.Fprintf(out, "note: %s\n", left)
				}
				sanitize.Fprintf(out, "%d new; %s\n", got.New, got.Text())
			})
		}),
	}
}
