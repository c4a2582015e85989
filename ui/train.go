package ui

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// drawTrain is the screen of a run: how far, the nodes, the curves, the output.
func (m *Model) drawTrain(w, h int) []string {
	s := m.ses
	if s.lost != "" && s.st.run == "" {
		return m.lostRows(w)
	}
	out := m.trainTop(w, h)
	chartH, tailH := share(h - len(out))
	if chartH > 0 {
		out = append(out, m.trainCharts(w, chartH)...)
		out = append(out, "")
	}
	return append(out, m.tailPane(w, tailH)...)
}

// trainTop is all that stands above the charts.
func (m *Model) trainTop(w, h int) []string {
	out := m.trainHead(w)
	if e := m.ses.st.ended; e != nil && e.Verdict != event.Succeeded {
		out = append(out, m.blame(w)...)
	}
	return append(out, m.trainPanels(w, h-len(out))...)
}

// trainPanels are the nodes, with a blank row above and below.
func (m *Model) trainPanels(w, h int) []string {
	out := []string{""}
	if s := m.ses; !s.past || len(s.st.nodes) > 0 {
		out = append(append(out, m.nodePanels(w, m.panelRoom(h-1))...), "")
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
	st, s := m.ses.st, m.styles
	now := m.ses.now(m.now)
	parts := []string{m.runState()}
	p := st.progress
	if p.Epochs > 0 || p.Epoch > 0 {
		parts = append(parts, s.Dim.Of("epoch ")+outOf(text.Plain(p.Epoch), text.Plain(p.Epochs), p.Epochs > 0))
	}
	if p.Step > 0 || p.Steps > 0 {
		parts = append(parts, s.Dim.Of("step ")+outOf(text.Count(p.Step), text.Count(p.Steps), p.Steps > 0))
	}
	times := units.Clock(st.elapsed(now))
	if st.ended != nil {
		times = s.Dim.Of("took ") + units.Duration(st.elapsed(now))
	} else if eta, ok := st.etaNow(now); ok && w < 70 {
		times += s.Dim.Of(", ") + units.Clock(eta) + s.Dim.Of(" left")
	} else if ok {
		times += s.Dim.Of(" elapsed, ") + units.Clock(eta) + s.Dim.Of(" left")
	} else if st.launched != nil {
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
	st := m.ses.st
	switch {
	case st.phase() == event.PhaseStopping, st.phase() == event.PhaseUnresolved, st.phase() == event.PhaseStopped:
		return m.phaseText(st.phase())
	case st.ended != nil:
		return m.verdictText(st.ended.Verdict, &st.ended.ExitCode)
	case st.launched != nil && m.ses.past:
		return m.styles.Warn.Of("? its end was not recorded")
	case st.launched != nil:
		return m.styles.Good.Of("● training")
	}
	return m.phaseText(st.phase())
}

// fraction is how far the run is, 0 to 1; false when it does not say how far
// there is to go.
func (s *state) fraction() (float64, bool) {
	p := s.progress
	switch {
	case s.ended != nil && s.ended.Verdict == event.Succeeded:
		return 1, true
	case p.Steps > 0:
		return min(float64(p.Step)/float64(p.Steps), 1), true
	case p.Epochs > 0:
		return min(p.Epoch/p.Epochs, 1), true
	}
	return 0, false
}

// progressBar is a thin line over the whole width, with its share at the end.
func (m *Model) progressBar(w int) string {
	f, known := m.ses.st.fraction()
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
	st := m.ses.st
	if st.launched == nil {
		return m.styles.Dim.Of("waiting for the ranks to start, for " + text.Since(m.now, m.ses.asked) + "; s shows the steps")
	}
	if n := len(st.rankEnds); n > 0 && st.ended == nil && n < st.launched.WorldSize {
		return text.Cut(m.styles.Warn.Of(fmt.Sprintf("%d of %s ended, for %s now; waiting for the others", n,
			text.Plural(st.launched.WorldSize, "rank"), text.Since(m.ses.now(m.now), st.rankEndAt))), w)
	}
	l := st.launched
	txt := fmt.Sprintf("%s, world size %d on %s", text.Word(l.Engine), l.WorldSize, text.Plural(l.Nodes, "node"))
	return text.Cut(m.styles.Dim.Of(txt+"   "+l.Command), w)
}

// blame says which rank was at fault, and what it said last.
func (m *Model) blame(w int) []string {
	e := m.ses.st.ended
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
	if m.ses.rank == e.Rank && m.ses.tailOf(e.Rank).off > 0 {
		return out // its last lines are in the output below
	}
	last := e.LastLines
	if n := 4; len(last) > n {
		last = last[len(last)-n:]
	}
	return append(out, m.quoted(last, w)...)
}

// afterFailure is what can be done about a run that did not end well.
func (m *Model) afterFailure() string {
	if m.ses.st.ended.Verdict == event.Stopped || m.noCluster() != "" || m.opts.ReadOnly {
		return ""
	}
	return "l shows all it printed; R sends what was corrected and runs again"
}

// lostRows says that there is nothing to follow.
func (m *Model) lostRows(w int) []string {
	out := []string{m.styles.Bad.Of("✗ " + m.title() + " can't be followed"), ""}
	out = append(out, text.Wrap(m.ses.lost, w)...)
	return append(out, "", m.styles.Key.Of("esc")+"  goes back; what runs there goes on")
}

// tailPane is the end of the shown rank's output.
func (m *Model) tailPane(w, h int) []string {
	if h <= 0 {
		return nil
	}
	s := m.ses
	title := m.styles.Strong.Of(rankName(s.rank))
	if n := s.st.rankNode(s.rank); n >= 0 && s.rank >= 0 {
		title += m.styles.Dim.Of(" on " + nodeName(n))
	}
	right := ""
	if e, ok := s.st.rankEnds[s.rank]; ok {
		right = m.endText(e)
	}
	if !s.view.Follow {
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
