package engine

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// launcherCommand is a launcher in front of a command: how it is called, and
// what becomes of its options.
type launcherCommand struct {
	// program is its name, with the words that must follow it.
	program []string
	// modules are the names under which Python runs it.
	modules []string
	// options are those that are known, written with underscores.
	options map[string]option
	// others takes options that are not listed; their values are carried too.
	others bool
}

// option is what becomes of an option of a launcher.
type option struct {
	// words is how many words follow it as its value.
	words int
	// take reads the value; nil: see drop.
	take func(j *Job, value string) error
	// drop: dlwb says the same by itself. Else the option is carried over.
	drop bool
}

var (
	dropFlag  = option{drop: true}
	dropValue = option{words: 1, drop: true}
	keepFlag  = option{}
	keepValue = option{words: 1}
)

func takes(do func(j *Job, value string) error) option { return option{words: 1, take: do} }

// anyPython is an interpreter, wherever it lies.
var anyPython = pattern.New(`^python[0-9.]*$`)

// begin cuts a launcher off the front of words; nil where there is none.
func (c launcherCommand) begin(words []string) (rest []string, module string) {
	if n := len(c.program); len(words) >= n && path.Base(words[0]) == c.program[0] && startWith(words[1:], c.program[1:]) {
		return words[n:], ""
	}
	if len(words) > 0 && anyPython.MatchString(path.Base(words[0])) {
		words = afterPython(words[1:])
	}
	if len(words) < 2 || words[0] != "-m" {
		return nil, ""
	}
	for _, m := range c.modules {
		if words[1] == m {
			return append([]string{}, words[2:]...), m
		}
	}
	return nil, ""
}

var (
	pythonFlags = pattern.New(`^-[bBdEhiIOPqsSuvx]+$`)
	pythonValue = pattern.New(`^-[bBdEhiIOPqsSuvx]*[WX]$`)
	pythonRuns  = pattern.New(`^-[bBdEhiIOPqsSuvx]+m$`)
)

// afterPython cuts the options of an interpreter off the front; -um becomes -m.
func afterPython(words []string) []string {
	for len(words) > 0 {
		switch {
		case pythonRuns.MatchString(words[0]):
			return append([]string{"-m"}, words[1:]...)
		case pythonValue.MatchString(words[0]) && len(words) > 1:
			words = words[2:]
		case pythonFlags.MatchString(words[0]) || len(words[0]) > 2 && (strings.HasPrefix(words[0], "-W") || strings.HasPrefix(words[0], "-X")):
			words = words[1:]
		default:
			return words
		}
	}
	return words
}

func startWith(words, front []string) bool {
	return len(words) >= len(front) && strings.Join(words[:len(front)], " ") == strings.Join(front, " ")
}

// launcherWord is what a person would call the launcher of a command.
func launcherWord(command []string) string {
	if anyPython.MatchString(path.Base(command[0])) {
		command = afterPython(command[1:])
	}
	if len(command) > 1 && command[0] == "-m" {
		return command[1]
	}
	return path.Base(word(command, 0))
}

// unwrap takes the launcher off a job's command.
func (c launcherCommand) unwrap(j *Job) (module string, notes []string, ok bool, err error) {
	rest, module := c.begin(j.Command)
	if rest == nil {
		return "", nil, false, nil
	}
	word := launcherWord(j.Command)
	r := reading{job: j, of: c, asModule: false}
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") && rest[0] != "-" {
		if rest[0] == "--" {
			rest = rest[1:]
			break
		}
		if rest, err = r.option(rest); err != nil {
			return module, nil, true, fmt.Errorf("run.command: %s: %w", word, err)
		}
	}
	if len(rest) == 0 {
		return module, nil, true, fmt.Errorf("run.command ends after the options of %s: name the script", word)
	}
	if r.asModule {
		rest = append([]string{"-m"}, rest...)
	}
	j.Command = rest
	j.launcherArgs = r.carried
	return module, r.notes(word), true, nil
}

// reading is the options of a launcher while they are read.
type reading struct {
	job      *Job
	of       launcherCommand
	asModule bool
	carried  []string
	taken    []string
	dropped  []string
}

// option reads one option off the front.
func (r *reading) option(words []string) ([]string, error) {
	given, value, inline := strings.Cut(words[0], "=")
	name := optionName(given)
	if name == "m" || name == "module" || name == "module_mode" {
		r.asModule = true
		return words[1:], nil
	}
	o, known := r.of.options[name]
	if !known {
		if !r.of.others {
			return nil, fmt.Errorf("its option %s is not known: leave it out, and write only the script and its arguments", given)
		}
		o = keepValue
	}
	n := 1
	if !inline {
		n += o.words
		if len(words) < n {
			return nil, fmt.Errorf("its option %s has no value", given)
		}
		value = strings.Join(words[1:n], " ")
	}
	switch {
	case o.take != nil:
		r.taken = append(r.taken, given+" "+value)
		if err := o.take(r.job, value); err != nil {
			return nil, fmt.Errorf("its option %s %s: %w", given, value, err)
		}
	case o.drop:
		r.dropped = append(r.dropped, given)
	default:
		r.carried = append(r.carried, words[:n]...)
	}
	return words[n:], nil
}

// optionName is the name of an option as the tables of options have it.
func optionName(given string) string {
	return strings.ReplaceAll(strings.TrimLeft(given, "-"), "-", "_")
}

// notes say what became of the options.
func (r *reading) notes(word string) []string {
	text := word + " in run.command is started by the engine"
	for _, part := range []struct {
		what  string
		words []string
	}{{"taken over: ", append(append([]string{}, r.taken...), r.carried...)}, {"left out, as dlwb sets it: ", r.dropped}} {
		if len(part.words) > 0 {
			text += "; " + part.what + strings.Join(part.words, " ")
		}
	}
	return []string{text}
}

// procsEach sets the number of ranks of a node, unless the profile does.
func procsEach(j *Job, value string) error {
	switch value {
	case "gpu", "auto", "cpu", "xpu":
		return nil // what 0 means
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("this is no number of processes")
	}
	if j.ProcsPerNode == 0 {
		j.ProcsPerNode = n
	}
	return nil
}

// procsInAll sets the number of ranks, unless the profile does for a node.
func procsInAll(j *Job, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return fmt.Errorf("this is no number of processes")
	}
	j.procsInAll = n
	return nil
}

var torchrunCommand = launcherCommand{
	program: []string{"torchrun"}, modules: []string{"torch.distributed.run", "torch.distributed.launch"},
	options: map[string]option{
		"nnodes": takes(torchrunNodes), "nproc_per_node": takes(procsEach), "nproc": takes(procsEach), "max_restarts": takes(torchrunRestarts),
		"rdzv_backend": takes(torchrunRendezvous), "rdzv_endpoint": dropValue, "rdzv_id": dropValue, "rdzv_conf": keepValue,
		"standalone": dropFlag, "node_rank": dropValue, "master_addr": dropValue, "master_port": dropValue, "local_addr": dropValue,
		"monitor_interval": keepValue, "start_method": keepValue, "role": keepValue, "event_log_handler": keepValue,
		"numa_binding": keepValue, "signals_to_handle": keepValue, "shutdown_timeout": keepValue, "virtual_local_rank": keepFlag,
		"log_dir": dropValue, "r": dropValue, "redirects": dropValue, "t": dropValue, "tee": dropValue, "logs_specs": dropValue,
		"local_ranks_filter": dropValue, "duplicate_stdout_filters": dropValue, "duplicate_stderr_filters": dropValue,
		"no_python": dropFlag, "run_path": dropFlag, "use_env": takesFlag(func(j *Job) { j.localRankArg = "" }),
	},
}

// colossalaiCommand is the launcher of Colossal-AI, which logs in to the nodes and
// starts torchrun there.
var colossalaiCommand = launcherCommand{
	program: []string{"colossalai", "run"},
	options: map[string]option{
		"nproc_per_node": takes(procsEach), "H": dropValue, "host": dropValue, "hostfile": dropValue, "include": dropValue, "exclude": dropValue,
		"num_nodes": dropValue, "master_addr": dropValue, "master_port": dropValue, "ssh_port": dropValue,
	},
}

// takesFlag is an option without a value.
func takesFlag(do func(j *Job)) option {
	return option{take: func(j *Job, _ string) error { do(j); return nil }}
}

// unwrapTorchrun: the old launcher gave the local rank as an argument, unless it
// was told to use the environment.
func unwrapTorchrun(j *Job) ([]string, bool, error) {
	if _, notes, ok, err := colossalaiCommand.unwrap(j); ok {
		return notes, ok, err
	}
	words := j.Command
	j.localRankArg = oldLocalRank(j.Sources)
	module, notes, ok, err := torchrunCommand.unwrap(j)
	if module != "torch.distributed.launch" {
		j.localRankArg = ""
	}
	if j.localRankArg != "" {
		notes = append(notes, fmt.Sprintf("%s gives each rank %s=N, as it is not told --use_env", launcherWord(words), j.localRankArg))
	}
	return notes, ok, err
}

// oldLocalRank is how a script wants to be told its local rank: PyTorch 2 writes
// a dash where those before it wrote an underscore.
func oldLocalRank(sources map[string]string) string {
	dash := false
	for _, text := range sources {
		if strings.Contains(text, "--local_rank") {
			return "--local_rank"
		}
		dash = dash || strings.Contains(text, "--local-rank")
	}
	if dash {
		return "--local-rank"
	}
	return "--local_rank"
}

func torchrunNodes(j *Job, value string) error {
	low, _, elastic := strings.Cut(value, ":")
	n, err := strconv.Atoi(low)
	if err != nil || n < 1 {
		return fmt.Errorf("this is no number of nodes")
	}
	if elastic && j.MinNodes == 0 {
		j.MinNodes = n
	}
	return nil // how many there are, the cluster says
}

func torchrunRestarts(j *Job, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return fmt.Errorf("this is no number of restarts")
	}
	if j.Restarts == 0 {
		j.Restarts = n
	}
	return nil
}

func torchrunRendezvous(j *Job, value string) error {
	if value != RendezvousStatic && value != RendezvousC10d {
		return fmt.Errorf("the engine has %s and %s", RendezvousStatic, RendezvousC10d)
	}
	if j.Rendezvous == "" {
		j.Rendezvous = value
	}
	return nil
}
