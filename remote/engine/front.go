package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// front is a program that people write before a launcher, and that starts what
// follows its options.
type front struct {
	program []string
	// valued are the options whose value is a word of its own.
	valued []string
	// numbered takes words that are neither an option nor a program, such as the
	// mask of taskset.
	numbered int
	// kept: what it does to one process, it does to each rank. Else it is left out,
	// as leftOut says.
	kept    bool
	leftOut string
}

const (
	ownEnvironment = "the environment of the profile takes its place"
	ownTasks       = "dlwb starts the processes of all nodes"
	ownEnd         = "a run goes on without a terminal"
)

var fronts = []front{
	{program: []string{"env"}, kept: true, valued: []string{"-u", "--unset", "-C", "--chdir"}},
	{program: []string{"nice"}, kept: true, valued: []string{"-n"}},
	{program: []string{"ionice"}, kept: true, valued: []string{"-c", "-n"}},
	{program: []string{"numactl"}, kept: true, valued: []string{"-N", "-m", "-C", "-i", "-p"}},
	{program: []string{"taskset"}, kept: true, numbered: 1},
	{program: []string{"stdbuf"}, kept: true, valued: []string{"-i", "-o", "-e"}},
	{program: []string{"timeout"}, kept: true, valued: []string{"-k", "-s"}, numbered: 1},
	{program: []string{"nohup"}, leftOut: ownEnd},
	{program: []string{"setsid"}, leftOut: ownEnd},
	{program: []string{"exec"}, leftOut: ownEnd},
	{program: []string{"time"}, leftOut: "the record of the run has its times"},
	{program: []string{"uv", "run"}, leftOut: ownEnvironment, valued: []string{"-p", "--python", "--with", "--with-requirements", "--with-editable", "--extra", "--group",
		"--package", "--project", "--directory", "--env-file", "-i", "--index-url", "--index", "--no-group", "--only-group", "--env"}},
	{program: []string{"poetry", "run"}, leftOut: ownEnvironment},
	{program: []string{"pipenv", "run"}, leftOut: ownEnvironment},
	{program: []string{"pdm", "run"}, leftOut: ownEnvironment, valued: []string{"-p", "--project"}},
	{program: []string{"hatch", "run"}, leftOut: ownEnvironment},
	{program: []string{"rye", "run"}, leftOut: ownEnvironment},
	{program: []string{"pixi", "run"}, leftOut: ownEnvironment, valued: []string{"-e", "--environment", "--manifest-path"}},
	{program: []string{"conda", "run"}, leftOut: ownEnvironment, valued: condaNames},
	{program: []string{"mamba", "run"}, leftOut: ownEnvironment, valued: condaNames},
	{program: []string{"micromamba", "run"}, leftOut: ownEnvironment, valued: condaNames},
	{program: []string{"srun"}, leftOut: ownTasks, valued: strings.Fields("-N --nodes -n --ntasks --ntasks-per-node -c --cpus-per-task -p --partition -t --time " +
		"-J --job-name -o --output -e --error -i --input -w --nodelist -x --exclude -A --account -q --qos -G --gpus --gpus-per-node --gpus-per-task --gres --mem " +
		"--mem-per-cpu --mem-per-gpu --jobid -C --constraint -r --relative -D --chdir")},
}

var condaNames = []string{"-n", "--name", "-p", "--prefix", "--cwd"}

// begins reports whether words begin with the program of a front.
func (f front) begins(words []string) bool {
	return len(words) > len(f.program) && path.Base(words[0]) == f.program[0] && startWith(words[1:], f.program[1:])
}

// end is where the options of a front end, and what it starts begins.
func (f front) end(words []string) int {
	i := len(f.program)
	for numbered := f.numbered; i < len(words); {
		w := words[i]
		switch {
		case w == "--":
			return i + 1
		case f.program[0] == "env" && assignment.MatchString(w):
			i++
		case slices.Contains(f.valued, w):
			i += 2
		case strings.HasPrefix(w, "-"):
			i++
		case numbered > 0:
			numbered--
			i++
		default:
			return i
		}
	}
	return len(words)
}

// fronted is what stands before a launcher.
type fronted struct {
	// kept goes before each rank; assigned are the variables that env sets there.
	kept, assigned []string
	notes          []string
}

// cutFronts takes off what stands before a launcher. Words that no launcher
// follows stay as they are: what begins each rank then is the user's own matter.
func cutFronts(words []string) (fronted, []string) {
	var cut fronted
	rest := words
	for {
		i := slices.IndexFunc(fronts, func(f front) bool { return f.begins(rest) })
		if i < 0 {
			break
		}
		f, n := fronts[i], fronts[i].end(rest)
		cut.take(f, rest[:n])
		rest = rest[n:]
	}
	if len(rest) == len(words) || launcherAt(rest) == "" {
		return fronted{}, words
	}
	return cut, rest
}

func (c *fronted) take(f front, words []string) {
	text := Join(words)
	if !f.kept {
		c.notes = append(c.notes, text+" in run.command is left out: "+f.leftOut)
		return
	}
	c.notes = append(c.notes, text+" in run.command stands before each rank instead of the launcher")
	c.kept = append(c.kept, words...)
	for _, w := range words[1:] {
		if f.program[0] == "env" && assignment.MatchString(w) {
			c.assigned = append(c.assigned, w)
		}
	}
}

// shells run a text, or a file of one.
var shells = pattern.New(`^(ba|da|z|k|a)?sh$`)

// within is a launcher that something else in the command starts.
type within struct{ launcher, where string }

// instead is what to write in its place.
func (w within) instead() string {
	if slices.ContainsFunc(selfStarters, func(words []string) bool { return Join(words) == w.launcher }) {
		return "the script and its arguments"
	}
	return "what that starts (" + w.launcher + " … script.py …)"
}

// selfStarters start the ranks of a training that they have in themselves, or in a
// way of their own.
var selfStarters = [][]string{{"torchx", "run"}, {"fabric", "run"}, {"lightning", "run"}, {"tune", "run"}, {"axolotl", "train"}, {"llamafactory-cli", "train"}}

// selfStarter is the one that words begin with, behind what may stand before it.
func selfStarter(words []string) string {
	for i := 0; i >= 0; {
		if i = slices.IndexFunc(fronts, func(f front) bool { return f.begins(words) }); i >= 0 {
			words = words[fronts[i].end(words):]
		}
	}
	for _, own := range selfStarters {
		if len(words) > len(own) && path.Base(words[0]) == own[0] && startWith(words[1:], own[1:]) {
			return Join(own)
		}
	}
	return ""
}

// ownLauncher finds a launcher that the command starts by itself: in the text of a
// shell, in a script of the project for one, or behind a program that is not known.
func ownLauncher(command []string, sources map[string]string) *within {
	if len(command) == 0 || strings.HasSuffix(command[0], ".py") || strings.HasPrefix(command[0], "-") || anyPython.MatchString(path.Base(command[0])) {
		return nil
	}
	if own := selfStarter(command); own != "" {
		return &within{own, "run.command"}
	}
	if path.Base(command[0]) == "make" {
		return inMake(command[1:], sources)
	}
	for i, w := range command {
		switch text, ok := sources[path.Clean(w)]; {
		case ok && (strings.HasSuffix(w, ".sh") || strings.HasSuffix(w, ".bash")):
			return inShell(text, path.Clean(w)+", line %d:")
		case i > 0 && shells.MatchString(path.Base(command[0])) && strings.HasPrefix(command[i-1], "-") && strings.HasSuffix(command[i-1], "c"):
			return inShell(w, "line %d of the shell's text in run.command:")
		case strings.HasSuffix(w, ".py"):
			return nil
		case i > 0 && launcherAt(command[i:]) != "" && startsScript(command[i:]):
			return &within{launcherWord(command[i:]), "run.command, behind " + Join(command[:i])}
		}
	}
	return nil
}

func startsScript(words []string) bool {
	return slices.ContainsFunc(words[1:], func(w string) bool { return strings.HasSuffix(w, ".py") || w == "-m" || w == "--module" })
}

// commandEnds is where a command of a shell ends and another may begin.
var commandEnds = pattern.New(`&&|\|\||[;|&()]`)

// inShell finds a launcher where a text for a shell has a command. Nothing is
// expanded, and no other script is followed.
func inShell(text, where string) *within {
	begun, joined := 0, ""
	for i, line := range strings.Split(text, "\n") {
		if joined == "" {
			begun = i + 1
		}
		line = strings.TrimRight(line, "\r")
		if more, is := strings.CutSuffix(line, `\`); is {
			joined += more + " "
			continue
		}
		for _, part := range commandEnds.Split(joined+line, -1) {
			if word := startedBy(strings.Fields(part)); word != "" {
				return &within{word, fmt.Sprintf(where, begun)}
			}
		}
		joined = ""
	}
	return nil
}

// makeRule is the head of a rule for make.
var makeRule = pattern.New(`^([^\s#:=][^:=]*):([^=]|$)`)

// inMake finds a launcher in what make does for a target; without one for its first.
// What the target asks for is not followed.
func inMake(args []string, sources map[string]string) *within {
	target, file := "", ""
	for i, w := range args {
		switch {
		case strings.HasPrefix(w, "-") || strings.Contains(w, "="):
		case i > 0 && (args[i-1] == "-f" || args[i-1] == "--file"):
			file = path.Clean(w)
		case target == "" && (i == 0 || args[i-1] != "-C"):
			target = w
		}
	}
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		if _, is := sources[name]; is && file == "" {
			file = name
		}
	}
	lines, in := strings.Split(sources[file], "\n"), false
	for i, line := range lines {
		recipe, is := strings.CutPrefix(line, "\t")
		if m := makeRule.FindStringSubmatch(line); !is && m != nil && !strings.HasPrefix(m[1], ".") {
			targets := strings.Fields(m[1])
			in = slices.Contains(targets, target)
			if target == "" {
				target, in = targets[0], true
			}
		}
		if lines[i] = ""; in && is {
			lines[i] = strings.TrimLeft(recipe, "@-+ ")
		}
	}
	return inShell(strings.Join(lines, "\n"), file+", line %d:")
}

// startedBy is the launcher that a simple command starts; empty where it starts none.
func startedBy(words []string) string {
	for len(words) > 0 && (assignment.MatchString(words[0]) || slices.Contains(beforeCommands, words[0])) {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "#") || slices.Contains(onlyWords, path.Base(words[0])) {
		return ""
	}
	if strings.HasPrefix(strings.Trim(words[0], `"`), "$") && len(words) > 1 && words[1] == "-m" {
		words = words[1:] // $PYTHON -m …
	}
	if _, rest := cutFronts(words); launcherAt(rest) != "" {
		return launcherWord(rest)
	}
	if own := ownLauncher(words, nil); own != nil {
		return own.launcher
	}
	return ""
}

var (
	// beforeCommands are words of a shell before a command; onlyWords are programs
	// that start nothing of what follows them.
	beforeCommands = []string{"if", "!", "while", "until", "then", "do", "else", "{"}
	onlyWords      = []string{"echo", "printf", "pip", "pip3", "which", "type", "command", "export", "cat", "grep"}
)

// refuseWithin refuses a launcher that the command starts by itself, as each rank
// would start ranks of its own. The engine that starts bare processes runs it once
// on each node, for whoever has asked for that.
func (e engine) refuseWithin(job *Job) ([]string, error) {
	own := ownLauncher(job.Command, job.Sources)
	switch {
	case own == nil:
		return nil, nil
	case e.name != withoutTorch:
		return nil, fmt.Errorf("%s starts %s, and so does dlwb: write as run.command %s, "+
			"or set run.engine: %s and run.procs_per_node: 1, and it is run once on each node, with MASTER_ADDR, MASTER_PORT and NODE_RANK", own.where, own.launcher, own.instead(), withoutTorch)
	case job.ProcsPerNode > 1:
		return nil, fmt.Errorf("%s starts %s on all of a node, and run.procs_per_node is %d: set it to 1", own.where, own.launcher, job.ProcsPerNode)
	}
	job.ProcsPerNode = 1
	return []string{fmt.Sprintf("%s starts %s itself, once on each node; its ranks have one log for each node", own.where, own.launcher)}, nil
}

// StartsItself reports whether a command starts ranks by itself, in a way that no
// engine can take over. The sources are texts of the project by their paths.
func StartsItself(command []string, sources map[string]string) bool {
	return ownLauncher(command, sources) != nil
}
