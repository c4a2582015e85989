package ui

import (
	"fmt"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// homeView is the list of what exists.
type homeView struct {
	all    event.Home
	read   bool
	fault  string // why it could not be read
	filter string
	picked int
	here   string // the profile of the present directory
}

// item is one row of the list; exactly one of the three is set.
type item struct {
	cluster *event.ClusterInfo
	profile *event.ProfileInfo
	run     *event.RunInfo
}

func (h *homeView) set(msg homeRead) {
	h.read = true
	if msg.err != nil {
		h.fault = oneLine(msg.err)
		return
	}
	h.fault, h.all = "", msg.home
	h.addHere()
	h.picked = text.Clamp(h.picked, 0, max(len(h.items())-1, 0))
}

// addHere puts the profile of the present directory first, known or not: who
// starts dlwb in the directory of an experiment means that one.
func (h *homeView) addHere() {
	if h.here == "" {
		return
	}
	p := event.ProfileInfo{Name: filepath.Base(filepath.Dir(h.here)), Path: h.here}
	rest := make([]event.ProfileInfo, 0, len(h.all.Profiles)+1)
	for _, q := range h.all.Profiles {
		if q.Path == h.here {
			p = q
		} else {
			rest = append(rest, q)
		}
	}
	h.all.Profiles = append([]event.ProfileInfo{p}, rest...)
}

// items lists what matches the filter: clusters, profiles, runs.
func (h *homeView) items() []item {
	var out []item
	want := strings.Fields(strings.ToLower(h.filter))
	add := func(it item, said string) {
		if text.HasAll(strings.ToLower(said), want) {
			out = append(out, it)
		}
	}
	for i := range h.all.Clusters {
		c := &h.all.Clusters[i]
		add(item{cluster: c}, c.Name+" "+c.Provider+" "+string(c.Phase)+" "+c.Profile+" "+c.Instance+" "+c.Region)
	}
	for i := range h.all.Profiles {
		p := &h.all.Profiles[i]
		add(item{profile: p}, p.Name+" "+p.Provider+" "+p.Path)
	}
	for i := range h.all.Runs {
		r := &h.all.Runs[i]
		add(item{run: r}, r.ID+" "+r.Profile+" "+string(r.Verdict)+" "+r.Cluster)
	}
	return out
}

func (h *homeView) move(d int) { h.picked = text.Clamp(h.picked+d, 0, max(len(h.items())-1, 0)) }

func (h *homeView) pick() item {
	if items := h.items(); h.picked < len(items) {
		return items[h.picked]
	}
	return item{}
}

func (h *homeView) pickedCluster() *event.ClusterInfo { return h.pick().cluster }

func (h *homeView) pickedPath() string {
	switch it := h.pick(); {
	case it.profile != nil:
		return it.profile.Path
	case it.cluster != nil:
		return it.cluster.ProfilePath
	}
	return ""
}

func (h *homeView) pickedText() string {
	switch it := h.pick(); {
	case it.profile != nil:
		return text.Word(it.profile.Path)
	case it.cluster != nil:
		return text.Word(it.cluster.Name)
	case it.run != nil:
		return text.Word(it.run.Dir)
	}
	return ""
}

func (m *Model) cannotOpen() string {
	switch m.here() {
	case atForwards:
		return m.noForward()
	case atRuns:
		return m.noPickedRun()
	}
	switch it := m.home.pick(); {
	case it == item{}:
		return "nothing is picked"
	case it.profile != nil && it.profile.Fault != "":
		return text.Word(it.profile.Fault)
	}
	return ""
}

func (m *Model) openPicked() tea.Cmd {
	if m.here() == atForwards {
		return m.refreshed((*Model).openAddress)
	}
	if m.here() == atRuns {
		return m.openRun(m.runs.Pick())
	}
	switch it := m.home.pick(); {
	case it.cluster != nil:
		return m.look(it.cluster.Name, it.cluster.ProfilePath, it.cluster.Run != "")
	case it.profile != nil:
		return m.showPlan(it.profile.Path)
	case it.run != nil:
		return m.openRun(it.run)
	}
	return nil
}

// openRun shows a run where it goes on, or its record.
func (m *Model) openRun(r *event.RunInfo) tea.Cmd {
	if c := m.home.clusterOf(r); c != nil {
		return m.look(c.Name, c.ProfilePath, true)
	}
	return m.lookBack(*r)
}

// clusterOf is where a run goes on; nil for one that is over.
func (h *homeView) clusterOf(r *event.RunInfo) *event.ClusterInfo {
	if r.EndedAt != nil {
		return nil
	}
	for i := range h.all.Clusters {
		if c := &h.all.Clusters[i]; c.Run == r.ID {
			return c
		}
	}
	return nil
}

// filterSign says that a filter is on, and how much it leaves.
func (m *Model) filterSign() string {
	h := &m.home
	if h.filter == "" {
		return ""
	}
	all := len(h.all.Clusters) + len(h.all.Profiles) + len(h.all.Runs)
	return "  " + m.styles.Warn.Of("/"+text.Word(h.filter)) + m.styles.Dim.Of(fmt.Sprintf("  %d of %d, esc shows all", len(h.items()), all))
}

func (m *Model) askFilter() tea.Cmd {
	set := func(m *Model, text string) { m.home.filter, m.home.picked = text, 0 }
	m.ask = &prompt{label: "filter", line: line.New(m.home.filter), live: set,
		done: func(m *Model, text string) tea.Cmd { set(m, text); return nil },
		left: func(m *Model) { set(m, "") }}
	return nil
}

// homeRow is a line of the home screen and the item it stands for; -1 for none.
type homeRow struct {
	text string
	item int
}

// homeWidest keeps a row together: an eye loses a line that is much longer.
const homeWidest = 140

// homeRows draws the whole list; the same rows answer where a click went.
func (m *Model) homeRows(w int) []homeRow {
	h, s := &m.home, m.styles
	w = min(w, homeWidest)
	var rows []homeRow
	say := func(text string) { rows = append(rows, homeRow{text, -1}) }
	if h.fault != "" {
		say(s.Bad.Of("✗ what exists could not be read: ") + h.fault)
		say("")
	}
	items := h.items()
	section := ""
	for i, it := range items {
		if sec := it.section(); sec != section {
			if section != "" {
				say("")
			}
			section = sec
			say(s.Dim.Of(sec))
		}
		rows = append(rows, homeRow{m.itemRow(it, i == h.picked, w), i})
	}
	if len(items) == 0 {
		for _, l := range m.homeEmpty(w) {
			say(l)
		}
	}
	return rows
}

func (it item) section() string {
	switch {
	case it.cluster != nil:
		return "clusters"
	case it.profile != nil:
		return "profiles"
	}
	return "runs"
}

// homeEmpty says what to do when there is nothing to show.
func (m *Model) homeEmpty(w int) []string {
	s := m.styles
	switch {
	case !m.home.read:
		return []string{s.Dim.Of(m.spinner() + " looking at what exists")}
	case m.home.filter != "":
		return []string{"Nothing matches " + s.Strong.Of(m.home.filter) + ".", "", s.Key.Of("esc") + "  shows everything again"}
	}
	out := []string{s.Strong.Of("Nothing here yet."), ""}
	out = append(out, text.Wrap("A profile is one file that describes one experiment. In the directory of your training script:", min(w, 72))...)
	return append(out, "",
		"  "+s.Key.Of("N")+"           makes one here, step by step: machines, price, plan",
		"  "+s.Key.Of("dlwb init")+"   writes a profile for it",
		"  "+s.Key.Of("dlwb")+"        comes back here, where it can be started",
		"",
		"or watch one run first:", "",
		"  "+s.Key.Of("dlwb demo")+"   trains a small language model on two nodes of this machine")
}

// nameWidth is one width for the names of all rows.
func (h *homeView) nameWidth(w int) int {
	n := 12
	for _, it := range h.items() {
		switch {
		case it.cluster != nil:
			n = max(n, len(it.cluster.Name))
		case it.profile != nil:
			n = max(n, len(it.profile.Name))
		case it.run != nil:
			n = max(n, len(it.run.ID))
		}
	}
	return min(n, w/4+4)
}

func (m *Model) itemRow(it item, picked bool, w int) string {
	mark, name := "  ", func(t string) string { return t }
	if picked {
		mark, name = m.styles.Picked.Of("› "), m.styles.Picked.Of
	}
	nameW := m.home.nameWidth(w)
	var body string
	switch {
	case it.cluster != nil:
		body = name(text.Fit(text.Word(it.cluster.Name), nameW)) + "   " + m.clusterCells(it.cluster, w-nameW-5)
	case it.profile != nil:
		body = name(text.Fit(text.Word(it.profile.Name), nameW)) + "   " + m.profileCells(it.profile, w-nameW-5)
	case it.run != nil:
		body = name(text.Fit(text.Word(it.run.ID), nameW)) + "   " + m.runCells(it.run, w-nameW-5)
	}
	return text.Cut(mark+body, w)
}

func (m *Model) profileCells(p *event.ProfileInfo, w int) string {
	if p.Fault != "" {
		return m.styles.Bad.Of("✗ ") + text.Cut(text.Word(p.Fault), w-2)
	}
	used := "not used yet"
	if p.Provider == "" { // it was not read so far
		return text.Spread(m.styles.Dim.Of("in this directory; enter reads it and shows the plan"), m.styles.Dim.Of(used), w)
	}
	if !p.UsedAt.IsZero() {
		used = "used " + units.Ago(m.now, p.UsedAt)
	}
	return text.Spread(text.Fit(text.Word(p.Provider), 12)+"  "+m.styles.Dim.Of(text.Word(p.Path)), m.styles.Dim.Of(used), w)
}

func (m *Model) runCells(r *event.RunInfo, w int) string {
	loss := ""
	if r.LastLoss != nil {
		loss = "loss " + text.Number(*r.LastLoss)
	}
	took := ""
	if r.EndedAt != nil {
		took = units.Duration(r.Took(m.now))
	}
	left := text.Fit(sign.Verdict(m.looks(), r.Verdict, r.ExitCode), 14) + text.Fit(loss, 14) + took
	return text.Spread(left, m.styles.Dim.Of(units.Ago(m.now, r.StartedAt)), w)
}

// drawHome shows the part of the list around what is picked.
func (m *Model) drawHome(w, h int) []string {
	rows := m.homeRows(w)
	out := []string{}
	for _, r := range rows[m.homeTop(rows, h):] {
		out = append(out, r.text)
	}
	return out
}

// homeTop is the first row to show: with all of the list before what is
// picked if that fits, heading included.
func (m *Model) homeTop(rows []homeRow, h int) int {
	for y, r := range rows {
		if r.item == m.home.picked {
			if y < h {
				return 0
			}
			return text.Clamp(y-h/2, 0, max(len(rows)-h, 0))
		}
	}
	return 0
}

// rowAt says which item lies on a row of the body.
func (h *homeView) rowAt(y int, m *Model) (int, bool) {
	rows := m.homeRows(m.bodyWidth())
	i := y + m.homeTop(rows, m.bodyHeight())
	if y < 0 || i < 0 || i >= len(rows) || rows[i].item < 0 {
		return 0, false
	}
	return rows[i].item, true
}

func (m *Model) spinner() string { return m.looks().Spinner() }

// spinning reports whether anything on the screen turns.
func (m *Model) spinning() bool {
	if len(m.doing) > 0 || m.here() == atHome && !m.home.read || m.here() == atRuns && m.runs.Busy() || m.here() == atCompare && m.comp.Busy() {
		return true
	}
	if m.here() == atNew {
		return !m.wiz.read || m.wiz.market.busy || m.wiz.review.busy
	}
	if m.here() == atPlan {
		return m.plan.plan == nil && m.plan.fault == nil
	}
	return m.ses != nil && m.here() == atSteps && m.ses.State.Failed == nil &&
		(m.ses.State.AnyStep(session.Active) || len(m.ses.State.Steps) == 0)
}
