package tunnel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

// service is a server of a cluster's own that runs on a node like a run does:
// under supervise, with its log in its run directory, ended with the cluster.
type service struct {
	What   string
	ID     string // of its supervised run; empty for a port of somebody else's
	Port   int
	Token  string
	Path   string // of its first page
	Prefer int    // local port by habit
	Note   string // what a person should know of it
	HTTP   bool   // a port of somebody else's may be anything
	Found  bool   // it ran already
}

// login is the token that every request to the service has to show; empty:
// none. Only Jupyter asks for one.
func (s service) login() string {
	if s.What == "jupyter" {
		return s.Token
	}
	return ""
}

// serviceKind is what is known of one kind of service.
type serviceKind struct {
	prefer int
	// modules are the Python modules that may be it, best first: they are
	// run with the environment's own interpreter. programs are looked for on
	// the PATH where there is no such module.
	modules  [][2]string // what must be importable, what is run
	programs []string
	args     func(s service) []string
	env      func(s service) []string
	pip, apt string // the packages that hold it
}

var serviceKinds = map[string]serviceKind{
	"jupyter": {
		prefer:   8888,
		modules:  [][2]string{{"jupyterlab", "jupyterlab"}, {"notebook", "notebook"}},
		programs: []string{"jupyter-lab", "jupyter-notebook"},
		// Notebook 6, Notebook 7, Lab and Server know all of these.
		args: func(s service) []string {
			return []string{"--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=" + strconv.Itoa(s.Port), "--port-retries=0"}
		},
		// The token goes by environment: the process list is everybody's.
		env: func(s service) []string { return []string{"JUPYTER_TOKEN=" + s.Token} },
		pip: "jupyterlab", apt: "jupyter-notebook",
	},
	"tensorboard": {
		prefer:   6006,
		modules:  [][2]string{{"tensorboard", "tensorboard.main"}},
		programs: []string{"tensorboard"},
		// It runs in the code directory, where the results lie.
		args: func(s service) []string {
			return []string{"--logdir", ".", "--host", "127.0.0.1", "--port", strconv.Itoa(s.Port)}
		},
		env: func(service) []string { return nil },
		pip: "tensorboard",
	},
}

// startService starts a service on the node, or finds the one that runs there.
func startService(ctx context.Context, c Cluster, what string) (service, error) {
	kind := serviceKinds[what]
	if c.Python == "" {
		return service{}, &event.Fault{What: "start " + what, Node: c.Number, Why: "Python was not set up there yet", Next: "dlwb up"}
	}
	s, running, err := identify(ctx, c, what)
	if err != nil {
		return service{}, err
	}
	s.What, s.Prefer, s.Path, s.HTTP, s.Found = what, kind.prefer, "/", true, running
	if running {
		return s, nil
	}
	argv, err := findService(ctx, c, what)
	if err != nil {
		return service{}, err
	}
	if argv[0] != c.Python {
		s.Note = fmt.Sprintf("%s is the node's own %s: %s has none", what, argv[0], c.Python)
	}
	err = c.Node.Launch(ctx, remote.Launch{
		RunID: s.ID, Dir: c.Code, Env: append(c.Env, kind.env(s)...), Grace: 2 * time.Second,
		Procs: []remote.Proc{{Name: what, Argv: append(argv, kind.args(s)...), Log: what + ".log"}},
	})
	if err != nil {
		return service{}, &event.Fault{What: "start " + what, Node: c.Number, Why: err.Error()}
	}
	return s, nil
}

// startedThere is a service of a node on which dlwb can start nothing: on its usual port,
// for the training itself or a person to start.
func startedThere(c Cluster, what, note string) service {
	port := serviceKinds[what].prefer
	return service{Path: "/", Port: port, HTTP: true, Note: joinNotes(fmt.Sprintf("dlwb starts nothing on %s: start %s there on port %d, by the script or in a shell", c.Node.Name(), what, port), note)}
}

// identify gives the service that runs, or the identity of one to start: one
// that has ended is not started again under its old name, whose record stays.
func identify(ctx context.Context, c Cluster, what string) (service, bool, error) {
	for range 2 {
		s, err := newService(ctx, c, what)
		if err != nil {
			return service{}, false, err
		}
		state, err := c.Node.RunState(ctx, s.ID)
		if err != nil || state.State == remote.RunRunning || state.State == remote.RunAbsent {
			return s, err == nil && state.State == remote.RunRunning, err
		}
		if err := forgetService(ctx, c, what, s.ID, "its supervisor is gone"); err != nil {
			return service{}, false, err
		}
	}
	return service{}, false, &event.Fault{What: "start " + what, Node: c.Number, Why: "its old record can't be removed from ~/.dlwb"}
}

// identityScript expects $what and $py, and an id and a token as input. Of two
// dlwb that start a service at the same moment the first one decides: a link
// is made once.
const identityScript = `umask 077
cd "$HOME/.dlwb" || exit 74
read -r id token
if [ ! -s "$what" ]; then
    port=$("$py" -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])') || exit 1
    rm -f "$what"
    printf '%s %s %s\n' "$id" "$port" "$token" >"$id.new" && { ln "$id.new" "$what" 2>/dev/null || [ -s "$what" ]; }
    rm -f "$id.new"
fi
cat "$what"`

// record is the name of the file in ~/.dlwb that has the identity of a service. Nodes
// may have one home together, also those of several clusters.
func record(c Cluster, what string) string {
	return fmt.Sprintf("%s.%s.%d", what, c.Mark, c.Number)
}

// newService gives a service its identity: the port and the token that were
// chosen when it was first started, read back from the node, or new ones. They
// lie on the node, 0600, because the service does too: every dlwb finds them.
// The token travels by input, as an argument list is everybody's to read.
func newService(ctx context.Context, c Cluster, what string) (service, error) {
	var b [18]byte
	_, _ = rand.Read(b[:])
	said := fmt.Sprintf("%s-%d-%s %s\n", record(c, what), c.Life, hex.EncodeToString(b[:2]), hex.EncodeToString(b[2:]))
	r, err := c.Node.Exec(ctx, remote.Cmd{
		Line:  fmt.Sprintf("what=%s py=%s\n%s", shellword.Join(record(c, what)), shellword.Join(c.Python), identityScript),
		Stdin: strings.NewReader(said),
	})
	if err != nil {
		return service{}, err
	}
	var s service
	if _, err := fmt.Sscanf(string(r.Stdout), "%s %d %s", &s.ID, &s.Port, &s.Token); err != nil {
		return service{}, &event.Fault{What: "choose a port for " + what, Node: c.Number,
			Why: "the node did not say one", LastLines: event.LastLines(string(r.Stderr), 3)}
	}
	return s, nil
}

// forgetService ends what may be left of a service, and makes the next start
// choose a new identity.
func forgetService(ctx context.Context, c Cluster, what, id, why string) error {
	if _, err := c.Node.StopRun(ctx, id, time.Second, why); err != nil {
		return err
	}
	// Only the record of that one: another dlwb may have begun anew.
	line := fmt.Sprintf(`cd "$HOME/.dlwb" && if grep -q '^%[1]s ' %[2]s 2>/dev/null; then rm -f %[2]s; fi`, id, record(c, what))
	_, err := c.Node.Exec(ctx, remote.Cmd{Line: line})
	return err
}

// lookScript expects $py, $modules (lines "import run") and $programs. It
// prints the words of the command, one a line, or what is known about how to
// install it: pip, managed or nopip, the user's number and the distribution. A
// directory that merely has the name of a module has no origin.
const lookScript = `has() { "$py" -c 'import importlib.util, sys
sys.exit(getattr(importlib.util.find_spec(sys.argv[1]), "origin", None) is None)' "$1" 2>/dev/null; }
while read -r module run; do
    if [ -n "$module" ] && has "$module"; then printf '%s\n' "$py" -m "$run"; exit 0; fi
done <<END
$modules
END
for p in $programs; do
    command -v "$p" && exit 0
done
"$py" -c 'import importlib.util, os, sys, sysconfig
managed = sys.prefix == sys.base_prefix and os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
print("managed" if managed else "pip" if importlib.util.find_spec("pip") else "nopip")' || echo nopip
id -u
if [ -f /etc/debian_version ]; then echo debian; else echo other; fi
exit 3`

// findService looks for the command that starts a service.
func findService(ctx context.Context, c Cluster, what string) ([]string, error) {
	kind := serviceKinds[what]
	var modules strings.Builder
	for _, m := range kind.modules {
		fmt.Fprintf(&modules, "%s %s\n", m[0], m[1])
	}
	r, err := c.Node.Exec(ctx, remote.Cmd{Line: fmt.Sprintf("py=%s modules=%s programs=%s\n%s", shellword.Join(c.Python),
		shellword.Join(modules.String()), shellword.Join(strings.Join(kind.programs, " ")), lookScript)})
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSpace(string(r.Stdout)), "\n")
	if r.ExitCode == 0 && words[0] != "" {
		return words, nil
	}
	return nil, &event.Fault{What: "start " + what, Node: c.Number,
		Why:  fmt.Sprintf("%s is not installed there: not for %s, and not on the PATH", what, c.Python),
		Next: installLine(kind, c, words)}
}

// installLine says how to get a service on the node, with a line that works
// there: the Python of a system that manages its packages itself refuses pip.
func installLine(kind serviceKind, c Cluster, facts []string) string {
	facts = append(facts, "", "", "")
	venv := fmt.Sprintf("add %s to requirements.txt, set environment: {venv: requirements.txt} and run dlwb up", kind.pip)
	on := fmt.Sprintf("dlwb exec %s --node %d -- ", c.Name, c.Number)
	switch {
	case facts[0] == "pip":
		return on + shellword.Join(c.Python, "-m", "pip", "install", kind.pip) + "; or " + venv
	case kind.apt != "" && facts[2] == "debian" && facts[1] == "0":
		return on + "apt-get install -y " + kind.apt + "; or " + venv
	case kind.apt != "" && facts[2] == "debian":
		return on + "sudo apt-get install -y " + kind.apt + "; or " + venv
	}
	return venv
}
