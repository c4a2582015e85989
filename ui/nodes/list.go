package nodes

import (
	"fmt"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

// List is every node in full, and what is known of its connection.
func (p Page) List(w int) []string {
	st := p.Of.State
	if len(st.Nodes) == 0 {
		return []string{p.Styles.Dim.Of("no node has answered yet; s shows the steps")}
	}
	out := p.cards(w)
	out = append(out, "", p.Styles.Dim.Of("connection"))
	stateW := 12
	for i := range st.Nodes {
		stateW = max(stateW, text.Wide(p.stateText(&st.Nodes[i]))+1)
	}
	for i := range st.Nodes {
		n := &st.Nodes[i]
		disk := ""
		if n.Sample != nil && n.Sample.DiskUsed != nil {
			disk = p.Styles.Dim.Of("disk ") + usage(n.Sample.DiskUsed, n.Sample.DiskTotal, units.Bytes, units.BytesOf)
			if w < 96 {
				disk = p.Styles.Dim.Of("disk ") + units.Bytes(int64(*n.Sample.DiskUsed))
			}
		}
		left := text.Fit(n.Name, 8) + " " + text.Fit(p.stateText(n), stateW) + " " + p.Styles.Dim.Of(text.Fit(login(n), 24)) + " " + disk
		about := p.Styles.Dim.Of(text.Word("head, " + n.Instance + ": no rank trains there"))
		switch {
		case n.Head && text.Wide(left)+1+text.Wide(about) > w:
			out = append(out, text.Cut(left, w), text.Cut("         "+about, w))
		case n.Head:
			out = append(out, left+" "+about)
		default:
			out = append(out, text.Cut(left, w))
		}
		if n.Why != "" {
			out = append(out, text.Cut("         "+p.Styles.Warn.Of(n.Why), w))
		}
	}
	return append(out, p.gpuNames(w)...)
}

// login is who logs in where; empty for a node that nobody can log in to.
func login(n *session.Node) string {
	if n.Addr == "" {
		return ""
	}
	if n.User == "" {
		return text.Word(n.Addr)
	}
	return text.Word(n.User + "@" + n.Addr)
}

// gpuNames says which GPUs there are, once for each model.
func (p Page) gpuNames(w int) []string {
	seen := map[string]int{}
	var order []string
	for i := range p.Of.State.Nodes {
		n := &p.Of.State.Nodes[i]
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
		return append([]string{"", p.Styles.Dim.Of("GPUs")}, out...)
	}
	return nil
}

func (p Page) stateText(n *session.Node) string {
	if p.Of.State.Machines.Stopped && !p.Of.Past {
		return p.Styles.Warn.Of("○ stopped")
	}
	if p.Of.Over() {
		return p.Styles.Dim.Of("· not looked at any more")
	}
	switch n.State {
	case cloud.Alive:
		return p.Styles.Good.Of("● connected")
	case cloud.Gone:
		return p.Styles.Dim.Of("· gone")
	}
	if n.Since.IsZero() {
		return p.Styles.Warn.Of("? unknown")
	}
	return p.Styles.Warn.Of("? unknown since " + text.Hour(n.Since))
}
