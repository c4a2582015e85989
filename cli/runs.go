package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/history"
)

func (a *app) runsCommand() *cobra.Command {
	var q history.Query
	c := &cobra.Command{
		Use: "runs", Short: "all runs as a table, newest first; filtered and sorted", Args: cobra.NoArgs,
		Long: `Lists runs, newest first. --filter takes conditions with and, or and not between
them: a name, one of = != < <= > >= ~ (contains) !~, and a value. --sort takes
names, with - in front for the greatest first. since, on, before and after a day
are conditions too: a day is all of it, here. A name is that of a series, for
its last value, best.NAME for its best, or a field of runs:

` + runFields(),
		Example: "  dlwb runs --sort best.val/loss --limit 10\n  dlwb runs --filter 'loss<2 and engine=torchrun'\n" +
			"  dlwb runs --filter 'starred=yes or note~baseline' --sort -started\n" +
			"  dlwb runs --filter 'since yesterday and verdict!=succeeded'",
		RunE: a.with(func(_ context.Context, w *workbench.Workbench, _ []string) error {
			table, err := w.History().RunTable(q)
			if bad := new(history.BadQuery); errors.As(err, &bad) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			return a.answer(table, func(out io.Writer) { writeRuns(out, table, q) })
		}),
	}
	c.Flags().StringVar(&q.Filter, "filter", "", "only runs for which this holds: 'loss<2 and engine=torchrun'")
	c.Flags().StringVar(&q.Sort, "sort", "", "by these fields or series, with commas between; -NAME is the greatest first")
	c.Flags().IntVar(&q.Limit, "limit", 0, "at most so many (default: all)")
	return c
}

// runFields lists the fields of runs for the help.
func runFields() string {
	var b strings.Builder
	for _, f := range history.Fields {
		sanitize.Fprintf(&b, "  %-11s %s\n", f.Name, f.Doc)
	}
	return strings.TrimRight(b.String(), "\n")
}

func writeRuns(out io.Writer, table history.Table, q history.Query) {
	if len(table.Runs) == 0 {
		if q.Filter != "" {
			fmt.Fprintln(out, "no run is like that; dlwb runs lists all")
			return
		}
		fmt.Fprintln(out, "no runs yet; dlwb demo makes one")
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "RUN\tVERDICT\tEXIT\tENGINE\tWORLD SIZE\tSTARTED\tTOOK\t")
	if !slices.Contains(table.Columns, "loss") {
		table.Columns = slices.Insert(table.Columns, 0, "loss")
		for i, r := range table.Runs {
			loss := ""
			if r.LastLoss != nil {
				loss = fmt.Sprintf("%.4g", *r.LastLoss)
			}
			table.Cells[i] = slices.Insert(table.Cells[i], 0, loss)
		}
	}
	for _, name := range table.Columns {
		sanitize.Fprintf(t, "%s\t", strings.ToUpper(name))
	}
	fmt.Fprintln(t, "COMMAND\tNOTE")
	for i, r := range table.Runs {
		verdict, exit, took := "running", "-", units.Clock(r.Took(timeNow()))
		if r.EndedAt != nil {
			verdict, took = string(r.Verdict), units.Seconds(r.Duration)
		}
		if r.ExitCode != nil {
			exit = fmt.Sprint(*r.ExitCode)
		}
		id := r.ID
		if r.Starred {
			id = "★ " + id
		}
		sanitize.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t", id, verdict, exit, r.Engine, r.WorldSize,
			r.StartedAt.Local().Format("2006-01-02 15:04"), took)
		for _, cell := range table.Cells[i] {
			sanitize.Fprintf(t, "%s\t", orDash(cell))
		}
		sanitize.Fprintf(t, "%s\t%s\n", r.Command, r.Note)
	}
	t.Flush()
}

func (a *app) noteCommand() *cobra.Command {
	var clear bool
	c := &cobra.Command{
		Use: "note RUN [TEXT]", Short: "write a note to a run, or show the one it has", Args: cobra.RangeArgs(1, 2),
		RunE: a.with(func(_ context.Context, w *workbench.Workbench, args []string) error {
			run, err := w.FindRun(args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 || clear {
				run.Note = arg(args, 1)
				if err := w.History().SetNote(run.ID, run.Note); err != nil {
					return err
				}
			}
			return a.answer(noteAnswer{run.ID, run.Note, run.Starred}, func(out io.Writer) {
				sanitize.Fprintf(out, "%s: %s\n", run.ID, cmp.Or(run.Note, "it has no note"))
			})
		}),
	}
	c.Flags().BoolVar(&clear, "clear", false, "remove the note")
	return c
}

func (a *app) starCommand() *cobra.Command {
	var off bool
	c := &cobra.Command{
		Use: "star [RUN]", Short: "give a run a star, to find it again by dlwb runs --filter starred=yes", Args: cobra.MaximumNArgs(1),
		RunE: a.with(func(_ context.Context, w *workbench.Workbench, args []string) error {
			run, err := w.FindRun(arg(args, 0))
			if err != nil {
				return err
			}
			if err := w.History().SetStar(run.ID, !off); err != nil {
				return err
			}
			return a.answer(noteAnswer{run.ID, run.Note, !off}, func(out io.Writer) {
				sanitize.Fprintf(out, "run %s %s\n", run.ID, map[bool]string{true: "has a star", false: "has no star"}[!off])
			})
		}),
	}
	c.Flags().BoolVar(&off, "off", false, "take the star away")
	return c
}

func (a *app) compareCommand() *cobra.Command {
	return &cobra.Command{
		Use: "compare RUN RUN…", Short: "what differs between runs, and what each came to", Args: cobra.MinimumNArgs(2),
		Long: `Shows only what is not the same in all of the runs: keys of the profile, arguments
of the command, code, packages and machines; then the last and the best value of
each series.`,
		RunE: a.with(func(_ context.Context, w *workbench.Workbench, args []string) error {
			var ids []string
			for _, word := range args {
				run, err := w.FindRun(word)
				if err != nil {
					return err
				}
				ids = append(ids, run.ID)
			}
			c, err := w.History().Compare(ids)
			if err != nil {
				return err
			}
			return a.answer(c, func(out io.Writer) { writeComparison(out, c) })
		}),
	}
}

func writeComparison(out io.Writer, c history.Comparison) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(head string, cell func(i int, r history.ComparedRun) string) {
		sanitize.Fprintf(t, "%s", head)
		for i, r := range c.Runs {
			sanitize.Fprintf(t, "\t%s", orDash(cell(i, r)))
		}
		fmt.Fprintln(t)
	}
	row("RUN", func(_ int, r history.ComparedRun) string { return r.ID })
	row("verdict", func(_ int, r history.ComparedRun) string { return string(r.Verdict) })
	row("took", func(_ int, r history.ComparedRun) string {
		return units.Seconds(r.Duration)
	})
	row("cost", func(_ int, r history.ComparedRun) string { return units.USD(r.Cost) })
	row("note", func(_ int, r history.ComparedRun) string { return r.Note })
	group := ""
	for _, d := range c.Differences {
		if d.Group != group {
			group = d.Group
			sanitize.Fprintf(t, "\n%s\n", strings.ToUpper(group))
		}
		row(d.Key, func(i int, _ history.ComparedRun) string { return shorten(d.Values[i]) })
	}
	if len(c.Differences) == 0 {
		fmt.Fprintln(t, "\nnothing else differs in what is on record")
	}
	if len(c.Metrics) > 0 {
		fmt.Fprintln(t, "\nSERIES, last (best)")
	}
	for _, m := range c.Metrics {
		row(m.Name, func(i int, _ history.ComparedRun) string { return lastAndBest(m, i) })
	}
	t.Flush()
	for _, n := range c.Notes {
		sanitize.Fprintf(out, "note: %s\n", n)
	}
}

func lastAndBest(m history.ComparedMetric, i int) string {
	if m.Last[i] == nil {
		return ""
	}
	if m.Best[i] == nil {
		return value(*m.Last[i])
	}
	mark := ""
	if i == m.Winner {
		mark = " ←"
	}
	return value(*m.Last[i]) + " (" + value(*m.Best[i]) + ")" + mark
}

func value(p metrics.Point) string { return fmt.Sprintf("%.5g", p.Value) }

// shorten cuts a long value of a table.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
