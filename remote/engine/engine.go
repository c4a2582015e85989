// Package engine turns a list of nodes and a training command into what each
// node runs. It is pure: it starts nothing, reads nothing and imports nothing
// of ours, so that a plan can be shown before anything exists.
package engine

import (
	"fmt"
	"regexp"
	"slices"
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
	// Head is set for a node that leads the others and does none of their work: it
	// stands before them, and its GPUs are not counted. Only some engines have
	// something to run there.
	Head bool
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
	// MasterPort is a free port of node 0; 0 means 29500. An engine that needs
	// more takes those that follow it, on every node: see Plan.Ports.
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
	// OldTorch is set for PyTorch 1.13 on a Python that is too new for it: its
	// launcher must be told what it does by itself elsewhere.
	OldTorch bool
	// NoMPI is set where Horovod can't use MPI: it has been built without it, or there is
	// no mpirun.
	NoMPI bool
	// Run is the id of the run, for engines that must tell runs apart; empty
	// means "dlwb".
	Run string
	// Given says that whoever starts the run starts the engine's own cluster on the
	// nodes, or its mpirun: what is planned then is what runs in it.
	Given bool
	// Unplaced says that which machines the nodes are is not known yet: two of them may
	// be one.
	Unplaced bool
	// Sources are texts of the project by their paths: the training script and
	// the files of its configuration. What they say of themselves decides what
	// is filled in; none means that nothing is.
	Sources map[string]string
	Options

	// launcherArgs are options of the launcher that a command began with.
	launcherArgs []string
	// localRankArg is what the ranks get as their last argument but for the
	// local rank; empty: nothing.
	localRankArg string
	// fronts is what stands before each rank, from before the launcher of a command.
	fronts []string
	// gloo: a launcher in the command was told to do without MPI.
	gloo bool
	// procsInAll is how many ranks a launcher in the command was told to start;
	// 0: not told.
	procsInAll int
}

// Options are what a profile may say of how an engine starts the ranks. An
// engine refuses what it does not have.
type Options struct {
	// Rendezvous is how the nodes find each other: RendezvousStatic, which is
	// what empty means, or RendezvousC10d.
	Rendezvous string
	// MinNodes is with how few nodes the run may go on; 0 means all of them.
	MinNodes int
	// Restarts is how often all ranks are started again after one has failed.
	Restarts int
	// ParameterServers is how many nodes, from the last one, hold parameters
	// instead of training; Evaluator makes the last of the others evaluate.
	ParameterServers int
	Evaluator        bool
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
	// Helper is set for what serves the ranks and has no end of its own: it is
	// ended when every other process of the run has ended, and its own end
	// before that is a failure of the run.
	Helper bool
	// After is what must hold before it is started; nil: nothing.
	After *Ready
}

// Ready is something that a process waits for.
type Ready struct {
	// What is it in words.
	What string
	// Argv is run again and again until it exits with 0. What it prints says
	// what is still missing; with 3 it says that this will not come.
	Argv []string
	// Limit is for how many seconds.
	Limit int
}

// File is a file that a node needs for a run.
type File struct {
	// Name is below the run's directory.
	Name, Text string
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
	// Files are what each node needs beside its processes; nil: nothing.
	Files [][]File
	// Ports is how many ports the engine uses, from the master port on; those
	// behind the first must be free on every node.
	Ports int
	// Restarts is set when a launcher starts ranks again that have failed: then
	// the end of a rank is not yet the end of the run.
	Restarts bool
	// Leads is set when node 0 ends the run on the others: they have helpers
	// alone, or may.
	Leads bool
	// Notes say what was taken over from the command, left out of it or filled
	// in.
	Notes []string
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
	// starts says in words what runs on the nodes.
	starts string
	// owns are the variables that the engine sets for each rank; a user who
	// sets one as well would get ranks that do not find each other.
	owns []string
	// perNode: unless the user says how many, one process uses all GPUs of its
	// node.
	perNode bool
	// alone: the ranks that dlwb starts are one, the driver.
	alone bool
	// onHead says how many ranks a node has that is the head alone, and why it
	// can't be had for a job; nil: the engine has nothing for such a node.
	onHead func(Job) (ranks int, err error)
	// options are the keys of Options that it has.
	options []string
	// unwrap takes this engine's own launcher off the front of a command, with
	// what its options say; ok is false for any other command. May be nil.
	unwrap func(j *Job) (notes []string, ok bool, err error)
	// fill completes the command by what the project says of itself; may be nil.
	fill func(l *layout) (notes []string)
	plan func(layout) [][]Proc
	// more completes the plan; may be nil.
	more func(l layout, p *Plan)
}

// engines is in the order in which they are listed. Of two whose signs a script
// has, Detect takes the later one: it is the more special.
var engines = []engine{
	{name: withTorch, also: []string{"ddp", "torch", "pytorch", "torch.distributed"}, launcher: true,
		signs: `\btorch\.distributed\b|\bDistributedDataParallel\b|\binit_process_group\b`, uses: "torch.distributed",
		starts: "an agent of torchrun on each node, which starts its ranks",
		owns:   rankVars, options: []string{optRendezvous, optMinNodes, optRestarts}, unwrap: unwrapTorchrun, plan: torchrun, more: elastic},
	{name: withoutTorch, also: []string{"python", "none"}, starts: "each rank, with torch.distributed's variables", owns: rankVars, unwrap: unwrapComposer, plan: plain},
	{name: "jax", also: []string{"flax"}, signs: `\bjax\.distributed\b`, uses: "jax.distributed", perNode: true,
		starts: "one process on each node, with JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID",
		owns:   jaxVars, plan: jax},
	{name: "tensorflow", also: []string{"tf", "keras", "multiworkermirrored"}, perNode: true,
		signs: `\b(MultiWorkerMirroredStrategy|ParameterServerStrategy)\b`, uses: "a strategy of TensorFlow for several workers",
		starts: "one process on each node, with TF_CONFIG",
		owns:   []string{"TF_CONFIG"}, options: []string{optServers, optEvaluator}, plan: tensorflow, more: taskPorts, onHead: chiefOnHead},
	{name: "mpi", also: []string{"openmpi", "mpirun", "mpi4py"}, launcher: true, signs: `(?m)^\s*(import|from)\s+mpi4py\b`, uses: "mpi4py",
		starts: "mpirun on node 0, and its daemon on each other node",
		unwrap: unwrapMPI, fill: fillMPI, plan: mpi, more: mpiFiles},
	{name: withHorovod, also: []string{"hvd"}, launcher: true, signs: `(?m)^\s*(import|from)\s+horovod\b`, uses: "Horovod",
		starts: "the same as mpi; without MPI each rank, and a server on node 0 by which they find each other with Gloo",
		owns:   horovodVars, unwrap: unwrapHorovod, plan: horovod, more: horovodMore},
	{name: "lightning", also: []string{"pytorch-lightning", "pl"}, signs: `(?m)^\s*(import|from)\s+(lightning|pytorch_lightning)\b`, uses: "Lightning",
		starts: "each rank, as torchrun would tell it; num_nodes and devices are filled in where the script has them",
		owns:   lightningVars, fill: fillLightning, plan: lightning},
	{name: "accelerate", also: []string{"huggingface"}, launcher: true, signs: `(?m)^\s*(import|from)\s+accelerate\b`, uses: "Accelerate",
		starts: "accelerate launch on each node, which starts its ranks",
		owns:   rankVars, unwrap: unwrapAccelerate, plan: accelerate},
	{name: "deepspeed", signs: `(?m)^\s*(import|from)\s+deepspeed\b`, uses: "DeepSpeed",
		starts: "each rank, with what DeepSpeed's launcher would set",
		owns:   deepspeedVars, unwrap: unwrapDeepspeed, plan: deepspeed},
	{name: "ray", launcher: true, signs: `(?m)^\s*(import|from)\s+ray\b`, uses: "Ray",
		starts: "ray start on each node, and the script on node 0 once all nodes have joined",
		owns:   []string{"RAY_ADDRESS"}, unwrap: unwrapRay, plan: ray, more: rayMore, alone: true, onHead: driverOnHead},
}

// Info is what pages say of an engine.
type Info struct {
	Name string
	Also []string
	// Starts says what runs on the nodes, Uses what a script uses that is made for
	// it, Options which keys of a profile only some engines have.
	Starts, Uses string
	Options      []string
}

// Table lists the engines for pages.
func Table() []Info {
	table := make([]Info, len(engines))
	for i, e := range engines {
		table[i] = Info{e.name, e.also, e.starts, e.uses, e.options}
	}
	return table
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
	for _, e := range slices.Backward(engines) {
		if e.signs != "" && regexp.MustCompile(e.signs).Match(script) {
			return e.name, e.uses
		}
	}
	return "", ""
}

// MayUseMPI reports whether an engine starts its ranks by mpirun or without it, as
// Job.NoMPI says.
func MayUseMPI(name string) bool { return name == withHorovod }

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
	l, notes, err := e.lay(nodes, job)
	if err != nil {
		return Plan{}, fmt.Errorf("engine %s: %w", e.name, err)
	}
	p := Plan{Engine: e.name, WorldSize: l.world, Command: l.command, Nodes: e.plan(l), Ports: 1, Notes: notes}
	if e.more != nil {
		e.more(l, &p)
	}
	return p, nil
}

// lay checks a job and deals out its ranks.
func (e engine) lay(nodes []Node, job Job) (layout, []string, error) {
	notes, err := e.unwrapped(&job)
	if err != nil {
		return layout{}, nil, err
	}
	if e.perNode && job.ProcsPerNode == 0 {
		job.ProcsPerNode = 1
	}
	led, err := e.headRanks(nodes, job)
	if err != nil {
		return layout{}, nil, err
	}
	l, err := newLayout(nodes, job, led)
	if err == nil {
		err = e.refuseOwned(job.Env)
	}
	if err == nil {
		err = e.refuseOptions(l)
	}
	if err == nil && e.fill != nil {
		notes = append(notes, e.fill(&l)...)
	}
	return l, append(notes, l.multirun()...), err
}
