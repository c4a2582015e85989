// Package plan draws what a profile would do: its facts, its price, its checks, and
// what one that nobody has trusted would do.
package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
	"github.com/dlwb/dlwb/workbench/trust"
)

// View is the plan of a profile, or why there is none.
type View struct {
	Path  string
	Asked time.Time
	Plan  *planning.Plan
	Fault []string // why there is none
	// Untrusted is what the profile would do when nobody has trusted it; then
	// there is no plan.
	Untrusted *trust.Subject
}

// Take takes the answer to the question for a plan. One for another profile came
// too late.
func (v *View) Take(path string, p *planning.Plan, err error) {
	if path != v.Path {
		return
	}
	v.Plan, v.Fault, v.Untrusted = p, nil, trust.Of(err)
	switch {
	case v.Untrusted != nil:
		v.Plan = nil
	case err != nil:
		v.Plan, v.Fault = nil, text.Words(strings.Split(strings.TrimSpace(err.Error()), "\n"))
	}
}

// Waits reports whether the plan is still being made.
func (v *View) Waits() bool { return v.Plan == nil && v.Fault == nil && v.Untrusted == nil }

// Draw is the whole page.
func (v *View) Draw(l text.Look, w int) []string {
	s, p := l.Styles, v.Plan
	switch {
	case v.Untrusted != nil:
		return v.drawUntrusted(l, w)
	case v.Fault != nil:
		out := []string{s.Bad.Of("✗ The profile can't be used as it is."), ""}
		for _, line := range v.Fault {
			out = append(out, text.Wrap(line, w)...)
		}
		return append(out, "", s.Dim.Of("Nothing was changed. Correct the file, then ")+s.Key.Of("enter")+s.Dim.Of(" on it again."))
	case p == nil:
		return []string{l.Spinner() + " making the plan, for " + text.Since(l.Now, v.Asked) + s.Dim.Of("; nothing is changed by it")}
	}
	out := facts(l, p, w)
	out = append(out, Findings(l, p.Findings, w)...)
	for _, start := range p.Launches {
		out = append(out, "")
		for _, text := range text.Wrap("what each rank runs: "+text.Word(start.Heading()), w) {
			out = append(out, s.Dim.Of(text))
		}
		for _, g := range start.Groups() {
			out = append(out, rankCommand(l, g, w)...)
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

// Findings is what was looked at before anything is paid, with what to do
// about what stands in the way. Nothing of it is cut off: it may be a command.
func Findings(l text.Look, all []cloud.Finding, w int) []string {
	s := l.Styles
	out := []string{"", s.Dim.Of("checks")}
	const left = 20
	for _, f := range all {
		lead := findingMark(s, f) + " " + text.Fit(text.Word(f.What), left-4) + "  "
		for _, row := range text.Wrap(text.Word(f.Text), max(w-left, 1)) {
			out = append(out, text.Cut(lead+row, w))
			lead = strings.Repeat(" ", left)
		}
		if f.Result() == cloud.Fine || f.Next == "" {
			continue
		}
		do := s.Warn.Of("do: ")
		for _, row := range text.Wrap(text.Word(f.Next), max(w-left-4, 1)) {
			out = append(out, text.Cut(strings.Repeat(" ", left)+do+row, w))
			do = "    "
		}
	}
	if len(all) == 0 {
		out = append(out, "  nothing had to be checked")
	}
	return out
}

// findingMark is the sign of a finding in the colour of what it means.
func findingMark(s *text.Styles, f cloud.Finding) string {
	switch f.Result() {
	case cloud.Fine:
		return s.Good.Of(f.Mark())
	case cloud.Problem:
		return s.Bad.Of(f.Mark())
	}
	return s.Warn.Of(f.Mark())
}

func facts(look text.Look, p *planning.Plan, w int) []string {
	row := func(k, v string) string { return text.Cut(look.Styles.Dim.Of(text.Fit(k, 14))+text.Word(v), w) }
	out := append([]string{row("profile", p.Name)}, Money(look, p, w)...)
	out = append(out,
		row("environment", p.Environment),
		row("code", event.SizeText(p.Code.Files, p.Code.Bytes)+" from "+p.Code.Dir),
		row("engine", enginePlanned(p)))
	for _, l := range text.Wrap(text.Word(p.EngineWhy), max(w-14, 1)) {
		out = append(out, row("", l))
	}
	for _, from := range p.Data {
		out = append(out, row("data", from))
	}
	if p.State != "" {
		out = append(out, row("state", p.State+", as DLWB_STATE"))
	}
	for _, warning := range p.Code.Warnings {
		out = append(out, text.Cut(look.Styles.Warn.Of(text.Fit("! code", 14))+text.Word(warning), w))
	}
	if len(p.Results) > 0 {
		out = append(out, row("results", strings.Join(p.Results, ", ")))
	}
	for _, warning := range p.Warnings {
		lead := look.Styles.Warn.Of(text.Fit("! results", 14))
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

// Money is what machines a plan takes, what they cost and at most can cost.
func Money(look text.Look, p *planning.Plan, w int) []string {
	s := look.Styles
	row := func(k, v string) string { return text.Cut(s.Dim.Of(text.Fit(k, 14))+v, w) }
	price := "costs nothing"
	if p.PricePerHour > 0 {
		price = units.PerHour(p.PricePerHour)
	}
	out := []string{row("machines", text.Plural(p.Nodes, "node")+" of "+text.Word(p.Provider)+", "+price)}
	if o := p.Offer; o != nil {
		out = append(out, row("", text.Word(o.Instance)+" in "+text.Word(o.Region)+s.Dim.Of(": "+Offer(*o))))
	}
	for _, c := range p.Costs {
		out = append(out, row("", Cost(look, c.PerHour, c.What, c.Source, max(w-14, 1))))
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

// Offer describes a machine in a line.
func Offer(o cloud.Offer) string {
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
func enginePlanned(p *planning.Plan) string {
	if p.WorldSize == 0 {
		return p.EngineText() + "; the world size depends on what the nodes have"
	}
	return fmt.Sprintf("%s, world size %d", p.EngineText(), p.WorldSize)
}

func rankCommand(l text.Look, r planning.RankGroup, w int) []string {
	head := l.Styles.Dim.Of(text.Fit(r.Label(), 11) + text.Fit(session.NodeName(r.Node), 8))
	lines := text.Wrap(text.Word(r.Command), max(w-21, 8))
	out := make([]string, len(lines))
	for i, row := range lines {
		if i > 0 {
			head = "                   "
		}
		out[i] = text.Cut("  "+head+row, w)
	}
	return out
}

// Cost is one part of a price.
func Cost(l text.Look, perHour float64, what, source string, w int) string {
	txt := text.FlushRight(units.PerHour(perHour), 9) + "  " + text.Word(what)
	if source != "" {
		txt += l.Styles.Dim.Of("  " + strings.TrimSpace(text.Word(source)))
	}
	return text.Cut(txt, w)
}
