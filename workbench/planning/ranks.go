package planning

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
)

// Site is what the ranks of a run are laid out on: a plan fills it with what is
// known before anything exists, and with names for the rest; a launch with what
// is there. Both go through LayRanks, so that what a plan says is what runs.
type Site struct {
	Nodes  []engine.Node
	Python string
	Torch  bool // PyTorch was found with that Python
	// OldTorch: it is one whose faults are worked around.
	OldTorch bool
	NoMPI    bool   // Horovod can't use MPI
	Run      string // its id
	Port     int    // of the master; 0 where PortIs stands for it
	PortIs   string // stands for a port that is not chosen yet
	Trial    bool   // of a sweep
	Unplaced bool   // which machines the nodes will be is not known
	Beside   bool   // the service starts no cluster for the engine
	Threads  int    // that the ranks of one node may use together; 0: not known
	// Sources are texts of the project that decide what is filled in.
	Sources map[string]string
}

// LayRanks works out what every node runs.
func LayRanks(p *profiles.Profile, s Site) (engine.Plan, error) {
	words, err := engine.Split(p.Run.Command)
	if err != nil {
		return engine.Plan{}, &event.Fault{What: "read run.command", Node: -1, Why: err.Error()}
	}
	r, name := p.Run, engineOf(p.Run.Engine, words, s)
	about := providers.Named(p.Provider)
	clusters := slices.Contains(about.Clusters, name)
	given := clusters && !s.Beside
	if given && len(s.Nodes) > 1 {
		s.Nodes = slices.Clone(s.Nodes)
		s.Nodes[0].GPUs, s.Nodes[0].Head = 0, true
	}
	here := RestartsHere(p, name)
	if s.Trial {
		here = 0 // nobody would start it again
	}
	made, err := engine.Make(name, s.Nodes, engine.Job{
		Command: OfRun(words, s.Run), Python: s.Python, RankScript: "~/.dlwb/bin/rank", RunDir: "~/.dlwb/runs/" + s.Run,
		ProcsPerNode: r.ProcsPerNode, MasterPort: s.Port, PortName: s.PortIs, Env: Environ(EnvOfRun(r.Env, s.Run), false),
		Given:      given || !clusters && slices.Contains(about.Carries, name),
		MaxThreads: s.Threads, OldTorch: s.OldTorch, NoMPI: s.NoMPI, Unplaced: s.Unplaced, Run: s.Run, Sources: s.Sources,
		Options: engine.Options{Rendezvous: r.Rendezvous, MinNodes: r.MinNodes, Restarts: r.Restarts - here,
			ParameterServers: r.ParameterServers, Evaluator: r.Evaluator},
	})
	if err != nil {
		return made, &event.Fault{What: "plan the ranks", Node: -1, Why: err.Error()}
	}
	if here > 0 {
		made.Notes = append(made.Notes, restartNote(p, here))
	}
	return made, nil
}

// Nodes is how many nodes the run of a profile has: those of its cluster, and one for
// the head of a cluster that the service starts for the engine and that has several.
func Nodes(p *profiles.Profile) int {
	if n := p.Nodes(); n < 2 || !slices.Contains(providers.Named(p.Provider).Clusters, engineAsked(p)) {
		return n
	}
	return p.Machines.Count + 1
}

// engineAsked is the engine of a profile as far as it says: by name, or by the launcher
// that its command begins with.
func engineAsked(p *profiles.Profile) string {
	words, err := engine.Split(p.Run.Command)
	if err != nil || engine.Resolve(p.Run.Engine, true) == engine.Resolve(p.Run.Engine, false) {
		return p.Run.Engine
	}
	if found := engine.Launcher(words); found != "" {
		return found
	}
	return p.Run.Engine
}

// RestartsHere is how often dlwb itself starts a run again that has failed; 0: never,
// or the launcher of the engine does. A launcher knows nothing of checkpoints, and
// which are whole; the trials of a sweep and jobs have theirs alone.
func RestartsHere(p *profiles.Profile, engineName string) int {
	launcher := slices.Contains(engine.Having("run.restarts"), engineName)
	switch {
	case p.Sweep.Given() || traits(p.Provider).RanksOnly:
		return 0
	case launcher && (p.Results.Checkpoints == "" || p.Run.MinNodes > 0):
		return 0
	}
	return p.Run.Restarts
}

func restartNote(p *profiles.Profile, times int) string {
	from := "the script looks for its own checkpoint"
	if dir := p.Results.Checkpoints; dir != "" {
		from = "from the newest whole checkpoint in " + dir + ", whose path is in DLWB_CHECKPOINT"
	}
	return fmt.Sprintf("run.restarts: as long as the dlwb that launched the run is there, it starts it again when a rank has failed, %s at most: %s", units.Count(times, "time"), from)
}

// engineOf is the engine of a run: where the profile leaves it open, the one whose
// launcher the command begins with, else what is found on node 0 decides. On one
// node a script that starts its ranks itself is left to do so.
func engineOf(name string, command []string, s Site) string {
	if engine.Resolve(name, true) == engine.Resolve(name, false) {
		return engine.Resolve(name, s.Torch)
	}
	if found := engine.Launcher(command); found != "" {
		return found
	}
	own := engine.StartsItself(command, s.Sources)
	return engine.Resolve(name, (s.Torch || own) && !(own && len(s.Nodes) == 1))
}

// The names that stand in planned commands for what is known only at the
// launch.
const (
	namePython = "PYTHON"
	nameRun    = "RUN"
	nameHead   = "NODE0"
	namePort   = "PORT"
)

// Placeholder is a name in planned commands, and what will stand in its place.
type Placeholder struct {
	Name string `json:"name"`
	Is   string `json:"is"`
}

// opens lists the names that a plan can have.
var opens = []Placeholder{
	{nameRun, "the id of the run"},
	{namePython, "the interpreter that the environment has on node0"},
	{nameHead, "the address at which the other nodes reach node0"},
	{namePort, "a port of node0 that is free at the launch"},
}

// Launch is what a plan comes to when a condition holds.
type Launch struct {
	// When is the condition; empty where there is only one launch.
	When      string `json:"when,omitempty"`
	Engine    string `json:"engine"`
	WorldSize int    `json:"world_size"` // 0 where the number of GPUs is not known
	// Commands are those of every rank; empty where WorldSize is 0.
	Commands []event.RankInfo `json:"commands"`
	// Serving are the processes that are no ranks, what is waited for and which
	// files the nodes need, in words.
	Serving []Service `json:"serving,omitempty"`
	// lacks is what keeps it from being started there, and lacksNext what to do about
	// that; empty: nothing.
	lacks, lacksNext string
	// Notes say what was taken over from the command, or filled in.
	Notes []string `json:"notes,omitempty"`
}

// Service is something that a node has besides its ranks.
type Service struct {
	Node int    `json:"node"`
	What string `json:"what"` // "runs beside", "waits for", "needs the file"
	Text string `json:"text"`
}

// services are what a plan of an engine has besides ranks.
func services(made engine.Plan) (all []Service) {
	for node, procs := range made.Nodes {
		for _, p := range procs {
			if p.Helper {
				all = append(all, Service{node, "runs beside", engine.Join(p.Argv)})
			}
			if p.After != nil {
				all = append(all, Service{node, "waits for", fmt.Sprintf("%s, %s at most", p.After.What, units.Duration(time.Duration(p.After.Limit)*time.Second))})
			}
		}
	}
	for node, files := range made.Files {
		for _, f := range files {
			all = append(all, Service{node, "needs the file", f.Name + ": " + strings.Join(strings.Split(strings.TrimSpace(f.Text), "\n"), "; ")})
		}
	}
	return all
}

// Heading is a launch in a line: engine, world size, condition.
func (l Launch) Heading() string {
	text := fmt.Sprintf("%s, world size %d", l.Engine, l.WorldSize)
	if l.WorldSize == 0 {
		text = l.Engine + ", one rank for each GPU"
	}
	if l.When != "" {
		text += ", if " + l.When
	}
	return text
}

// RankGroup is ranks of one node that run one command.
type RankGroup struct {
	First, Last, Node int
	Command           string
}

// Label is "rank 0" or "rank 0–3".
func (g RankGroup) Label() string {
	if g.First == g.Last {
		return fmt.Sprintf("rank %d", g.First)
	}
	return fmt.Sprintf("rank %d–%d", g.First, g.Last)
}

// Groups are the ranks of a launch, those of a node together that run the same.
func (l Launch) Groups() []RankGroup {
	var all []RankGroup
	for _, r := range l.Commands {
		if n := len(all); n > 0 && all[n-1].Node == r.Node && all[n-1].Command == r.Command {
			all[n-1].Last = r.Rank
			continue
		}
		all = append(all, RankGroup{r.Rank, r.Rank, r.Node, r.Command})
	}
	return all
}

// branch is one way in which something that is not known yet may turn out.
type branch struct {
	when string
	set  func(*Site)
	open bool // how many ranks there are is not known then
}

// launches are all ways in which the conditions may turn out together.
func launches(p *profiles.Profile, base Site, questions [][]branch) ([]Launch, error) {
	all := []branch{{set: func(*Site) {}}}
	for _, answers := range questions {
		var next []branch
		for _, a := range all {
			for _, b := range answers {
				next = append(next, branch{joined(a.when, b.when), func(s *Site) { a.set(s); b.set(s) }, a.open || b.open})
			}
		}
		all = next
	}
	var out []Launch
	only := traits(p.Provider).RanksOnly
	for _, c := range all {
		s := base
		s.Nodes = slices.Clone(base.Nodes)
		c.set(&s)
		made, err := LayRanks(p, s)
		if err != nil {
			return nil, ofProfile(p, err)
		}
		l := Launch{When: c.when, Engine: made.Engine, WorldSize: made.WorldSize, Commands: RankInfos(made),
			Serving: services(made), Notes: made.Notes}
		if only {
			l.lacks, l.lacksNext = MoreThanRanks(p.Provider, made)
		}
		if c.open {
			l.WorldSize, l.Commands, l.Serving = 0, []event.RankInfo{}, nil
		}
		out = append(out, l)
	}
	return out, nil
}

// ofProfile is what is wrong with the ranks of a plan, at the key of the profile
// that it names.
func ofProfile(p *profiles.Profile, err error) error {
	key, first := "run.command", len(err.Error())
	for _, f := range profiles.Fields {
		ours := strings.HasPrefix(f.Key, "run.") || strings.HasPrefix(f.Key, "machines.")
		if at := strings.Index(err.Error(), f.Key); at >= 0 && at < first && ours && p.Gives(f.Key) {
			key, first = f.Key, at
		}
	}
	what, why := "plan the ranks", err.Error()
	var fault *event.Fault
	if errors.As(err, &fault) {
		what, why = fault.What, fault.Why
	}
	return profiles.Errors{p.Fault(key, what, why, "", "")}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " and " + b
}

// opened lists the names that stand in the commands of launches.
func opened(all []Launch) []Placeholder {
	found := []Placeholder{}
	for _, o := range opens {
		if slices.ContainsFunc(all, func(l Launch) bool {
			return slices.ContainsFunc(l.Commands, func(r event.RankInfo) bool { return strings.Contains(r.Command, o.Name) })
		}) {
			found = append(found, o)
		}
	}
	return found
}

// OwnPython is a command with the interpreter of its node: the plan was made with
// that of node 0, and it may lie elsewhere.
func OwnPython(argv []string, planned, own string) []string {
	if own == "" || own == planned {
		return argv
	}
	mine := slices.Clone(argv)
	for i, word := range mine {
		if word == planned {
			mine[i] = own
		}
	}
	return mine
}
