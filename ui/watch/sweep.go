package watch

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// Sweep is the leaderboard: the best trial first, then how far the others are.
func (p Page) Sweep(w int) []string {
	s, b := p.Styles, p.Of.State.Sweep
	if b == nil {
		return []string{"No sweep here. dlwb sweep runs the trials of a profile with a sweep."}
	}
	head := fmt.Sprintf("%d of %s", b.Done+b.Early+b.Failed, text.Plural(b.Trials, "trial"))
	for _, part := range []struct {
		n    int
		what string
	}{{b.Running, "running"}, {b.Early, "ended early"}, {b.Failed, "failed"}} {
		if part.n > 0 {
			head += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	out := []string{text.Cut(s.Strong.Of("sweep "+text.Word(b.Sweep))+"  "+head+s.Dim.Of("  by "+text.Word(b.Method)), w)}
	if b.Metric != "" {
		out = append(out, text.Cut(s.Dim.Of(map[bool]string{true: "greatest ", false: "smallest "}[b.Mode == "max"]+text.Word(b.Metric)+" first"), w))
	}
	out = append(out, "", s.Dim.Of(text.Cut("  "+text.Fit("trial", 7)+text.Fit("state", 10)+text.Fit("value", 12)+text.Fit("took", 9)+"parameters", w)))
	for _, r := range b.Rows {
		out = append(out, p.trial(r, w)...)
	}
	if more := b.Trials - len(b.Rows); more > 0 {
		out = append(out, s.Dim.Of(fmt.Sprintf("  and %d more: dlwb sweep --show", more)))
	}
	return out
}

// trial is one row of the leaderboard, and why it ended as it did.
func (p Page) trial(r event.TrialRow, w int) []string {
	s := p.Styles
	value, took, mark := "", "", "  "
	if r.Value != nil {
		value = strconv.FormatFloat(*r.Value, 'g', 6, 64)
	}
	if r.Duration > 0 {
		took = units.Seconds(r.Duration)
	}
	if r.Best {
		mark = s.Good.Of("★") + " "
		if p.ASCII {
			mark = s.Good.Of("*") + " "
		}
	}
	state := text.Fit(text.Word(r.State), 10)
	switch r.State {
	case event.TrialFailed:
		state = s.Bad.Of(state)
	case event.TrialEarly:
		state = s.Warn.Of(state)
	case event.TrialWaiting:
		state = s.Dim.Of(state)
	}
	out := []string{text.Cut(mark+text.Fit(strconv.Itoa(r.Trial), 7)+state+text.Fit(value, 12)+text.Fit(took, 9)+text.Word(r.Settings), w)}
	if r.Why != "" {
		for _, line := range text.Wrap(text.Word(r.Why), max(w-9, 1)) {
			out = append(out, text.Cut(strings.Repeat(" ", 9)+s.Dim.Of(line), w))
		}
	}
	return out
}
