package sweep

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
)

// rowsMost bounds the rows that an event has, the best first.
const rowsMost = 200

// Board makes the leaderboard of a sweep: the running first that have a value, by
// it, then those without.
func Board(s profiles.Sweep, id string, rows []event.TrialRow) event.SweepChanged {
	b := event.SweepChanged{Sweep: id, Method: s.Method, Metric: s.Metric, Mode: s.Mode, Trials: len(rows)}
	sorted := slices.Clone(rows)
	for i := range sorted {
		switch sorted[i].State {
		case event.TrialRunning:
			b.Running++
		case event.TrialDone:
			b.Done++
		case event.TrialEarly:
			b.Early++
		case event.TrialFailed:
			b.Failed++
		}
	}
	slices.SortStableFunc(sorted, func(a, b event.TrialRow) int { return rank(s.Mode, a, b) })
	if i := slices.IndexFunc(sorted, mayBeBest); i >= 0 {
		sorted[i].Best = true
		b.Best = sorted[i].Trial
	}
	b.Rows = sorted[:min(len(sorted), rowsMost)]
	return b
}

// mayBeBest reports whether a trial has a value that counts: one that failed, or was
// ended early, came to no good end.
func mayBeBest(r event.TrialRow) bool {
	return r.Value != nil && (r.State == event.TrialDone || r.State == event.TrialRunning)
}

// rank sorts rows: those with a value by it; a trial that failed is behind them.
func rank(mode string, a, b event.TrialRow) int {
	key := func(r event.TrialRow) int {
		switch {
		case r.State == event.TrialFailed:
			return 2
		case r.Value == nil && r.State == event.TrialWaiting:
			return 3
		case r.Value == nil:
			return 1
		}
		return 0
	}
	if x, y := key(a), key(b); x != y || x != 0 {
		return x - y
	}
	return order(mode, *a.Value, *b.Value)
}

// finite is a value that JSON can hold; nil for others.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// SettingsText is the parameters of a trial in a line.
func SettingsText(all []profiles.Setting) string {
	var parts []string
	for _, s := range all {
		parts = append(parts, s.Name+"="+s.Value)
	}
	return strings.Join(parts, " ")
}

// Text is a leaderboard as lines of plain text.
func Text(b event.SweepChanged) []string {
	lines := []string{Headline(b)}
	value := b.Metric
	if value == "" {
		value = "value"
	}
	width := 0
	for _, r := range b.Rows {
		width = max(width, len(r.Settings))
	}
	lines = append(lines, fmt.Sprintf("  %5s  %-8s  %12s  %8s  %-*s  %s", "trial", "state", value, "took", width, "parameters", "run"))
	for _, r := range b.Rows {
		mark, shown, took := " ", "", ""
		if r.Best {
			mark = "*"
		}
		switch {
		case r.Value != nil:
			shown = text(*r.Value)
		case r.Values > 0:
			shown = "no number"
		}
		if r.Duration > 0 {
			took = units.Seconds(r.Duration)
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s %5d  %-8s  %12s  %8s  %-*s  %s", mark, r.Trial, r.State, shown, took, width, r.Settings, r.Run), " "))
		if r.Why != "" {
			lines = append(lines, "         "+r.Why)
		}
	}
	return lines
}

// untold is the run of a trial that is done, where none has told the metric; empty
// where some has, or none is done.
func untold(b event.SweepChanged) (run string) {
	for _, r := range b.Rows {
		switch {
		case b.Metric == "" || r.Values > 0:
			return ""
		case r.State == event.TrialDone && run == "":
			run = r.Run
		}
	}
	return run
}

// Headline says how far a sweep is.
func Headline(b event.SweepChanged) string {
	text := fmt.Sprintf("sweep %s, %s: %d of %s", b.Sweep, b.Method, b.Done+b.Early+b.Failed, units.Count(b.Trials, "trial"))
	for _, part := range []struct {
		n    int
		what string
	}{{b.Running, "running"}, {b.Early, "ended early"}, {b.Failed, "failed"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	if run := untold(b); run != "" {
		text += fmt.Sprintf("; no trial that is done has told %s: dlwb metrics %s lists what it told", b.Metric, run)
	}
	if b.Best > 0 {
		text += fmt.Sprintf("; the best is trial %d (%s %s)", b.Best, b.Mode, b.Metric)
	}
	return text
}
