package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

func (a *app) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use: "attach [CLUSTER|RUN]", Short: "watch a run: everything so far, then what comes; a past run opens its record",
		Long: `Shows a run that was left or whose dlwb was killed: the whole log, the whole
chart, then what comes. On a terminal it opens the screen. Where another dlwb
watches already, this one looks on, and takes over if the other one ends.

A run that is over, and whose cluster is gone or has run something else since,
opens on the screen as it is on record; without a terminal its summary is
printed. The exit code is the run's own.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			if run, past := pastRun(w, arg(args, 0)); past {
				return a.openPast(ctx, w, run)
			}
			c, err := w.FindCluster(arg(args, 0))
			if err != nil {
				return err
			}
			if a.screen() {
				return a.open(ctx, w, opening{cluster: c.Name})
			}
			return a.attach(ctx, w, c.Name, c.CreatedAt)
		}),
	}
}

// pastRun is the run that a word names, when there is nothing of it to watch:
// it has ended, and is not the newest of a cluster that is up.
func pastRun(w *workbench.Workbench, word string) (event.RunInfo, bool) {
	run, err := w.FindRun(word)
	if err != nil || word == "" || run.EndedAt == nil {
		return run, false
	}
	c, err := w.FindCluster(word)
	if err != nil {
		return run, true // nothing of it is up
	}
	newest, err := w.FindRun(c.Name)
	return run, err == nil && newest.ID != run.ID
}

// openPast shows the record of a run.
func (a *app) openPast(ctx context.Context, w *workbench.Workbench, run event.RunInfo) error {
	if a.screen() {
		return a.open(ctx, w, opening{run: &run})
	}
	results, err := w.ResultsOf(run.ID)
	if err != nil {
		return err
	}
	if err := a.answer(pastAnswer{run, results}, func(out io.Writer) { writePast(out, run, results) }); err != nil {
		return err
	}
	if run.ExitCode != nil && *run.ExitCode != 0 {
		return runError{*run.ExitCode}
	}
	return nil
}

func writePast(out io.Writer, run event.RunInfo, results event.RunResults) {
	row := func(label, text string) {
		if text != "" {
			sanitize.Fprintf(out, "%-9s %s\n", label, text)
		}
	}
	row("run", run.ID)
	row("ended", string(run.Verdict)+": "+run.Cause)
	row("command", run.Command)
	row("started", run.StartedAt.Local().Format("2006-01-02 15:04:05"))
	row("took", units.Seconds(run.Duration))
	if run.LastLoss != nil {
		row("loss", fmt.Sprintf("%.4g", *run.LastLoss))
	}
	if run.Cost > 0 {
		row("cost", units.USD(run.Cost))
	}
	row("note", run.Note)
	if results.Files > 0 {
		row("results", event.SizeText(results.Files, results.Bytes)+" in "+results.Dir)
	}
	row("lost", results.Lost)
	row("next", "dlwb logs "+run.ID+", dlwb metrics "+run.ID+", dlwb runbook "+run.ID+" tell more")
}

// attach prints the events of a cluster, made at a time, from the beginning until its
// run has ended.
func (a *app) attach(ctx context.Context, w *workbench.Workbench, cluster string, made time.Time) error {
	run, live := w.LiveRun(cluster)
	if !live {
		last, err := w.FindRun(cluster)
		if err == nil && last.StartedAt.Before(made) { // on a cluster of that name that is gone
			err = &event.Fault{What: "watch cluster " + cluster, Node: -1, Why: "nothing was run on it yet",
				Next: "dlwb run PROFILE runs something on it; dlwb attach " + last.ID + " shows what ran on the one before"}
		}
		if err != nil {
			return err
		}
		run = last.ID
	}
	sub := a.samplesIn(w.Subscribe(cluster))
	defer sub.Close()
	p := a.printer(w)
	ctx, enough := context.WithCancel(ctx)
	defer enough()
	watched := make(chan error, 1)
	go func() {
		_, err := w.Watch(ctx, cluster)
		watched <- err
	}()
	reading, stop := context.WithCancel(context.Background())
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		p.follow(reading, sub, enough)
	}()
	err := <-watched
	stop()
	<-printed
	_ = p.print(sub.Waiting())
	p.open.Leave()
	if err != nil {
		return a.conclude(w, workbench.Outcome{Cluster: cluster, Run: run}, err)
	}
	ended, ok := w.Ended(run)
	if !ok {
		return nil
	}
	return a.conclude(w, workbench.Outcome{Cluster: cluster, Run: run, Ended: &ended}, nil)
}

// arg is the i-th argument, or nothing.
func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
