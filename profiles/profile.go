// Package profiles reads and writes profiles: one YAML file that describes one
// experiment. It knows the format and nothing of what is done with it.
package profiles

import "time"

// Profile is one experiment: machines, environment, code, training command,
// metrics, results and limits.
type Profile struct {
	// Path is the absolute path of the file it was read from; empty for a
	// profile that was made in memory.
	Path string
	// Source is the text it was read from.
	Source string

	Name        string
	Provider    string // a name in cloud/providers
	Machines    Machines
	Environment Environment
	Code        Code
	Data        []Channel // in the order of their names in the file
	State       string    // relative to the profile: what survives runs; empty: nothing does
	After       []string  // profiles whose results are channels of this one
	Run         Run
	Sweep       Sweep
	Metrics     []Metric
	Results     Results
	Limits      Limits
	Forward     []string // "jupyter", "tensorboard" or a port, of node 0 or with "node1:" before it of another

	// own are the options of the providers, by name; see Own.
	own map[string]any
	// marks are the places in Source of the keys and values that were given;
	// with them a fault found later still names its line.
	marks map[string]mark
}

// Machines says which machines are wanted and how many.
type Machines struct {
	Regions  []string // tried in order
	Instance string
	Need     Need // instead of Instance
	Count    int
	Spot     bool
	Image    string
	Disk     int64 // bytes
}

// Need describes a machine by what it must have instead of by its type name.
type Need struct {
	GPU      []string // models, any of them
	GPUs     int
	Memory   int64   // of each GPU, bytes
	MaxPrice float64 // US dollars per hour
}

// Environment says where Python comes from on a node.
type Environment struct {
	Kind string // system, venv, conda or docker
	File string // requirements.txt, environment.yml (relative to the code directory), an image or a Dockerfile
	// Python is the interpreter to start from: a path, a name on the node's
	// PATH, or a version. Empty: the first one found that has PyTorch, else
	// the first python3.
	Python string
	// Before and After are lines of shell that run on every node around the
	// making of the environment.
	Before, After []string
	// Mounts are directories of a node that a container sees besides the
	// code's: PATH, or PATH:INSIDE, either with :ro.
	Mounts []string
	// Optional lets the run go on with what is there when the environment
	// can't be made; what is then used is said.
	Optional bool
}

// Code says what is copied to the nodes. .gitignore and .dlwbignore are
// honoured, in addition to Exclude.
type Code struct {
	Dir     string // relative to the profile's own directory
	Exclude []string
}

// Run is the training command.
type Run struct {
	Engine       string // engine.Auto, or a name in its table
	Command      string
	Env          []Var
	ProcsPerNode int           // 0: one per GPU, one on a node without GPUs
	MasterPort   int           // 0: a free one is chosen
	Grace        time.Duration // between TERM and KILL
	// What only some engines have; see engine.Options.
	Rendezvous       string
	MinNodes         int
	Restarts         int
	ParameterServers int
	Evaluator        bool
	// OnNotice is run in the run's directory on a node that is about to be
	// taken away; empty: the ranks get TERM.
	OnNotice string
	// Resume is added to the command when it is launched again after nodes
	// were lost.
	Resume string
}

// Var is one environment variable of the training command. Secret is set when
// its value came from a ${env:NAME} reference: it is then never shown, and Ref
// is what stands in the profile.
type Var struct {
	Name, Value string
	Secret      bool
	Ref         string
}

// Metric is a name and a regular expression with one group, for what is not
// found by itself.
type Metric struct{ Name, Regex string }

// Results says what is brought home, and where to.
type Results struct {
	Paths       []string // relative to the code directory on node 0
	To          string   // relative to the profile's directory; empty: into dlwb's own
	S3          string
	Checkpoints string
}

// Limits end a run or a cluster that costs too much or does nothing.
type Limits struct {
	Budget   float64       // US dollars; 0: none
	Lifetime time.Duration // of the cluster
	Idle     time.Duration
	Stall    time.Duration // no output from any rank for so long: the run hangs
	Lost     time.Duration // a node is not heard of for so long, and others are: the run ends
	Log      int64         // bytes of each log that its node keeps, the newest
	// Replacements is how often machines that were taken away are replaced
	// and the run is launched again.
	Replacements int
}
