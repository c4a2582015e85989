package planning

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/workbench/event"
)

// lookFile keeps what the interpreters of this machine said of themselves, so that
// a plan starts none of them when they are as they were.
const lookFile = "pythons"

// planCommands works out the command of every rank, as the launch will. What is
// not known before there are nodes is named in the commands, and what the
// commands depend on is said as a condition.
func (m *Maker) planCommands(ctx context.Context, plan *Plan, found cloud.Preflight) error {
	p := plan.Profile
	base := Site{Nodes: make([]engine.Node, plan.Nodes), Python: namePython, Run: nameRun, Port: p.Run.MasterPort, Sources: Sources(p), Unplaced: traits(p.Provider).RanksOnly, Beside: plan.Beside}
	if base.Port == 0 {
		base.PortIs = namePort
	}
	for i := range base.Nodes {
		base.Nodes[i].Host = nodeHost(p.Provider, i)
	}
	base.Nodes[0].Head = p.Head() != ""
	questions := [][]branch{gpuConditions(ctx, p, found)}
	torch, err := plan.torchConditions(ctx, &base, filepath.Join(m.owner.Dir, lookFile))
	if err != nil {
		return err
	}
	if plan.Launches, err = launches(p, base, append(questions, torch, plan.mpiConditions(ctx, base))); err != nil {
		return err
	}
	plan.Findings = append(plan.Findings, notCarried(p, plan.Launches)...)
	plan.agree()
	return nil
}

// MoreThanRanks says why an engine's plan can't be carried where there is nothing
// beside ranks, and what to do about it; empty: it can.
func MoreThanRanks(provider string, made engine.Plan) (why, next string) {
	helps := func(p engine.Proc) bool { return p.Helper || p.After != nil }
	switch {
	case traits(provider).Serves || slices.Contains(providers.Named(provider).Carries, made.Engine):
		return "", ""
	case made.Leads || len(made.Files) > 0 || slices.ContainsFunc(slices.Concat(made.Nodes...), helps):
		return fmt.Sprintf("engine %s needs processes and files beside its ranks, which jobs of this provider do not have", made.Engine),
			"take one that starts ranks alone: " + engine.AutoIs
	}
	return "", ""
}

// NoContainer and NextWithoutContainer are said of a container where there is nothing
// but ranks.
const (
	NoContainer          = "the environment is a container that dlwb starts, and jobs of this provider are not started in one"
	NextWithoutContainer = "environment: venv or conda"
)

// notCarried are what jobs would lose without a word: the launch refuses it, too.
func notCarried(p *profiles.Profile, launches []Launch) (all []cloud.Finding) {
	if t := traits(p.Provider); t.RanksOnly && !t.Sealed && p.Environment.Kind == environment.Docker {
		all = append(all, cloud.Finding{What: "environment", Text: NoContainer, Next: NextWithoutContainer})
	}
	fails := slices.DeleteFunc(slices.Clone(launches), func(l Launch) bool { return l.lacks == "" })
	if len(fails) == 0 {
		return all
	}
	f := cloud.Finding{What: "engine", Text: fails[0].lacks, Next: fails[0].lacksNext}
	if len(fails) < len(launches) { // what is found at the launch decides
		f.OK, f.State, f.Text = true, cloud.Warned, fails[0].When+": "+f.Text
	}
	return append(all, f)
}

// agree sets what all launches of a plan have in common.
func (p *Plan) agree() {
	first := p.Launches[0]
	p.Engine, p.WorldSize, p.Commands = first.Engine, first.WorldSize, first.Commands
	for _, l := range p.Launches[1:] {
		if l.Engine != first.Engine {
			p.Engine = engine.Auto
		}
		if l.WorldSize != first.WorldSize {
			p.WorldSize = 0
		}
		if !slices.Equal(l.Commands, first.Commands) {
			p.Commands = []event.RankInfo{}
		}
	}
	p.Open = opened(p.Launches)
}

// EngineText is the engine in a line, with the condition on which it depends.
func (p *Plan) EngineText() string {
	if p.Engine != engine.Auto {
		return p.Engine
	}
	return engine.AutoPlan
}

// torchConditions are what the choice of the engine depends on. On the local
// provider the nodes are this machine, and what its own Python has is known.
func (p *Plan) torchConditions(ctx context.Context, base *Site, look string) ([]branch, error) {
	e := p.Profile.Environment
	if traits(p.Provider).SharedHost && e.Kind == environment.System {
		found, err := environment.Probe(ctx, ThisMachine{}, e.Python, look)
		var failure *environment.Failure
		switch {
		case errors.As(err, &failure):
			p.Findings = append(p.Findings, cloud.Finding{What: "Python", Text: failure.Why, Next: failure.Next})
		case err != nil:
			return nil, err
		default:
			base.Python, base.Torch, p.EngineWhy = found.Python, found.Torch != "", found.Text
			return []branch{{set: func(*Site) {}}}, nil
		}
	}
	if all, known := p.Pythons.certain(p.Profile, len(base.Nodes)); known {
		base.Torch = p.Pythons[0].Torch != ""
		if all != "" {
			base.Python = all
		}
		return []branch{{set: func(*Site) {}}}, nil
	}
	words, err := engine.Split(p.Profile.Run.Command)
	if err != nil {
		return nil, &event.Fault{What: "read run.command", Node: -1, Why: err.Error()}
	}
	with, without := *base, *base
	with.Torch, without.Torch = true, false
	if engineOf(p.Profile.Run.Engine, words, with) == engineOf(p.Profile.Run.Engine, words, without) {
		return []branch{{set: func(*Site) {}}}, nil
	}
	return []branch{
		{when: "PyTorch is found on node0", set: func(s *Site) { s.Torch = true }},
		{when: "PyTorch is not found on node0", set: func(s *Site) { s.Torch = false }},
	}, nil
}

// gpuConditions are how many GPUs the nodes may have: for each machine of the
// choice that has another number than those before it.
func gpuConditions(ctx context.Context, p *profiles.Profile, found cloud.Preflight) []branch {
	all := func(n int) func(*Site) {
		return func(s *Site) {
			for i := range s.Nodes {
				if !s.Nodes[i].Head {
					s.Nodes[i].GPUs = n
				}
			}
		}
	}
	switch {
	case len(found.Choices) > 0:
		return choiceConditions(found.Choices, all)
	case len(found.GPUs) == p.Machines.Count && !slices.Contains(found.GPUs, cloud.UnknownGPUs):
		return []branch{{set: func(s *Site) {
			for i, n := range found.GPUs { // a head before them has none
				s.Nodes[len(s.Nodes)-len(found.GPUs)+i].GPUs = n
			}
		}}}
	case traits(p.Provider).SharedHost:
		return []branch{{set: all(ShareOfGPUs(ctx, p.Machines.Count))}}
	case p.Run.ProcsPerNode > 0: // so many ranks, whatever GPUs there are
		return []branch{{set: func(*Site) {}}}
	}
	return []branch{{when: "no node has a GPU", set: all(0)}, {when: "nodes have GPUs", set: all(1), open: true}}
}

// choiceConditions are the machines of a choice, those with the same number of
// GPUs together.
func choiceConditions(choices []cloud.Offer, all func(int) func(*Site)) []branch {
	var out []branch
	var names [][]string
	at := map[int]int{}
	for _, o := range choices {
		name := o.Instance
		if len(choices) > 1 {
			name += " in " + o.Region
		}
		i, known := at[o.GPUs]
		if !known {
			i, at[o.GPUs] = len(out), len(out)
			out, names = append(out, branch{set: all(o.GPUs)}), append(names, nil)
		}
		names[i] = append(names[i], name)
	}
	for i := range out {
		if len(out) > 1 {
			out[i].when = "the machines are " + anyOf(names[i])
		}
	}
	return out
}

// anyOf is "a, b or 3 others".
func anyOf(names []string) string {
	const most = 3
	if n := len(names); n > most {
		names = append(names[:most-1:most-1], units.Count(n-most+1, "other"))
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// RankInfos lists every rank with the command that starts it.
func RankInfos(p engine.Plan) []event.RankInfo {
	var ranks []event.RankInfo
	for _, r := range p.Ranks() {
		info := event.RankInfo{Rank: r.Rank, LocalRank: r.LocalRank, Node: r.Node}
		for _, proc := range p.Nodes[r.Node] {
			for _, rank := range proc.Ranks {
				if rank == r.Rank {
					info.Command = engine.Join(proc.Argv)
				}
			}
		}
		ranks = append(ranks, info)
	}
	return ranks
}

func nodeHost(provider string, i int) string {
	if traits(provider).SharedHost {
		return "127.0.0.1"
	}
	if i == 0 {
		return nameHead
	}
	return fmt.Sprintf("NODE%d", i)
}
