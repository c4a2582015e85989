package watch

import (
	"fmt"
	"strings"

	"charm.land/bubbles/v2/progress"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/nodes"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// Train is the screen of a run: how far, the nodes, the curves, the output.
func (p Page) Train(w, h int, charts chart.Page) []string {
	s := p.Of
	if s.Lost != "" && s.State.Run == "" {
		return p.Lost(w)
	}
	out := p.trainTop(w, h)
	chartH, tailH := share(h - len(out))
	if chartH > 0 {
		out = append(out, charts.DrawRow(w, chartH)...)
		out = append(out, "")
	}
	return append(out, p.tailPane(w, tailH)...)
}

// ChartRoom is where the charts lie in a body of w × h cells: the first row, and how
// many there are; none where there is no room.
func (p Page) ChartRoom(w, h int) (top, rows int) {
	top = len(p.trainTop(w, h))
	rows, _ = share(h - top)
	return top, rows
}

// trainTop is all that stands above the charts.
func (p Page) trainTop(w, h int) []string {
	out := p.trainHead(w)
	if e := p.Of.State.Ended; e != nil && e.Verdict != event.Succeeded {
		out = append(out, p.blame(w)...)
	}
	return append(out, p.trainPanels(w, h-len(out))...)
}

// trainPanels are the nodes, with a blank row above and below.
func (p Page) trainPanels(w, h int) []string {
	out := []string{""}
	if s := p.Of; !s.Past || len(s.State.Nodes) > 0 {
		out = append(append(out, nodes.Page{Look: p.Look, Of: p.Of}.Panels(w, p.panelRoom(h-1))...), "")
	}
	return out
}

// panelRoom is how many rows the nodes may take: what the curve and the
// output do not need more.
func (p Page) panelRoom(room int) int {
	if room < 24 {
		return max(room-11, 1)
	}
	return room * 2 / 5
}

// share splits what is left between curves and output, a blank row between.
func share(room int) (chart, tail int) {
	if room < 8 {
		return 0, max(room, 0)
	}
	chart = room * 3 / 5
	return chart, room - chart - 1
}

// trainHead is the state of the run in three rows.
func (p Page) trainHead(w int) []string {
	st, s := p.Of.State, p.Styles
	now := p.Of.Now(p.Now)
	parts := []string{p.runState()}
	g := st.Progress
	if g.Epochs > 0 || g.Epoch > 0 {
		parts = append(parts, s.Dim.Of("epoch ")+outOf(text.Plain(g.Epoch), text.Plain(g.Epochs), g.Epochs > 0))
	}
	if g.Step > 0 || g.Steps > 0 {
		parts = append(parts, s.Dim.Of("step ")+outOf(text.Count(g.Step), text.Count(g.Steps), g.Steps > 0))
	}
	times := units.Clock(st.Elapsed(now))
	if st.Ended != nil {
		times = s.Dim.Of("took ") + units.Duration(st.Elapsed(now))
	} else if eta, ok := st.ETANow(now); ok && w < 70 {
		times += s.Dim.Of(", ") + units.Clock(eta) + s.Dim.Of(" left")
	} else if ok {
		times += s.Dim.Of(" elapsed, ") + units.Clock(eta) + s.Dim.Of(" left")
	} else if st.Launched != nil {
		times += s.Dim.Of(" elapsed")
	}
	first := text.Spread(strings.Join(parts, "   "), times, w)
	return []string{first, p.progressBar(w), p.runFacts(w)}
}

func outOf(have, all string, known bool) string {
	if !known {
		return have
	}
	return have + "/" + all
}

// runState is the run in a sign and a word.
func (p Page) runState() string {
	st := p.Of.State
	switch {
	case st.Phase() == event.PhaseStopping, st.Phase() == event.PhaseUnresolved, st.Phase() == event.PhaseStopped:
		return sign.Phase(p.Look, st.Phase())
	case st.Ended != nil:
		return sign.Verdict(p.Look, st.Ended.Verdict, &st.Ended.ExitCode)
	case st.Launched != nil && p.Of.Past:
		return p.Styles.Warn.Of("? its end was not recorded")
	case st.Launched != nil:
		return p.Styles.Good.Of("● training")
	}
	return sign.Phase(p.Look, st.Phase())
}

// progressBar is a thin line over the whole width, with its share at the end.
func (p Page) progressBar(w int) string {
	f, known := p.Of.State.Fraction()
	if !known {
		return p.Styles.Faint.Of(strings.Repeat("─", w))
	}
	bar := progress.New(progress.WithWidth(w), progress.WithFillCharacters('━', '─'), progress.WithColors(p.Styles.Done))
	bar.EmptyColor = p.Styles.Open
	return bar.ViewAs(f)
}

// runFacts says what runs, on what.
func (p Page) runFacts(w int) string {
	st := p.Of.State
	if st.Launched == nil {
		return p.Styles.Dim.Of("waiting for the ranks to start, for " + text.Since(p.Now, p.Of.Asked) + "; s shows the steps")
	}
	if n := len(st.RankEnds); n > 0 && st.Ended == nil && n < st.Launched.WorldSize {
		return text.Cut(p.Styles.Warn.Of(fmt.Sprintf("%d of %s ended, for %s now; waiting for the others", n,
			text.Plural(st.Launched.WorldSize, "rank"), text.Since(p.Of.Now(p.Now), st.RankEndAt))), w)
	}
	l := st.Launched
	txt := fmt.Sprintf("%s, world size %d on %s", text.Word(l.Engine), l.WorldSize, text.Plural(l.Nodes, "node"))
	if c := st.Checkpoint; c.Name != "" && st.Ended == nil {
		txt += "   checkpoint " + text.Since(p.Of.Now(p.Now), c.Written) + " old: " + text.Word(c.Name) // a long name cuts itself off
	}
	return text.Cut(p.Styles.Dim.Of(txt+"   "+l.Command), w)
}

// blame says which rank was at fault, and what it said last.
func (p Page) blame(w int) []string {
	e := p.Of.State.Ended
	cause := e.Cause
	if code := fmt.Sprintf("code %d", e.ExitCode); !strings.HasSuffix(cause, code) {
		cause += "; the run's exit " + code
	}
	out := []string{""}
	for _, l := range text.Wrap(cause, w) {
		out = append(out, p.Styles.Strong.Of(l))
	}
	if next := p.afterFailure(); next != "" {
		out = append(out, text.Cut(p.Styles.Key.Of("next  ")+next, w))
	}
	if p.Of.Rank == e.Rank && p.Of.Output(e.Rank).Off > 0 {
		return out // its last lines are in the output below
	}
	last := e.LastLines
	if n := 4; len(last) > n {
		last = last[len(last)-n:]
	}
	return append(out, sign.Quoted(p.Look, last, w)...)
}

// afterFailure is what can be done about a run that did not end well.
func (p Page) afterFailure() string {
	if p.Of.State.Ended.Verdict == event.Stopped || !p.Again {
		return ""
	}
	return "l shows all it printed; R sends what was corrected and runs again"
}

// tailPane is the end of the shown rank's output.
func (p Page) tailPane(w, h int) []string {
	if h <= 0 {
		return nil
	}
	s := p.Of
	title := p.Styles.Strong.Of(session.RankName(s.Rank))
	if n := s.State.RankNode(s.Rank); n >= 0 && s.Rank >= 0 {
		title += p.Styles.Dim.Of(" on " + s.State.NodeName(n))
	}
	right := ""
	if e, ok := s.State.RankEnds[s.Rank]; ok {
		right = p.endText(e)
	}
	if !s.View.Follow {
		right = p.Styles.Warn.Of("held; end follows")
	}
	return append([]string{text.Spread(title, right, w)}, p.logRows(w, h-1)...)
}

// endText says how one rank ended.
func (p Page) endText(e event.RankEnded) string {
	switch {
	case e.ByUs:
		return p.Styles.Dim.Of("stopped by dlwb")
	case e.Signal != "":
		return p.Styles.Bad.Of("✗ killed by " + text.Word(e.Signal))
	case e.ExitCode != 0:
		return p.Styles.Bad.Of(fmt.Sprintf("✗ exit code %d", e.ExitCode))
	}
	return p.Styles.Dim.Of("✓ ended")
}
