package ui

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
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
		p.plan, p.fault = nil, text.Words(strings.Split(strings.TrimSpace(msg.err.Error()), "\n"))
	}
}

func (m *Model) drawPlan(w int) []string {
	s, p := m.styles, m.plan.plan
	switch {
	case m.plan.untrusted != nil:
		return m.drawUntrusted(w)
	case m.plan.fault != nil:
		out := []string{s.Bad.Of("✗ The profile can't be used as it is."), ""}
		for _, l := range m.plan.fault {
			out = append(out, text.Wrap(l, w)...)
		}
		return append(out, "", s.Dim.Of("Nothing was changed. Correct the file, then ")+s.Key.Of("enter")+s.Dim.Of(" on it again."))
	case p == nil:
		return []string{m.spinner() + " making the plan, for " + text.Since(m.now, m.plan.asked) + s.Dim.Of("; nothing is changed by it")}
	}
	out := m.planFacts(p, w)
	out = append(out, m.findings(p.Findings, w)...)
	for _, l := range p.Launches {
		out = append(out, "")
		for _, text := range text.Wrap("what each rank runs: "+text.Word(l.Heading()), w) {
			out = append(out, s.Dim.Of(text))
		}
		for _, g := range l.Groups() {
			out = append(out, m.rankCommand(g, w)...)
		}
	}
	for i, o := range p.Open {
		if i == 0 {
			out = append(out, "", s.Dim.Of("known at the launch"))
		}
		out = append(out, text.Cut("  "+text.Fit(text.Word(o.Name), 17)+text.Word(o.Is), w))
	}
	return append(out, "", s.Dim.Of("Nothing was changed so far.  ")+s.Key.Of("R")+" starts it.")
}

// findings is what was looked at before anything is paid, with what to do
// about what stands in the way. Nothing of it is cut off: it may be a command.
func (m *Model) findings(all []cloud.Finding, w int) []string {
	s := m.styles
	out := []string{"", s.Dim.Of("checks")}
	const left = 20
	for _, f := range all {
		lead := m.findingMark(f) + " " + text.Fit(text.Word(f.What), left-4) + "  "
		for _, l := range text.Wrap(text.Word(f.Text), max(w-left, 1)) {
			out = append(out, text.Cut(lead+l, w))
			lead = strings.Repeat(" ", left)
		}
		if f.Result() == cloud.Fine || f.Next == "" {
			continue
		}
		do := s.Warn.Of("do: ")
		for _, l := range text.Wrap(text.Word(f.Next), max(w-left-4, 1)) {
			out = append(out, text.Cut(strings.Repeat(" ", left)+do+l, w))
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
		return m.styles.Good.Of(f.Mark())
	case cloud.Problem:
		return m.styles.Bad.Of(f.Mark())
	}
	return m.styles.Warn.Of(f.Mark())
}

func (m *Model) planFacts(p *PlanView, w int) []string {
	row := func(k, v string) string { return text.Cut(m.styles.Dim.Of(text.Fit(k, 14))+text.Word(v), w) }
	out := append([]string{row("profile", p.Name)}, m.planMoney(p, w)...)
	out = append(out,
		row("environment", p.Environment),
		row("code", event.SizeText(p.Code.Files, p.Code.Bytes)+" from "+p.Code.Dir),
		row("engine", enginePlanned(p)))
	for _, l := range text.Wrap(text.Word(p.EngineWhy), max(w-14, 1)) {
		out = append(out, row("", l))
	}
	for _, warning := range p.Code.Warnings {
		out = append(out, text.Cut(m.styles.Warn.Of(text.Fit("! code", 14))+text.Word(warning), w))
	}
	if len(p.Results) > 0 {
		out = append(out, row("results", strings.Join(p.Results, ", ")))
	}
	for _, warning := range p.Warnings {
		lead := m.styles.Warn.Of(text.Fit("! results", 14))
		for _, l := range text.Wrap(text.Word(warning), max(w-14, 1)) {
			out = append(out, text.Cut(lead+l, w))
			lead = strings.Repeat(" ", 14)
		}
	}
	if len(p.Limits) > 0 {
		label := "limits"
		for _, l := range text.Wrap(text.Word(strings.Join(p.Limits, ", ")), max(w-14, 1)) {
			out = append(out, row(label, l))
			label = ""
		}
	}
	return out
}

// planMoney is what machines a plan takes, what they cost and at most can cost.
func (m *Model) planMoney(p *PlanView, w int) []string {
	s := m.styles
	row := func(k, v string) string { return text.Cut(s.Dim.Of(text.Fit(k, 14))+v, w) }
	price := "costs nothing"
	if p.PricePerHour > 0 {
		price = units.PerHour(p.PricePerHour)
	}
	out := []string{row("machines", text.Plural(p.Nodes, "node")+" of "+text.Word(p.Provider)+", "+price)}
	if o := p.Offer; o != nil {
		out = append(out, row("", text.Word(o.Instance)+" in "+text.Word(o.Region)+s.Dim.Of(": "+offerText(*o))))
	}
	for _, c := range p.Costs {
		out = append(out, row("", m.costRow(c.PerHour, c.What, c.Source, max(w-14, 1))))
	}
	if p.Most > 0 {
		for i, l := range text.Wrap(units.USD(p.Most)+" by "+text.Word(p.MostWhy), max(w-14, 1)) {
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
	txt := fmt.Sprintf("%d vCPUs, %s", o.VCPUs, units.Binary(o.Memory))
	if o.GPUs > 0 {
		txt = fmt.Sprintf("%d × %s with %s each, ", o.GPUs, text.Word(o.GPU), units.Binary(o.GPUMemory)) + txt
	}
	if o.EFA > 0 {
		txt += ", EFA"
	}
	if o.Arch != "" && o.Arch != "x86_64" {
		txt += ", " + text.Word(o.Arch)
	}
	return txt
}

// enginePlanned is the engine, and how many ranks there are where that is known.
func enginePlanned(p *PlanView) string {
	if p.WorldSize == 0 {
		return p.EngineText() + "; the world size depends on what the nodes have"
	}
	return fmt.Sprintf("%s, world size %d", p.EngineText(), p.WorldSize)
}

func (m *Model) rankCommand(r workbench.RankGroup, w int) []string {
	head := m.styles.Dim.Of(text.Fit(r.Label(), 11) + text.Fit(session.NodeName(r.Node), 8))
	lines := text.Wrap(text.Word(r.Command), max(w-21, 8))
	out := make([]string, len(lines))
	for i, l := range lines {
		if i > 0 {
			head = "                   "
		}
		out[i] = text.Cut("  "+head+l, w)
	}
	return out
}
