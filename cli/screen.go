package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/dlwb/dlwb/cli/browse"
	"github.com/dlwb/dlwb/cli/console"
	"github.com/dlwb/dlwb/cli/told"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/market"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/tunnel"
)

// opening says what the screen shows first.
type opening struct {
	cluster string         // this cluster
	run     *event.RunInfo // or the record of this run
	plan    *planning.Plan // or this plan, which is begun
	goal    workbench.Goal
}

// open shows the screen until the user leaves it. What goes on without it is
// said at the end, in the terminal that stays.
func (a *app) open(ctx context.Context, w *workbench.Workbench, o opening) error {
	if o.plan != nil {
		if err := w.Meet(ctx, o.plan); err != nil {
			return err
		}
		a.onScreen.Store(true) // from here on nobody can be asked
		if err := w.StartPlan(ctx, o.plan, o.goal); err != nil {
			return err
		}
		o.cluster = o.plan.Cluster
	} else if o.cluster != "" {
		if err := w.Attach(ctx, o.cluster); err != nil {
			return err
		}
	}
	w.Tunnels().Keep()
	browser := browse.New(w.Dir())
	defer browser.Close()
	a.onScreen.Store(true)
	ctx, gone := context.WithCancel(ctx)
	defer gone()
	res, err := ui.Run(ctx, bench{w, w.History(), w.Tunnels(), w.Cleaner(), w.Plans(), w.Market(), &a.door}, ui.Options{Cluster: o.cluster, Run: o.run, PID: os.Getpid(), CannotSuspend: console.CannotSuspend(),
		ReadOnly: a.readOnly, Theme: a.theme, Glyphs: a.glyphs, OpenURL: browser.Open, Input: console.Typed(a.in, gone), Continued: console.Continued(ctx)})
	a.onScreen.Store(false)
	if err != nil {
		return err
	}
	return a.farewell(w, res)
}

// bench is the workbench with what the screen can't know of profiles, and of
// the terminal.
type bench struct {
	*workbench.Workbench
	*history.History
	*tunnel.Tunnels
	*cleanup.Cleaner
	*planning.Maker
	*market.Market
	door *door
}

// Subscribe implements ui.Bench.
func (b bench) Subscribe(cluster string) ui.Feed { return b.Workbench.Subscribe(cluster) }

// Start implements ui.Bench.
func (b bench) Start(ctx context.Context, path string) (cluster string, err error) {
	plan, err := b.Plan(ctx, path)
	if err != nil {
		return "", err
	}
	return plan.Cluster, b.StartPlan(ctx, plan, workbench.Goal{})
}

// Trust implements ui.Bench.
func (b bench) Trust(ctx context.Context, path, key string) error {
	_, err := b.Gate().TrustHash(ctx, path, key)
	return err
}

// Down implements ui.Bench; the receipt comes as an event.
func (b bench) Down(ctx context.Context, cluster string) error {
	_, err := b.TearDown(ctx, cluster, false)
	return err
}

// AskDown implements ui.Bench.
func (b bench) AskDown(_ context.Context, cluster string) (event.Question, error) {
	left, err := b.Removal(cluster)
	return left.Question(), err
}

// AskStopMachines implements ui.Bench.
func (b bench) AskStopMachines(_ context.Context, cluster string) (event.Question, error) {
	left, err := b.Removal(cluster)
	return left.StopQuestion(), err
}

// AskStop implements ui.Bench.
func (b bench) AskStop(_ context.Context, run string) (event.Question, error) {
	r, err := b.FindRun(run)
	return r.StopQuestion(), err
}

// ShellCommand implements ui.Bench.
func (b bench) ShellCommand(cluster string, node int) *exec.Cmd {
	return b.door.lend(b.Workbench.ShellCommand(cluster, node))
}

// Paths implements wizard.Drafter.
func (bench) Paths(dir string) []string { return planning.Paths(dir) }

// FieldFaults implements wizard.Drafter.
func (bench) FieldFaults(err error) []ui.FieldFault {
	var all profiles.Errors
	if !errors.As(err, &all) {
		return nil
	}
	faults := make([]ui.FieldFault, len(all))
	for i, e := range all {
		text := e.Why
		if text == "" {
			text = e.What
		}
		switch {
		case e.Nearest != "":
			text += fmt.Sprintf("; did you mean %q?", e.Nearest)
		case e.Next != "":
			text += "; " + e.Next
		}
		faults[i] = ui.FieldFault{Key: e.Key, Text: text}
	}
	return faults
}

// farewell says what goes on, and takes the exit code from the run that was
// looked at.
func (a *app) farewell(w *workbench.Workbench, res ui.Result) error {
	for _, c := range res.Running {
		if !w.Stays(c) {
			continue // another dlwb has taken it down, or does
		}
		sanitize.Fprintf(a.out, "cluster %s is still up; dlwb attach %s shows it, dlwb down %s removes it\n", c, c, c)
		if n := len(w.Tunnels().Kept(c)); n > 0 {
			sanitize.Fprintf(a.out, "tunnels to it stay open: %d; dlwb forward %s --close closes them\n", n, c)
		}
	}
	if text := resultsText(w, res.Run); res.Ended != nil && text != "" {
		defer sanitize.Fprintf(a.out, "%s\n", text)
	}
	if res.Receipt != nil {
		fmt.Fprintln(a.out, told.Receipt(*res.Receipt))
		if !res.Receipt.Proven {
			return runError{ExitUnresolved}
		}
	}
	if res.Ended != nil {
		fmt.Fprintln(a.out, told.Run(*res.Ended))
		if res.Ended.ExitCode != 0 {
			return runError{res.Ended.ExitCode}
		}
	}
	return nil
}
