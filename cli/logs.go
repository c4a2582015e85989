package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/naming"
)

func (a *app) logsCommand() *cobra.Command {
	rank, follow, raw := "0", false, false
	c := &cobra.Command{
		Use: "logs [RUN|CLUSTER]", Short: "what a rank printed (rank 0 of the newest run)",
		Args: cobra.MaximumNArgs(1),
	}
	c.Flags().StringVar(&rank, "rank", rank, `which rank, "all", or "launcher-N" for the launcher on node N`)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes until the run has ended, on a terminal also with a line that has no end yet")
	c.Flags().BoolVar(&raw, "raw", false, "the bytes as they were printed, into a file or a pipe: a terminal would obey them")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		if raw && a.json {
			return usageError{errors.New("logs --raw prints bytes and --json prints objects; leave one of them out")}
		}
		run, err := w.FindRun(arg(args, 0))
		if err != nil {
			return err
		}
		number, err := naming.Rank(rank, run)
		if err != nil {
			return usageError{err}
		}
		if follow && run.EndedAt == nil {
			if err := w.Attach(ctx, run.Cluster); err != nil {
				return err
			}
		}
		a.stale(w, run)
		l := logReader{w: w, run: run.ID, follow: follow, p: a.printer(w), sizes: map[int]int64{}}
		l.ranks = append(l.ranks, wanted(number, run)...)
		l.p.rank = allRanks
		if raw {
			if l.raw, err = a.exact("what a rank printed", "logs --raw is for a file or a pipe, logs alone for a terminal"); err != nil {
				return err
			}
		}
		return l.read(ctx)
	})
	return c
}

// stale says that a run goes on and nobody brings here what it prints.
func (a *app) stale(w *workbench.Workbench, run event.RunInfo) {
	if w.History().Behind(run) {
		a.hint("nobody watches run %s: what it printed since dlwb last looked is not here; dlwb attach %s or dlwb logs -f %s brings it", run.ID, run.Cluster, run.ID)
	}
}

func wanted(number int, run event.RunInfo) []int {
	if number != allRanks {
		return []int{number}
	}
	var ranks []int
	for _, r := range run.Ranks {
		ranks = append(ranks, r.Rank)
	}
	return ranks
}

// logReader prints stored logs, and what they grow by.
type logReader struct {
	w      *workbench.Workbench
	run    string
	ranks  []int
	follow bool
	raw    io.Writer // nil: lines through the sanitizer
	p      *printer
	sizes  map[int]int64
}

// followEvery is how often a followed log is looked at.
const followEvery = 100 * time.Millisecond

func (l *logReader) read(ctx context.Context) error {
	defer l.p.open.Leave()
	for {
		_, over := l.w.Ended(l.run)
		for _, rank := range l.ranks {
			if err := l.rank(rank); err != nil {
				return err
			}
		}
		l.p.showOpen()
		if over || !l.follow {
			return l.p.endLogs(event.Event{Run: l.run, Time: time.Now()})
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// rank prints what is stored of one log and was not printed yet.
func (l *logReader) rank(rank int) error {
	if l.raw == nil {
		return l.p.log(event.Event{Run: l.run, Time: time.Now()}, event.LogGrew{Rank: rank, Size: 1 << 62})
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := l.w.ReadLog(l.run, rank, l.sizes[rank], buf)
		l.sizes[rank] += int64(n)
		if _, err := l.raw.Write(buf[:n]); err != nil {
			return err
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
