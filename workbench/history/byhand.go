package history

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
)

// CommandsByHand are the commands with which a person does a run again without
// its record: get the code, the packages and start the ranks.
func (r Recipe) CommandsByHand() []string {
	var lines []string
	if g := r.Git; g != nil {
		from := g.Remote
		if from == "" {
			from = r.CodeDir
		}
		lines = append(lines, "git clone "+shellword.Join(from)+" code && cd code", "git checkout "+g.Commit)
		if g.Diff != "" {
			lines = append(lines, "git apply uncommitted.diff")
		}
		if g.Prefix != "" {
			lines = append(lines, "cd "+shellword.Join(g.Prefix))
		}
	}
	if len(r.Packages) > 0 {
		lines = append(lines, "python3 -m venv .venv && .venv/bin/pip install -r requirements.lock")
	}
	seen := map[string]bool{}
	for _, rank := range r.Ranks {
		line := fmt.Sprintf("# node %d\n%s", rank.Node, r.rankByHand(rank))
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return slices.Clip(lines)
}

// rankByHand is the command of a rank without what dlwb puts around it. An
// engine without a launcher of its own leaves it to others to say who is who.
func (r Recipe) rankByHand(rank event.RankInfo) string {
	command := rank.Command
	if words, err := engine.Split(command); err == nil && len(words) > 3 && strings.HasSuffix(words[1], "/.dlwb/bin/rank") {
		command = engine.Join(words[3:])
	}
	if engine.HasLauncher(r.Engine) {
		return command
	}
	host := "127.0.0.1"
	if len(r.Machines) > 0 && !providers.Named(r.Provider).Traits.SharedHost {
		host = r.Machines[0].Host
	}
	return fmt.Sprintf("RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d MASTER_ADDR=%s MASTER_PORT=29500 %s",
		rank.Rank, rank.LocalRank, len(r.Ranks), shellword.Join(host), command)
}
