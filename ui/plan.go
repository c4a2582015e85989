package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/trust"
)

// planView is what a profile would do.
type planView struct {
	path  string
	asked time.Time
	plan  *PlanView
	fault []string // why there is none
	// untrusted is what the profile would do when nobody has trusted it; then
	// there is no plan.
	untrusted *trust.Subject
}

func (p *planView) set(msg planned) {
	if msg.path != p.path {
		return
	}
	p.plan, p.fault, p.untrusted = msg.plan, nil, trust.Of(msg.err)
	switch {
	case p.untrusted != nil:
		p.plan = nil
	case msg.err != nil:
		p.plan, p.fault = nil, cleanLines(strings.Split(strings.TrimSpace(msg.err.Error()), "\n"))
	}
}

func (m *Model) drawPlan(w int) []string {
	s, p := m.styles, m.plan.plan
	switch {
	case m.plan.untrusted != nil:
		return m.drawUntrusted(w)
	case m.plan.fault != nil:
		out := []string{s.Bad.of("✗ The profile can't be used as it is."), ""}
		for _, l := range m.plan.fault {
			out = append(out, wrap(l, w)...)
		}
		return append(out, "", s.Dim.of("Nothing was changed. Correct the file, then ")+s.Key.of("enter")+s.Dim.of(" on it again."))
	case p == nil:
		return []string{m.spinner() + " making the plan, for " + since(m.now, m.plan.asked) + s.Dim.of("; nothing is changed by it")}
	}
	out := m.planFacts(p, w)
	out = append(out, m.findings(p.Findings, w)...)
	for _, l := range p.Launches {
		out = append(out, "")
		for _, text := range wrap("what each rank runs: "+word(l.Heading()), w) {
			out = append(out, s.Dim.of(text))
		}
		for _, g := range l.Groups() {
			out = append(out, m.rankCommand(g, w)...)
		}
	}
	for i, o := range p.Open {
		if i == 0 {
			out = append(out, "", s.Dim.of("known at the launch"))
		}
		out = append(out, cut("  "+fit(word(o.Name), 17)+word(o.Is), w))
	}
	return append(out, "", s.Dim.of("Nothing was changed so far.  ")+s.Key.of("R")+" starts it.")
}

// findings is what was looked at before anything is paid, with what to do
// about what stands in the way. Nothing of it is cut off: it may be a command.
func (m *Model) findings(all []cloud.Finding, w int) []string {
	s := m.styles
	out := []string{"", s.Dim.of("checks")}
	const left = 20
	for _, f := range all {
		lead := m.findingMark(f) + " " + fit(word(f.What), left-4) + "  "
		for _, l := range wrap(word(f.Text), max(w-left, 1)) {
			out = append(out, cut(lead+l, w))
			lead = strings.Repeat(" ", left)
		}
		if f.Result() == cloud.Fine || f.Next == "" {
			continue
		}
		do := s.Warn.of("do: ")
		for _, l := range wrap(word(f.Next), max(w-left-4, 1)) {
			out = append(out, cut(strings.Repeat(" ", left)+do+l, w))
			do = "    "
		}
	}
	if len(all) == 0 {
		out = append(out, "  nothing had to be checked")
	}
	return out
}

// findingMark is the sign of a finding in the colour of what it means.
func (m *Model) findingMark(f cloud.Finding) string {
	switch f.Result() {
	case cloud.Fine:
		return m.styles.Good.of(f.Mark())
	case cloud.Problem:
		return m.styles.Bad.of(f.Mark())
	}
	return m.styles.Warn.of(f.Mark())
}

func (m *Model) planFacts(p *PlanView, w int) []string {
	row := func(k, v string) string { return cut(m.styles.Dim.of(fit(k, 14))+word(v), w) }
	out := append([]string{row("profile", p.Name)}, m.planMoney(p, w)...)
	out = append(out,
		row("environment", p.Environment),
		row("code", event.SizeText(p.Code.Files, p.Code.Bytes)+" from "+p.Code.Dir),
		row("engine", enginePlanned(p)))
	for _, l := range wrap(word(p.EngineWhy), max(w-14, 1)) {
		out = append(out, row("", l))
	}
	for _, warning := range p.Code.Warnings {
		out = append(out, cut(m.styles.Warn.of(fit("! code", 14))+word(warning), w))
	}
	if len(p.Results) > 0 {
		out = append(out, row("results", strings.Join(p.Results, ", ")))
	}
	for _, warning := range p.Warnings {
		lead := m.styles.Warn.of(fit("! results", 14))
		for _, l := range wrap(word(warning), max(w-14, 1)) {
			out = append(out, cut(lead+l, w))
			lead = strings.Repeat(" ", 14)
		}
	}
	if len(p.Limits) > 0 {
		label := "limits"
		for _, l := range wrap(word(strings.Join(p.Limits, ", ")), max(w-14, 1)) {
			out = append(out, row(label, l))
			label = ""
		}
	}
	return out
}

// planMoney is what machines a plan takes, what they cost and at most can cost.
func (m *Model) planMoney(p *PlanView, w int) []string {
	s := m.styles
	row := func(k, v string) string { return cut(s.Dim.of(fit(k, 14))+v, w) }
	price := "costs nothing"
	if p.PricePerHour > 0 {
		price = units.PerHour(p.PricePerHour)
	}
	out := []string{row("machines", plural(p.Nodes, "node")+" of "+word(p.Provider)+", "+price)}
	if o := p.Offer; o != nil {
		out = append(out, row("", word(o.Instance)+" in "+word(o.Region)+s.Dim.of(": "+offerText(*o))))
	}
	for _, c := range p.Costs {
		out = append(out, row("", m.costRow(c.PerHour, c.What, c.Source, max(w-14, 1))))
	}
	if p.Most > 0 {
		for i, l := range wrap(units.USD(p.Most)+" by "+word(p.MostWhy), max(w-14, 1)) {
			label := ""
			if i == 0 {
				label = "at most"
			}
			out = append(out, row(label, l))
		}
	}
	return out
}

// offerText describes a machine in a line.
func offerText(o cloud.Offer) string {
	text := fmt.Sprintf("%d vCPUs, %s", o.VCPUs, units.Binary(o.Memory))
	if o.GPUs > 0 {
		text = fmt.Sprintf("%d × %s with %s each, ", o.GPUs, word(o.GPU), units.Binary(o.GPUMemory)) + text
	}
	if o.EFA > 0 {
		text += ", EFA"
	}
	if o.Arch != "" && o.Arch != "x86_64" {
		text += ", " + word(o.Arch)
	}
	return text
}

// enginePlanned is the engine, and how many ranks there are where that is known.
func enginePlanned(p *PlanView) string {
	if p.WorldSize == 0 {
		return p.EngineText() + "; the world size depends on what the nodes have"
	}
	return fmt.Sprintf("%s, world size %d", p.EngineText(), p.WorldSize)
}

func (m *Model) rankCommand(r workbench.RankGroup, w int) []string {
	head := m.styles.Dim.of(fit(r.Label(), 11) + fit(nodeName(r.Node), 8))
	lines := wrap(word(r.Command), max(w-21, 8))
	out := make([]string, len(lines))
	for i, l := range lines {
		if i > 0 {
			head = "                   "
		}
		out[i] = cut("  "+head+l, w)
	}
	return out
}
