package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/dlwb/dlwb/cli/reasons"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/folder"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/history"
)

// severalFiles is the format of an answer about a folder or several files.
const severalFiles metrics.Format = "files"

// isFolder reports whether a path is a directory.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// metricsOfFiles reads each file by its kind, and of a folder those that can
// hold metrics. Each series says which file it is from; what gave none says why.
func (a *app) metricsOfFiles(ctx context.Context, paths []string, user []metrics.UserMetric, why bool) error {
	answer := metricsAnswer{why: why}
	answer.fill(&metrics.Document{Format: severalFiles})
	for _, path := range paths {
		if folder.IsStore(path) {
			if err := answer.joinStore(ctx, path); err != nil {
				return err
			}
			continue
		}
		if !isFolder(path) {
			doc, err := a.document(ctx, path, user, a.explained(&answer, why))
			if err != nil {
				return err
			}
			answer.join(path, doc)
			continue
		}
		files, skipped, err := folder.Files(path)
		if err != nil {
			return err
		}
		answer.Unread = append(answer.Unread, skipped...)
		for _, file := range files {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if folder.IsStore(file) {
				if err := answer.joinStore(ctx, file); err != nil {
					answer.Unread = append(answer.Unread, folder.Unread{File: file, Why: err.Error()})
				}
				continue
			}
			if reason := folder.NoMetrics(file); reason != "" {
				answer.Unread = append(answer.Unread, folder.Unread{File: file, Why: reason})
				continue
			}
			doc, err := a.document(ctx, file, user, a.explained(&answer, why))
			if err != nil {
				answer.Unread = append(answer.Unread, folder.Unread{File: file, Why: err.Error()})
				continue
			}
			answer.join(file, doc)
		}
	}
	if a.json {
		return writeMetricsJSON(a.out, &answer)
	}
	return a.answer(answer, func(out io.Writer) { writeFiles(out, answer) })
}

// join adds what a file says.
func (answer *metricsAnswer) join(file string, doc *metrics.Document) {
	switch {
	case doc.Format == metrics.NvidiaSMI:
		answer.Unread = append(answer.Unread, folder.Unread{File: file, Why: "an answer of nvidia-smi, which is told when it is the only file"})
		return
	case len(doc.Set.Series) == 0:
		answer.Unread = append(answer.Unread, folder.Unread{File: file, Why: fmt.Sprintf("no series found (read as %s)", doc.Format)})
		return
	}
	one := metricsAnswer{why: answer.why}
	one.fill(doc)
	answer.Waiting = append(answer.Waiting, one.Waiting...)
	for _, s := range one.Series {
		s.Sources = []history.SeriesSource{{Source: file, Format: string(doc.Format), Count: int64(s.from.Len() * s.Every), Shown: "all"}}
		answer.Series = append(answer.Series, s)
	}
	answer.Faults = append(answer.Faults, one.Faults...)
}

// joinStore adds the runs of MLflow's database.
func (answer *metricsAnswer) joinStore(ctx context.Context, file string) error {
	runs, err := folder.Store(ctx, file)
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	for _, run := range runs {
		source := fmt.Sprintf("%s: %s of %s (%.8s)", file, cmp.Or(run.Name, "a run"), cmp.Or(run.Experiment, "no experiment"), run.ID)
		answer.Runs = append(answer.Runs, storedRunDoc{*run.Run, source})
		if len(run.Doc.Set.Series) > 0 {
			answer.join(source, &run.Doc)
		}
	}
	if len(runs) == 0 {
		answer.Unread = append(answer.Unread, folder.Unread{File: file, Why: "a database of MLflow without a run"})
	}
	return nil
}

// longestParam bounds a parameter that is printed; with --json it is whole.
const longestParam = 80

// writeStored prints the parameters of runs, one run in a line.
func writeStored(out io.Writer, runs []storedRunDoc) {
	for _, run := range runs {
		line := fmt.Sprintf("%s: %s", run.Source, strings.ToLower(run.Status))
		for _, key := range slices.Sorted(maps.Keys(run.Params)) {
			line += fmt.Sprintf(" %s=%.*s", key, longestParam, run.Params[key])
		}
		sanitize.Fprintf(out, "%s\n", line)
	}
}

// writeFiles prints one line for each series with its file, and what was not read.
func writeFiles(out io.Writer, answer metricsAnswer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(answer.Series) > 0 {
		sanitize.Fprintf(w, seriesHeader+"\tFILE\n")
	} else {
		fmt.Fprintln(out, "no series found")
	}
	for i := range answer.Series {
		sanitize.Fprintf(w, seriesRow+"\t%s\n", append(answer.Series[i].cells(), answer.Series[i].Sources[0].Source)...)
	}
	w.Flush()
	writeStored(out, answer.Runs)
	writeEvidence(out, answer)
	reasons.Unread(out, answer.Unread)
}
