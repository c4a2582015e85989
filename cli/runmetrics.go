package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/reasons"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench"
)

// namesFile reports whether the argument of metrics is a file: one that is
// there, or a word that can be no run's.
func (a *app) namesFile(word string) bool {
	if word == "-" || strings.ContainsAny(word, `/\`) {
		return true
	}
	_, err := os.Stat(word)
	return err == nil
}

// runMetrics tells the series of a run from the store.
func (a *app) runMetrics(c *cobra.Command, word string, user []string, why bool) error {
	if len(user) > 0 {
		return usageError{errors.New("--metric is for files: what a run printed was read when it ran; its log is in dlwb logs RUN, which can be piped into dlwb metrics -")}
	}
	return a.with(func(_ context.Context, w *workbench.Workbench, _ []string) error {
		run, err := w.FindRun(word)
		if err != nil {
			return fmt.Errorf("%s is no file, and no run: %w", word, err)
		}
		a.stale(w, run)
		doc, err := w.History().Document(run.ID)
		if err != nil {
			return err
		}
		infos, err := w.History().Series(run.ID)
		if err != nil {
			return err
		}
		answer := metricsAnswer{why: why}
		answer.fill(doc)
		for i := range answer.Series {
			for _, info := range infos {
				if info.Name == answer.Series[i].Name {
					answer.Series[i].Sources = info.Sources
				}
			}
		}
		if why {
			speaks, err := w.History().Explain(run.ID, func(r metrics.Reading) { a.tellWhy(&answer, r) })
			if err != nil {
				return err
			}
			answer.judge(speaks)
		}
		if a.json {
			return writeMetricsJSON(a.out, &answer)
		}
		return a.answer(answer, func(out io.Writer) {
			writeMetrics(out, answer)
			if why || manySources(answer) {
				writeSources(out, answer)
			}
		})
	})(c, nil)
}

// writeEvidence tells how well each series is known to be one, and what is in none.
func writeEvidence(out io.Writer, answer metricsAnswer) {
	for _, s := range answer.Series {
		if s.Evidence != nil {
			reasons.Write(out, *s.Evidence)
		}
	}
	for _, e := range answer.Waiting {
		reasons.Write(out, e)
	}
}

// manySources reports whether anything is told in more than one place.
func manySources(answer metricsAnswer) bool {
	for _, s := range answer.Series {
		if len(s.Sources) > 1 {
			return true
		}
	}
	return false
}

// writeSources tells where each series is from.
func writeSources(out io.Writer, answer metricsAnswer) {
	fmt.Fprintln(out)
	for _, s := range answer.Series {
		for _, from := range s.Sources {
			sanitize.Fprintf(out, "%s: %d points in %s (%s), shown: %s\n", s.Name, from.Count,
				from.Source, from.Format, from.Shown)
		}
	}
}
