// Package planned holds what was launched against what the plan had said. Only
// tests import it.
package planned

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Plan is what dlwb plan --json says of the launch.
type Plan struct {
	Launches []planning.Launch      `json:"launches"`
	Open     []planning.Placeholder `json:"open"`
}

// Of is the same of a plan in hand.
func Of(p *planning.Plan) Plan { return Plan{p.Launches, p.Open} }

// Taken finds the one launch of a plan that a run came to: the same engine and
// world size, and the command of every rank word for word, where each name that
// the plan left open stands for one and the same text everywhere. It returns
// the condition of that launch.
func (p Plan) Taken(run event.RunStarted) (when string, err error) {
	var taken []string
	var why []string
	for _, l := range p.Launches {
		if err := p.match(l, run); err != nil {
			why = append(why, l.Heading()+": "+err.Error())
			continue
		}
		taken = append(taken, l.When)
	}
	if len(taken) != 1 {
		return "", fmt.Errorf("%d launches of the plan are what ran, and one must be: %s", len(taken), strings.Join(why, "\n"))
	}
	return taken[0], nil
}

func (p Plan) match(l planning.Launch, run event.RunStarted) error {
	if l.Engine != run.Engine || l.WorldSize != run.WorldSize || len(l.Commands) != len(run.Ranks) {
		return fmt.Errorf("%s with world size %d ran", run.Engine, run.WorldSize)
	}
	values := map[string]string{"PYTHON": run.Python}
	for i, c := range l.Commands {
		ran := run.Ranks[i]
		if c.Rank != ran.Rank || c.LocalRank != ran.LocalRank || c.Node != ran.Node {
			return fmt.Errorf("rank %d is at another place: %+v", i, ran)
		}
		if err := p.same(c.Command, ran.Command, values); err != nil {
			return fmt.Errorf("rank %d: %w", i, err)
		}
	}
	return nil
}

// same compares a planned command with one that ran, and learns what the open
// names stand for.
func (p Plan) same(plan, ran string, values map[string]string) error {
	pattern, names := regexp.QuoteMeta(plan), []string{}
	var open []string
	for _, o := range p.Open {
		open = append(open, o.Name)
	}
	if len(open) > 0 {
		pattern = regexp.MustCompile(`\b(`+strings.Join(open, "|")+`)\b`).ReplaceAllStringFunc(pattern, func(name string) string {
			names = append(names, name)
			return `([^ ]+?)`
		})
	}
	found := regexp.MustCompile(`^` + pattern + `$`).FindStringSubmatch(ran)
	if found == nil {
		return fmt.Errorf("planned %q, ran %q", plan, ran)
	}
	for i, name := range names {
		if was, known := values[name]; known && was != found[i+1] {
			return fmt.Errorf("%s is %q here and %q elsewhere", name, found[i+1], was)
		}
		values[name] = found[i+1]
	}
	return nil
}
