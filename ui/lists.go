package ui

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// drawNodes is every node in full, and what is known of its connection.
func (m *Model) drawNodes(w int) []string {
	st := m.ses.st
	if len(st.nodes) == 0 {
		return []string{m.styles.Dim.of("no node has answered yet; s shows the steps")}
	}
	out := m.nodeCards(w)
	out = append(out, "", m.styles.Dim.of("connection"))
	stateW := 12
	for i := range st.nodes {
		stateW = max(stateW, wide(m.stateText(&st.nodes[i]))+1)
	}
	for i := range st.nodes {
		n := &st.nodes[i]
		disk := ""
		if n.sample != nil && n.sample.DiskUsed != nil {
			disk = m.styles.Dim.of("disk ") + usage(n.sample.DiskUsed, n.sample.DiskTotal, units.Bytes, units.BytesOf)
			if w < 96 {
				disk = m.styles.Dim.of("disk ") + units.Bytes(int64(*n.sample.DiskUsed))
			}
		}
		left := fit(n.Name, 8) + " " + fit(m.stateText(n), stateW) + " " + m.styles.Dim.of(fit(word(n.User+"@"+n.Addr), 24)) + " " + disk
		out = append(out, cut(left, w))
		if n.why != "" {
			out = append(out, cut("         "+m.styles.Warn.of(n.why), w))
		}
	}
	return append(append(out, m.gpuNames(w)...), m.costRows(w)...)
}

// gpuNames says which GPUs there are, once for each model.
func (m *Model) gpuNames(w int) []string {
	seen := map[string]int{}
	var order []string
	for i := range m.ses.st.nodes {
		n := &m.ses.st.nodes[i]
		if n.sample == nil {
			continue
		}
		for _, g := range n.sample.GPUs {
			name := g.Name
			if n.simulated() {
				name += " (SIMULATED)"
			}
			if seen[name] == 0 {
				order = append(order, name)
			}
			seen[name]++
		}
	}
	var out []string
	for _, name := range order {
		out = append(out, cut(fmt.Sprintf("%d × %s", seen[name], name), w))
	}
	if len(out) > 0 {
		return append([]string{"", m.styles.Dim.of("GPUs")}, out...)
	}
	return nil
}

func (m *Model) stateText(n *nodeState) string {
	if m.ses.st.machines.stopped && !m.ses.past {
		return m.styles.Warn.of("○ stopped")
	}
	if m.ses.over() {
		return m.styles.Dim.of("· not looked at any more")
	}
	switch n.state {
	case cloud.Alive:
		return m.styles.Good.of("● connected")
	case cloud.Gone:
		return m.styles.Dim.of("· gone")
	}
	if n.since.IsZero() {
		return m.styles.Warn.of("? unknown")
	}
	return m.styles.Warn.of("? unknown since " + hour(n.since))
}

// drawHelp is made from the key table: the keys of where one came from, then
// what is said nowhere else.
func (m *Model) drawHelp(w int) []string {
	from := atHome
	if len(m.path) > 1 {
		from = m.path[len(m.path)-2]
	}
	s := m.styles
	var look, act, more []string
	for i := range m.table {
		c := &m.table[i]
		if c.at&from == 0 {
			continue
		}
		keys := strings.Join(c.keys, " ")
		name := fit(c.name, 19)
		if w < 100 { // the sentence says it alone
			name = ""
		}
		row := cut("  "+s.Key.of(fit(keys, 15))+name+c.help, w)
		switch {
		case len(c.keys) == 0:
			more = append(more, cut("  "+fit(c.name, 20)+c.help, w))
		case c.acts:
			act = append(act, row)
		default:
			look = append(look, row)
		}
	}
	out := append([]string{s.Strong.of("Keys on the " + placeList(from) + " screen"), "", s.Dim.of("looking")}, look...)
	if len(act) > 0 {
		out = append(append(out, "", s.Dim.of("acting on the cluster")), act...)
	}
	if len(more) > 0 {
		out = append(append(out, "", s.Dim.of("in the palette only (:)")), more...)
	}
	return append(out, "", s.Dim.of("Quitting leaves every cluster running: dlwb attach comes back to it."))
}

// title is what the session is called on the screen.
func (m *Model) title() string {
	switch s := m.ses; {
	case s == nil:
		return ""
	case s.past && s.st.run != "":
		return word(s.st.run)
	case s.cluster != "":
		return word(s.cluster)
	default:
		return word(s.profilePath)
	}
}

// money is what the cluster costs, for the corner of every screen of it.
func (m *Model) money() string {
	st := m.ses.st
	if m.ses.past {
		return m.styles.Dim.of("past run")
	}
	if st.phase() == event.PhaseGone {
		return m.styles.Dim.of("gone, cost ") + units.USD(st.spent(m.now))
	}
	return units.PerHour(st.account.Rate()) + "  " + units.USD(st.spent(m.now)) + m.styles.Dim.of(" so far")
}
