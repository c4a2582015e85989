package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/outfile"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
)

// exportFormats are what --format takes.
var exportFormats = []string{"csv", "jsonl", "tfevents", "parquet"}

func (a *app) exportCommand() *cobra.Command {
	var format, file string
	c := &cobra.Command{
		Use: "export [RUN]", Short: "the series of a run as CSV, JSON lines, an event file of TensorBoard or Parquet", Args: cobra.MaximumNArgs(1),
		Long: `Writes every point of every series of a run: to a file, or to standard output.
A table has the columns series, split, step, epoch, time, value, source and axis:
by which of step and epoch a value is placed, or ordinal. dlwb metrics reads it. An
event file is one that TensorBoard shows: its name must have "tfevents" in it.`,
		Example: "  dlwb export --format csv > run.csv\n  dlwb export RUN --format parquet -o run.parquet\n" +
			"  dlwb export RUN --format tfevents -o logs/events.out.tfevents.dlwb && tensorboard --logdir logs",
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			if !slices.Contains(exportFormats, format) {
				return usageError{fmt.Errorf("--format %q: it is one of %s", format, strings.Join(exportFormats, ", "))}
			}
			run, err := w.FindRun(arg(args, 0))
			if err != nil {
				return err
			}
			a.stale(w, run)
			if toStdout(file) {
				if a.json {
					return usageError{errors.New("export writes to standard output, where --json has no place: name a file with -o")}
				}
				out, err := a.exportTo(format)
				if err != nil {
					return err
				}
				return w.History().Export(run.ID, format, out)
			}
			size, err := outfile.Write(ctx, file, func(to io.Writer) error { return w.History().Export(run.ID, format, to) })
			if err != nil {
				return err
			}
			return a.answer(exportAnswer{run.ID, format, file, size}, func(out io.Writer) {
				sanitize.Fprintf(out, "%s: %s in %s\n", run.ID, units.Bytes(size), file)
			})
		}),
	}
	c.Flags().StringVar(&format, "format", "csv", "csv, jsonl, tfevents or parquet")
	c.Flags().StringVarP(&file, "output", "o", "", "the file to write (default: standard output)")
	_ = c.RegisterFlagCompletionFunc("format", anywhere(func() []string { return exportFormats }))
	return c
}

// toStdout reports whether what -o names is standard output.
func toStdout(file string) bool { return file == "" || file == "-" || outfile.Stdout(file) }

// exportTo is standard output for a format: the same bytes as in a file. Those
// that are text may be seen on a terminal too.
func (a *app) exportTo(format string) (io.Writer, error) {
	if a.terminal() != nil && (format == "csv" || format == "jsonl") {
		return a.out, nil
	}
	return a.exact("a file in the format "+format, "name one with -o")
}

func (a *app) runbookCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "runbook [RUN]", Short: "a run for a reader, in Markdown: what, how, with what, and how to do it again", Args: cobra.MaximumNArgs(1),
		Long: `Writes what was run, the profile, the code and what of it was not committed,
packages and machines, what it cost, what each series came to, and the commands
to do it again by hand. With --json it is the recipe that the page is made of.`,
		RunE: a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
			run, err := w.FindRun(arg(args, 0))
			if err != nil {
				return err
			}
			a.stale(w, run)
			if a.json {
				recipe, err := w.History().Recipe(run.ID)
				if err != nil {
					return err
				}
				return a.encode(recipe)
			}
			page, err := w.History().Runbook(run.ID)
			if err != nil {
				return err
			}
			if !toStdout(file) {
				_, err := outfile.Write(ctx, file, func(to io.Writer) error { _, err := io.WriteString(to, sanitize.Plain(page)); return err })
				return err
			}
			_, err = io.WriteString(a.out, page)
			return err
		}),
	}
	c.Flags().StringVarP(&file, "output", "o", "", "the file to write (default: standard output)")
	return c
}
