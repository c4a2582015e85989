package ui

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// drawTrain is the screen of a run: how far, the nodes, the curves, the output.
func (m *Model) drawTrain(w, h int) []string {
	s := m.ses
	if s.Lost != "" && s.State.Run == "" {
		return m.lostRows(w)
	}
	out := m.trainTop(w, h)
	chartH, tailH := share(h - len(out))
	if chartH > 0 {
		out = append(out, m.chartPage().DrawRow(w, chartH)...)
		out = append(out, "")
	}
	return append(out, m.tailPane(w, tailH)...)
}

// trainTop is all that stands above the charts.
func (m *Model) trainTop(w, h int) []string {
	out := m.trainHead(w)
	if e := m.ses.State.Ended; e != nil && e.Verdict != event.Succeeded {
		out = append(out, m.blame(w)...)
	}
	return append(out, m.trainPanels(w, h-len(out))...)
}

// trainPanels are the nodes, with a blank row above and below.
func (m *Model) trainPanels(w, h int) []string {
	out := []string{""}
	if s := m.ses; !s.Past || len(s.State.Nodes) > 0 {
		out = append(append(out, m.nodes().Panels(w, m.panelRoom(h-1))...), "")
	}
	return out
}

// panelRoom is how many rows the nodes may take: what the curve and the
// output do not need more.
func (m *Model) panelRoom(room int) int {
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
func (m *Model) trainHead(w int) []string {
	st, s := m.ses.State, m.styles
	now := m.ses.Now(m.now)
	parts := []string{m.runState()}
	p := st.Progress
	if p.Epochs > 0 || p.Epoch > 0 {
		parts = append(parts, s.Dim.Of("epoch ")+outOf(text.Plain(p.Epoch), text.Plain(p.Epochs), p.Epochs > 0))
	}
	if p.Step > 0 || p.Steps > 0 {
		parts = append(parts, s.Dim.Of("step ")+outOf(text.Count(p.Step), text.Count(p.Steps), p.Steps > 0))
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
	return []string{first, m.progressBar(w), m.runFacts(w)}
}

func outOf(have, all string, known bool) string {
	if !known {
		return have
	}
	return have + "/" + all
}

// runState is the run in a sign and a word.
func (m *Model) runState() string {
	st := m.ses.State
	switch {
	case st.Phase() == event.PhaseStopping, st.Phase() == event.PhaseUnresolved, st.Phase() == event.PhaseStopped:
		return sign.Phase(m.looks(), st.Phase())
	case st.Ended != nil:
		return sign.Verdict(m.looks(), st.Ended.Verdict, &st.Ended.ExitCode)
	case st.Launched != nil && m.ses.Past:
		return m.styles.Warn.Of("? its end was not recorded")
	case st.Launched != nil:
		return m.styles.Good.Of("● training")
	}
	return sign.Phase(m.looks(), st.Phase())
}

// progressBar is a thin line over the whole width, with its share at the end.
func (m *Model) progressBar(w int) string {
	f, known := m.ses.State.Fraction()
	if !known {
		return m.styles.Faint.Of(strings.Repeat("─", w))
	}
	text := fmt.Sprintf(" %3.0f%%", f*100)
	n := max(w-len(text), 0)
	full := int(f * float64(n))
	return m.styles.Accent.Of(strings.Repeat("━", full)) + m.styles.Faint.Of(strings.Repeat("─", n-full)) + text
}

// runFacts says what runs, on what.
func (m *Model) runFacts(w int) string {
	st := m.ses.State
	if st.Launched == nil {
		return m.styles.Dim.Of("waiting for the ranks to start, for " + text.Since(m.now, m.ses.Asked) + "; s shows the steps")
	}
	if n := len(st.RankEnds); n > 0 && st.Ended == nil && n < st.Launched.WorldSize {
		return text.Cut(m.styles.Warn.Of(fmt.Sprintf("%d of %s ended, for %s now; waiting for the others", n,
			text.Plural(st.Launched.WorldSize, "rank"), text.Since(m.ses.Now(m.now), st.RankEndAt))), w)
	}
	l := st.Launched
	txt := fmt.Sprintf("%s, world size %d on %s", text.Word(l.Engine), l.WorldSize, text.Plural(l.Nodes, "node"))
	return text.Cut(m.styles.Dim.Of(txt+"   "+l.Command), w)
}

// blame says which rank was at fault, and what it said last.
func (m *Model) blame(w int) []string {
	e := m.ses.State.Ended
	cause := e.Cause
	if code := fmt.Sprintf("code %d", e.ExitCode); !strings.HasSuffix(cause, code) {
		cause += "; the run's exit " + code
	}
	out := []string{""}
	for _, l := range text.Wrap(cause, w) {
		out = append(out, m.styles.Strong.Of(l))
	}
	if next := m.afterFailure(); next != "" {
		out = append(out, text.Cut(m.styles.Key.Of("next  ")+next, w))
	}
	if m.ses.Rank == e.Rank && m.ses.Output(e.Rank).Off > 0 {
		return out // its last lines are in the output below
	}
	last := e.LastLines
	if n := 4; len(last) > n {
		last = last[len(last)-n:]
	}
	return append(out, sign.Quoted(m.looks(), last, w)...)
}

// afterFailure is what can be done about a run that did not end well.
func (m *Model) afterFailure() string {
	if m.ses.State.Ended.Verdict == event.Stopped || m.noCluster() != "" || m.opts.ReadOnly {
		return ""
	}
	return "l shows all it printed; R sends what was corrected and runs again"
}

// lostRows says that there is nothing to follow.
func (m *Model) lostRows(w int) []string {
	out := []string{m.styles.Bad.Of("✗ " + m.title() + " can't be followed"), ""}
	out = append(out, text.Wrap(m.ses.Lost, w)...)
	return append(out, "", m.styles.Key.Of("esc")+"  goes back; what runs there goes on")
}

// tailPane is the end of the shown rank's output.
func (m *Model) tailPane(w, h int) []string {
	if h <= 0 {
		return nil
	}
	s := m.ses
	title := m.styles.Strong.Of(session.RankName(s.Rank))
	if n := s.State.RankNode(s.Rank); n >= 0 && s.Rank >= 0 {
		title += m.styles.Dim.Of(" on " + session.NodeName(n))
	}
	right := ""
	if e, ok := s.State.RankEnds[s.Rank]; ok {
		right = m.endText(e)
	}
	if !s.View.Follow {
		right = m.styles.Warn.Of("held; end follows")
	}
	return append([]string{text.Spread(title, right, w)}, m.logRows(w, h-1)...)
}

// endText says how one rank ended.
func (m *Model) endText(e event.RankEnded) string {
	switch {
	case e.ByUs:
		return m.styles.Dim.Of("stopped by dlwb")
	case e.Signal != "":
		return m.styles.Bad.Of("✗ killed by " + text.Word(e.Signal))
	case e.ExitCode != 0:
		return m.styles.Bad.Of(fmt.Sprintf("✗ exit code %d", e.ExitCode))
	}
	return m.styles.Dim.Of("✓ ended")
}
