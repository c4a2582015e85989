package ui

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// drawNodes is every node in full, and what is known of its connection.
func (m *Model) drawNodes(w int) []string {
	st := m.ses.State
	if len(st.Nodes) == 0 {
		return []string{m.styles.Dim.Of("no node has answered yet; s shows the steps")}
	}
	out := m.nodeCards(w)
	out = append(out, "", m.styles.Dim.Of("connection"))
	stateW := 12
	for i := range st.Nodes {
		stateW = max(stateW, text.Wide(m.stateText(&st.Nodes[i]))+1)
	}
	for i := range st.Nodes {
		n := &st.Nodes[i]
		disk := ""
		if n.Sample != nil && n.Sample.DiskUsed != nil {
			disk = m.styles.Dim.Of("disk ") + usage(n.Sample.DiskUsed, n.Sample.DiskTotal, units.Bytes, units.BytesOf)
			if w < 96 {
				disk = m.styles.Dim.Of("disk ") + units.Bytes(int64(*n.Sample.DiskUsed))
			}
		}
		left := text.Fit(n.Name, 8) + " " + text.Fit(m.stateText(n), stateW) + " " + m.styles.Dim.Of(text.Fit(text.Word(n.User+"@"+n.Addr), 24)) + " " + disk
		out = append(out, text.Cut(left, w))
		if n.Why != "" {
			out = append(out, text.Cut("         "+m.styles.Warn.Of(n.Why), w))
		}
	}
	return append(append(out, m.gpuNames(w)...), m.costRows(w)...)
}

// gpuNames says which GPUs there are, once for each model.
func (m *Model) gpuNames(w int) []string {
	seen := map[string]int{}
	var order []string
	for i := range m.ses.State.Nodes {
		n := &m.ses.State.Nodes[i]
		if n.Sample == nil {
			continue
		}
		for _, g := range n.Sample.GPUs {
			name := g.Name
			if n.Simulated() {
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
		out = append(out, text.Cut(fmt.Sprintf("%d × %s", seen[name], name), w))
	}
	if len(out) > 0 {
		return append([]string{"", m.styles.Dim.Of("GPUs")}, out...)
	}
	return nil
}

func (m *Model) stateText(n *session.Node) string {
	if m.ses.State.Machines.Stopped && !m.ses.Past {
		return m.styles.Warn.Of("○ stopped")
	}
	if m.ses.Over() {
		return m.styles.Dim.Of("· not looked at any more")
	}
	switch n.State {
	case cloud.Alive:
		return m.styles.Good.Of("● connected")
	case cloud.Gone:
		return m.styles.Dim.Of("· gone")
	}
	if n.Since.IsZero() {
		return m.styles.Warn.Of("? unknown")
	}
	return m.styles.Warn.Of("? unknown since " + text.Hour(n.Since))
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
		name := text.Fit(c.name, 19)
		if w < 100 { // the sentence says it alone
			name = ""
		}
		row := text.Cut("  "+s.Key.Of(text.Fit(keys, 15))+name+c.help, w)
		switch {
		case len(c.keys) == 0:
			more = append(more, text.Cut("  "+text.Fit(c.name, 20)+c.help, w))
		case c.acts:
			act = append(act, row)
		default:
			look = append(look, row)
		}
	}
	out := append([]string{s.Strong.Of("Keys on the " + placeList(from) + " screen"), "", s.Dim.Of("looking")}, look...)
	if len(act) > 0 {
		out = append(append(out, "", s.Dim.Of("acting on the cluster")), act...)
	}
	if len(more) > 0 {
		out = append(append(out, "", s.Dim.Of("in the palette only (:)")), more...)
	}
	return append(out, "", s.Dim.Of("Quitting leaves every cluster running: dlwb attach comes back to it."))
}

// title is what the session is called on the screen.
func (m *Model) title() string {
	switch s := m.ses; {
	case s == nil:
		return ""
	case s.Past && s.State.Run != "":
		return text.Word(s.State.Run)
	case s.Cluster != "":
		return text.Word(s.Cluster)
	default:
		return text.Word(s.ProfilePath)
	}
}

// money is what the cluster costs, for the corner of every screen of it.
func (m *Model) money() string {
	st := m.ses.State
	if m.ses.Past {
		return m.styles.Dim.Of("past run")
	}
	if st.Phase() == event.PhaseGone {
		return m.styles.Dim.Of("gone, cost ") + units.USD(st.Spent(m.now))
	}
	return units.PerHour(st.Account.Rate()) + "  " + units.USD(st.Spent(m.now)) + m.styles.Dim.Of(" so far")
}
