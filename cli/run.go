package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/locks"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/reading"
)

func (a *app) runCommand() *cobra.Command {
	var goal workbench.Goal
	c := &cobra.Command{
		Use: "run [PROFILE]", Short: "bring up, set up, sync, launch and watch: everything up to the results",
		Long: `Runs a profile from machines to results, on the cluster of the profile's name,
which is brought up when it is not there. On a terminal it opens the screen.

Ctrl-C leaves the run going on, except with --down; dlwb attach shows it again. When the
set-up fails (environment, code, start of the ranks), the machines stay: dlwb says what they
cost and when they end by themselves, and dlwb run goes on with them. Machines
that did not come up whole are removed again.`,
		Args: cobra.MaximumNArgs(1),
	}
	a.allowFlags(c)
	a.secretFlag(c)
	downFlag(c, &goal)
	setupFlags(c, &goal)
	c.Flags().BoolVar(&goal.Detach, "detach", false, "return when the ranks are started")
	a.trustFlag(c)
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		plan, err := a.planOf(ctx, w, args)
		if err != nil {
			return err
		}
		if a.screen() && !goal.Detach {
			return a.open(ctx, w, opening{plan: plan, goal: goal})
		}
		return a.do(ctx, w, plan, goal)
	})
	return c
}

func (a *app) upCommand() *cobra.Command {
	goal := workbench.Goal{Until: event.StepEnvironment}
	c := &cobra.Command{
		Use: "up [PROFILE]", Short: "bring the cluster up and set up Python on every node",
		Args: cobra.MaximumNArgs(1),
	}
	a.allowFlags(c)
	setupFlags(c, &goal)
	a.trustFlag(c)
	c.RunE = a.withPlan(&goal)
	return c
}

// downFlag is --down of a command that runs once.
func downFlag(c *cobra.Command, goal *workbench.Goal) {
	c.Flags().BoolVar(&goal.Down, "down", false, "remove the cluster in the end, whatever the run came to; without the screen also after Ctrl-C or a hang-up, which end the run then")
}

// setupFlags are the flags of commands that set a cluster up. --keep was said before
// machines stayed by themselves after a failed set-up; scripts may still say it.
func setupFlags(c *cobra.Command, goal *workbench.Goal) {
	c.Flags().BoolVar(&goal.RemoveOnFailure, "remove-on-failure", false, "remove a new cluster when a step before training fails, as CI wants it")
	c.Flags().BoolVar(&goal.Force, "force", false, "set up the environment again although nothing changed")
	c.Flags().BoolVar(&goal.Keep, "keep", false, "keep a new cluster also when it could not be reached")
	_ = c.Flags().MarkHidden("keep")
	c.MarkFlagsMutuallyExclusive("keep", "remove-on-failure")
}

// withPlan is a command that goes with a profile as far as a goal says.
func (a *app) withPlan(goal *workbench.Goal) func(*cobra.Command, []string) error {
	return a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		plan, err := a.planOf(ctx, w, args)
		if err != nil {
			return err
		}
		return a.do(ctx, w, plan, *goal)
	})
}

// do goes with a plan as far as the goal says and prints what happens.
func (a *app) do(ctx context.Context, w *workbench.Workbench, plan *planning.Plan, goal workbench.Goal) error {
	var outcome workbench.Outcome
	var err error
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	a.narrate(w, plan.Cluster, enough, func() { outcome, err = w.Do(ctx, plan, goal) })
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err) // whatever failed, failed because of that
	}
	return a.conclude(w, outcome, err)
}

// samplesIn leaves telemetry out of a stream that is printed as text: only JSON
// shows it.
func (a *app) samplesIn(s *reading.Subscription) *reading.Subscription {
	if a.json {
		return s
	}
	return s.WithoutSamples()
}

// narrate prints the events of a cluster while f runs, to the last one. When
// nobody reads them any more it says so by unheard and goes on without.
func (a *app) narrate(w *workbench.Workbench, cluster string, unheard, f func()) {
	sub := a.samplesIn(w.Subscribe(cluster).FromNow())
	defer sub.Close()
	p := a.printer(w)
	ctx, stop := context.WithCancel(context.Background())
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		p.follow(ctx, sub, unheard)
	}()
	f()
	stop()
	<-printed
	_ = p.print(sub.Waiting())
	p.open.Leave()
}

// follow prints events until ctx ends.
func (p *printer) follow(ctx context.Context, sub *reading.Subscription, unheard func()) {
	for ctx.Err() == nil {
		if err := p.print(sub.Next(ctx)); unread(err) {
			unheard()
			<-ctx.Done()
		}
	}
}

// conclude turns what a drive came to into what is said last and the error
// that sets the exit code. A failure that the events told is not told twice.
func (a *app) conclude(w *workbench.Workbench, o workbench.Outcome, err error) error {
	var busy *locks.BusyError
	switch {
	case errors.Is(err, context.Canceled) && o.Run != "" && o.Receipt == nil:
		if _, over := w.Ended(o.Run); over {
			r, _ := w.ResultsOf(o.Run)
			a.hint("run %s has ended; bringing home what it wrote was interrupted; %s; dlwb pull %s brings the rest", o.Run, kept(r.Files, r.Bytes, r.Dir), o.Run)
			return err
		}
		a.hint("run %s goes on; dlwb attach %s shows it, dlwb down %s ends everything", o.Run, o.Cluster, o.Cluster)
		return err
	case errors.As(err, &busy):
		return err
	case err != nil && o.Started && (o.Receipt == nil || o.Receipt.Proven()):
		if o.Ended != nil {
			a.whereResults(w, o.Run)
		}
		return runError{max(exitCode(err), ExitFailed)}
	case err != nil:
		if o.Receipt != nil && o.Receipt.Proven() {
			a.hint("cluster %s is gone; that could not be written down", o.Cluster)
		}
		return err
	case o.Ended != nil && o.Receipt == nil && w.Stays(o.Cluster):
		a.hint("cluster %s is still up; dlwb down %s removes it", o.Cluster, o.Cluster)
	}
	if o.Ended != nil {
		a.whereResults(w, o.Run)
	}
	if o.Ended != nil && o.Ended.ExitCode != 0 {
		return runError{o.Ended.ExitCode}
	}
	return nil
}

// kept says what of a run is home, where not all of it came.
func kept(files int, bytes int64, dir string) string {
	if files == 0 {
		return "nothing of it is here yet"
	}
	return "what came is kept: " + event.SizeText(files, bytes) + " in " + dir
}

// whereResults says last where the results of a run are, or that they are lost.
func (a *app) whereResults(w *workbench.Workbench, run string) {
	if text := resultsText(w, run); text != "" {
		a.hint("%s", text)
	}
}

// resultsText is where the results of a run are; empty where it has none.
func resultsText(w *workbench.Workbench, run string) string {
	r, err := w.ResultsOf(run)
	if err != nil || r.Files == 0 && r.Lost == "" {
		return ""
	}
	var parts []string
	if r.Files > 0 {
		parts = append(parts, event.SizeText(r.Files, r.Bytes)+" in "+r.Dir)
	}
	if r.Lost != "" {
		parts = append(parts, "what did not come home is lost: "+r.Lost)
	}
	return "results of run " + run + ": " + strings.Join(parts, "; ")
}

// hint says what a person may do next; --json has no use for it.
func (a *app) hint(format string, args ...any) {
	if !a.json {
		sanitize.Fprintf(a.err, format+"\n", args...)
	}
}
