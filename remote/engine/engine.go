// Package engine turns a list of nodes and a training command into what each
// node runs. It is pure: it starts nothing, reads nothing and imports nothing
// of ours, so that a plan can be shown before anything exists.
package engine

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/nearword"
)

// Node is one machine as an engine sees it.
type Node struct {
	// Host is where the other nodes reach this one, without a port.
	Host string
	// Interface is the network interface that carries traffic between the
	// nodes; empty when unknown.
	Interface string
	// GPUs is how many GPUs the node has.
	GPUs int
}

// Job is what is to be run on the nodes.
type Job struct {
	// Command is the training command as words; see Split.
	Command []string
	// Python is the interpreter that runs it; empty means python3.
	Python string
	// RankScript wraps each rank: `sh RankScript RunDir argv…` writes the
	// rank's log and exit record into RunDir. Both are paths on the node, and
	// stay words of their own in every Argv.
	// Without a RankScript the ranks are started bare.
	RankScript, RunDir string
	// ProcsPerNode is how many ranks a node runs; 0 means one per GPU, and
	// one on a node without GPUs.
	ProcsPerNode int
	// MasterPort is a free port of node 0; 0 means 29500.
	MasterPort int
	// PortName stands for the port in a plan that is made before one is
	// chosen; empty for MasterPort.
	PortName string
	// Env is what the user sets for the training (K=V). It is only read, so
	// that nothing here overrides it: secrets in it never enter a plan.
	Env []string
	// MaxThreads is how many CPU cores the ranks of one node may use
	// together; 0 means unknown.
	MaxThreads int
}

// Proc is one process that dlwb itself starts on a node.
type Proc struct {
	// Name is "agent" for a launcher that starts ranks, else "rank-N".
	Name string
	// Ranks are the ranks it is or starts.
	Ranks []int
	// Env is K=V in a stable order. It goes on top of the environment of the
	// run and holds nothing of Job.Env.
	Env  []string
	Argv []string
	// Log is the file in the run directory for its own output.
	Log string
}

// Plan is what every node runs.
type Plan struct {
	Engine string
	// WorldSize counts ranks, never nodes.
	WorldSize int
	// Command is what each rank executes in the end, without launcher and
	// wrapper.
	Command []string
	// Nodes holds the processes of each node, in the order of the nodes.
	Nodes [][]Proc
}

// Rank is where one rank runs.
type Rank struct{ Rank, LocalRank, Node int }

// Ranks lists every rank of the plan in order.
func (p Plan) Ranks() []Rank {
	var ranks []Rank
	for n, procs := range p.Nodes {
		local := 0
		for _, proc := range procs {
			for _, r := range proc.Ranks {
				ranks = append(ranks, Rank{Rank: r, LocalRank: local, Node: n})
				local++
			}
		}
	}
	return ranks
}

// engine is one row of the table of engines. Profiles, the wizard, detection,
// the schema and the reference pages read the table: a new engine is a row here
// and its plan function.
type engine struct {
	name string
	// also are words that people write instead of the name.
	also []string
	// launcher: one process of the engine per node starts the ranks, and has a
	// log of its own.
	launcher bool
	// signs matches the text of a training script that is made for this engine;
	// empty where no text tells. uses is what such a script uses, in words.
	signs, uses string
	// owns are the variables that the engine sets for each rank; a user who
	// sets one as well would get ranks that do not find each other.
	owns []string
	// check refuses a command that this engine can't start; may be nil.
	check func(command []string) error
	plan  func(layout) [][]Proc
}

var engines = []engine{
	{name: withTorch, also: []string{"ddp", "torch", "pytorch"}, launcher: true,
		signs: `\btorch\.distributed\b|\bDistributedDataParallel\b|\binit_process_group\b`, uses: "torch.distributed",
		owns: rankVars, check: refuseTorchrun, plan: torchrun},
	{name: withoutTorch, also: []string{"python", "none"}, owns: rankVars, plan: plain},
}

// Names lists the engines.
func Names() []string {
	names := make([]string, len(engines))
	for i, e := range engines {
		names[i] = e.name
	}
	return names
}

// Auto in a profile leaves the choice of the engine to what is found on node 0.
const Auto = "auto"

// What Auto comes to, where PyTorch was found and where it was not; AutoIs says
// so for pages, AutoPlan for a plan that does not know yet.
const (
	withTorch    = "torchrun"
	withoutTorch = "plain"
	AutoIs       = withTorch + " where PyTorch is, else " + withoutTorch + " processes"
	AutoPlan     = withTorch + " if PyTorch is found, else " + withoutTorch
)

// Resolve gives the engine for a name from a profile: nothing is Auto.
func Resolve(name string, torch bool) string {
	switch {
	case name != "" && name != Auto:
		return name
	case torch:
		return withTorch
	default:
		return withoutTorch
	}
}

// Choices are the words that a profile may have for its engine.
func Choices() []string { return append([]string{Auto}, Names()...) }

// OtherWords are what people write instead of an engine's name.
func OtherWords() map[string]string {
	words := map[string]string{}
	for _, e := range engines {
		for _, word := range e.also {
			words[word] = e.name
		}
	}
	return words
}

// Detect finds the engine that a training script is made for, and what the
// script uses that tells; empty where nothing does.
func Detect(script []byte) (name, uses string) {
	for _, e := range engines {
		if e.signs != "" && regexp.MustCompile(e.signs).Match(script) {
			return e.name, e.uses
		}
	}
	return "", ""
}

// HasLauncher reports whether the engine has a process per node that starts the
// ranks, with a log of its own. A run on record of an engine that is not known is
// taken to have one, so that its log is not missed.
func HasLauncher(name string) bool {
	return !slices.ContainsFunc(engines, func(e engine) bool { return e.name == name && !e.launcher })
}

// Make plans a job on nodes with the named engine.
func Make(name string, nodes []Node, job Job) (Plan, error) {
	for _, e := range engines {
		if e.name == name {
			return e.make(nodes, job)
		}
	}
	meant := ""
	if near := nearword.Nearest(name, Names()); near != "" {
		meant = fmt.Sprintf(": did you mean %q?", near)
	}
	return Plan{}, fmt.Errorf("engine %q is not known%s (engines: %s)", name, meant, strings.Join(Names(), ", "))
}

func (e engine) make(nodes []Node, job Job) (Plan, error) {
	l, err := newLayout(nodes, job)
	if err == nil && e.check != nil {
		err = e.check(job.Command)
	}
	if err == nil {
		err = e.refuseOwned(job.Env)
	}
	if err != nil {
		return Plan{}, fmt.Errorf("engine %s: %w", e.name, err)
	}
	return Plan{Engine: e.name, WorldSize: l.world, Command: l.command, Nodes: e.plan(l)}, nil
}

func (e engine) refuseOwned(env []string) error {
	for _, name := range e.owns {
		if isSet(env, name) {
			return fmt.Errorf("run.env sets %s, which the engine itself sets for every rank: remove it", name)
		}
	}
	return nil
}

// layout is a checked job with its ranks dealt out to the nodes.
type layout struct {
	job     Job
	nodes   []Node
	command []string
	port    string
	procs   []int // per node
	first   []int // first rank of each node
	world   int
}

const defaultMasterPort = 29500

func newLayout(nodes []Node, job Job) (layout, error) {
	if len(nodes) == 0 {
		return layout{}, fmt.Errorf("there are no nodes to run on")
	}
	if job.ProcsPerNode < 0 {
		return layout{}, fmt.Errorf("%d processes per node is not possible: give 1 or more, or 0 for one per GPU", job.ProcsPerNode)
	}
	if job.MasterPort == 0 {
		job.MasterPort = defaultMasterPort
	}
	if job.MasterPort < 1 || job.MasterPort > 65535 {
		return layout{}, fmt.Errorf("master port %d is outside 1–65535", job.MasterPort)
	}
	if job.Python == "" {
		job.Python = "python3"
	}
	command, err := executable(job.Command, job.Python)
	if err != nil {
		return layout{}, err
	}
	l := layout{job: job, nodes: nodes, command: command, port: strconv.Itoa(job.MasterPort)}
	if job.PortName != "" {
		l.port = job.PortName
	}
	for _, n := range nodes {
		g := job.ProcsPerNode
		if g == 0 {
			g = max(n.GPUs, 1)
		}
		l.procs = append(l.procs, g)
		l.first = append(l.first, l.world)
		l.world += g
	}
	return l, nil
}

// ranks lists the ranks of a node.
func (l layout) ranks(node int) []int {
	ranks := make([]int, l.procs[node])
	for i := range ranks {
		ranks[i] = l.first[node] + i
	}
	return ranks
}

// wrapped is the command of a rank inside its wrapper.
func (l layout) wrapped() []string {
	if l.job.RankScript == "" {
		return slices.Clone(l.command)
	}
	return append([]string{"sh", l.job.RankScript, l.job.RunDir}, l.command...)
}

// commonEnv is what every engine sets on a node, save what the user set.
func (l layout) commonEnv(node int) []string {
	n := l.nodes[node]
	env := []string{"PYTHONUNBUFFERED=1"}
	if n.Interface != "" {
		// Without these gloo resolves the node's own host name, and hangs for
		// minutes where nothing answers for it.
		env = append(env, "GLOO_SOCKET_IFNAME="+n.Interface, "NCCL_SOCKET_IFNAME="+n.Interface)
	}
	if n.GPUs > 0 {
		env = append(env, "NCCL_DEBUG=WARN")
	}
	if t := l.threads(node); t > 0 {
		env = append(env, "OMP_NUM_THREADS="+strconv.Itoa(t))
	}
	return unset(env, l.job.Env)
}

// threads is how many threads one rank may use. Each rank would otherwise
// start one per core of the machine, and they would slow each other down.
func (l layout) threads(node int) int {
	g := l.procs[node]
	if l.job.MaxThreads > 0 {
		return max(l.job.MaxThreads/g, 1)
	}
	if g > 1 {
		return 1
	}
	return 0
}
