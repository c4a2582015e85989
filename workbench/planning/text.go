package planning

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/workbench/event"
)

// Text is the plan as a page of plain text.
func (p *Plan) Text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		sanitize.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("profile", "%s %s", p.Name, p.Path)
	row("cluster", "%s: %s on %s%s", p.Cluster, units.Count(p.Nodes, "node"), p.Provider, costText(p.PricePerHour))
	if o := p.Offer; o != nil {
		row("machine", "%s in %s: %s", o.Instance, o.Region, offerText(*o))
	}
	for _, c := range p.Costs {
		row("", "%s  %s (%s)", units.PerHour(c.PerHour), c.What, c.Source)
	}
	if p.Most > 0 {
		row("at most", "%s by %s", units.USD(p.Most), p.MostWhy)
	}
	row("environment", "%s", p.Environment)
	if p.EngineWhy != "" {
		row("", "finds %s", p.EngineWhy)
	}
	row("code", "%s from %s; only what changed is sent", event.SizeText(p.Code.Files, p.Code.Bytes), p.Code.Dir)
	for _, w := range p.Code.Warnings {
		row("", "warning: %s", w)
	}
	for _, text := range p.Data {
		row("data", "%s", text)
	}
	if p.State != "" {
		row("state", "%s, as DLWB_STATE", p.State)
	}
	for _, l := range p.Launches {
		row("engine", "%s", l.Heading())
		for _, g := range l.Groups() {
			row("  "+g.Label(), "node%d: %s", g.Node, g.Command)
		}
		for _, s := range l.Serving {
			row("", "node%d %s %s", s.Node, s.What, s.Text)
		}
		for _, n := range l.Notes {
			row("", "%s", n)
		}
	}
	for _, o := range p.Open {
		row("  "+o.Name, "%s", o.Is)
	}
	if len(p.Secrets) > 0 {
		row("secrets", "%s, from this shell", strings.Join(p.Secrets, ", "))
	}
	p.resultsText(row)
	for _, text := range p.Warnings {
		row("warning", "%s", text)
	}
	if len(p.Limits) > 0 {
		row("limits", "%s", strings.Join(p.Limits, ", "))
	}
	if len(p.Forward) > 0 {
		row("forward", "%s, while the run is watched", profiles.ForwardsText(p.Forward))
	}
	for _, n := range p.NotActedOn {
		row("ignored", "%s", n)
	}
	row("steps", "%s", strings.Join(p.Steps, " → "))
	if p.Script != "" {
		row("script", "what is handed in; RUN and HOME stand for what is known then")
		for line := range strings.Lines(p.Script) {
			sanitize.Fprintf(&b, "  | %s\n", strings.TrimRight(line, "\n"))
		}
	}
	for _, f := range p.Findings {
		row("check", "%s %s: %s", f.Mark(), f.What, f.Text)
		if f.Next != "" {
			row("", "  next: %s", f.Next)
		}
	}
	return b.String()
}

// resultsText says where what the run writes goes.
func (p *Plan) resultsText(row func(name, format string, args ...any)) {
	if len(p.Results) > 0 {
		row("results", "%s from node0, and DLWB_RESULTS of every node", strings.Join(p.Results, ", "))
	}
	if p.Profile != nil && p.Profile.Results.S3 != "" && homeward(traits(p.Provider)) {
		row("results in", "%s besides, and checkpoints; dlwb sends them with your AWS credentials", p.Profile.Results.S3)
	}
	if p.Profile != nil && keptInS3(p.Profile) {
		row("results", "what the run writes to DLWB_OUTPUT in %s, by the role of its containers", p.Profile.Results.S3)
	}
}

func costText(perHour float64) string {
	if perHour == 0 {
		return ", costs nothing"
	}
	return ", " + units.PerHour(perHour)
}

// offerText describes a machine in a line.
func offerText(o cloud.Offer) string {
	s := fmt.Sprintf("%d vCPUs, %s", o.VCPUs, units.Binary(o.Memory))
	if o.GPUs > 0 {
		s = fmt.Sprintf("%d × %s with %s each, ", o.GPUs, o.GPU, units.Binary(o.GPUMemory)) + s
	}
	if o.EFA > 0 {
		s += ", EFA"
	}
	if o.Arch != "" && o.Arch != "x86_64" {
		s += ", " + o.Arch
	}
	return s
}
