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
		if from == "" { // git clones no directory inside a repository
			from = strings.TrimSuffix(r.CodeDir, "/"+strings.TrimSuffix(g.Prefix, "/"))
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
		node, command := r.rankByHand(rank)
		line := fmt.Sprintf("# node %d\n%s", node, command)
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return slices.Clip(lines)
}

// rankByHand is the command of a rank without what dlwb puts around it, and with
// the Python that the commands before it make: that of the run went with its cluster.
// Besides, it gives the node on which it is given. An engine without a launcher of its
// own leaves it to others to say who is who.
func (r Recipe) rankByHand(rank event.RankInfo) (node int, command string) {
	command = rank.Command
	words, err := engine.Split(command)
	alone := err == nil && len(words) > 3 && strings.HasSuffix(words[1], "/.dlwb/bin/rank")
	if err == nil {
		command = engine.Join(r.ownPython(bare(words)))
	}
	switch {
	case alone && engine.MayUseMPI(r.Engine): // each rank was told of the others; that launcher does it
		return 0, fmt.Sprintf("horovodrun --gloo -np %d -H %s %s", len(r.Ranks), shellword.Join(r.slots()), command)
	case engine.HasLauncher(r.Engine):
		return rank.Node, command
	}
	return rank.Node, fmt.Sprintf("RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d MASTER_ADDR=%s MASTER_PORT=29500 %s",
		rank.Rank, rank.LocalRank, len(r.Ranks), shellword.Join(r.host(0)), command)
}

// host is where a node of the run was.
func (r Recipe) host(node int) string {
	if node >= len(r.Machines) || providers.Named(r.Provider).Traits.SharedHost {
		return "127.0.0.1"
	}
	return r.Machines[node].Host
}

// slots are the hosts with their numbers of ranks: a:2,b:2.
func (r Recipe) slots() string {
	var hosts []string
	count := map[string]int{}
	for _, rank := range r.Ranks {
		host := r.host(rank.Node)
		if count[host] == 0 {
			hosts = append(hosts, host)
		}
		count[host]++
	}
	for i, host := range hosts {
		hosts[i] = fmt.Sprintf("%s:%d", host, count[host])
	}
	return strings.Join(hosts, ",")
}

// bare takes the words out of a command that name dlwb's files on a node: the script
// that starts each rank, where launchers write their logs, and what leads mpirun.
func bare(words []string) []string {
	var kept []string
	for i := 0; i < len(words); i++ {
		next := func(n int) string {
			if i+n < len(words) {
				return words[i+n]
			}
			return ""
		}
		switch {
		case words[i] == "sh" && strings.HasSuffix(next(1), "/.dlwb/bin/rank"):
			i += 2 // and the directory of the run
		case words[i] == "sh" && strings.Contains(next(1), "/.dlwb/runs/") && strings.HasSuffix(next(1), "/mpirun.sh"):
			kept = append(kept, "mpirun")
			i++
		case words[i] == "sh" && next(1) == "-c" && strings.Contains(next(2), "$DLWB_AGENT"):
			i += 3 // and the name of that script
		case words[i] == "--log_dir" && strings.Contains(next(1), "/.dlwb/runs/"):
			i++
		default:
			kept = append(kept, words[i])
		}
	}
	return kept
}

// ownPython puts the Python of a reader into the place of that of the run.
func (r Recipe) ownPython(words []string) []string {
	own := "python3"
	if len(r.Packages) > 0 {
		own = ".venv/bin/python"
	}
	_, of, _ := strings.Cut(r.Python, " ") // behind its version
	for i := range words {
		if of != "" && words[i] == of {
			words[i] = own
		}
	}
	return words
}
