package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/workbench"
)

func (a *app) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use: "attach [CLUSTER|RUN]", Short: "watch a run that is going on: everything so far, then what comes",
		Long: `Shows a run that was left or whose dlwb was killed: the whole log, the whole
chart, then what comes. On a terminal it opens the screen. Where another dlwb
watches already, this one looks on, and takes over if the other one ends.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			c, err := w.FindCluster(arg(args, 0))
			if err != nil {
				return err
			}
			if a.screen() {
				return a.open(ctx, w, opening{cluster: c.Name})
			}
			return a.attach(ctx, w, c.Name)
		}),
	}
}

// attach prints a cluster's events from the beginning until its run has ended.
func (a *app) attach(ctx context.Context, w *workbench.Workbench, cluster string) error {
	run, live := w.LiveRun(cluster)
	if !live {
		last, err := w.FindRun(cluster)
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
