package remote

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// Proc is one process that is started on a node: a rank, or a launcher that
// starts ranks.
type Proc struct {
	Name  string // "rank-0" or "agent"
	Ranks []int
	// Env is K=V, on top of the run's.
	Env []string
	// Argv is the program with its arguments. A word that begins with ~/.dlwb/
	// means that place in the node's home.
	Argv []string
	// Again is in its place when a scheduler starts the job once more; empty: Argv.
	Again []string
	// Log is the file in the run directory for the process's own output.
	Log string
	// Helper is set for what serves the others: it is ended when all of those
	// have ended, and its own end before that is a failure.
	Helper bool
	// After is what must hold before it is started; nil: nothing.
	After *Ready
}

// Ready is a program that is run until it exits with 0, for Limit seconds at
// most or until it exits with 3; then what it said last is what is missing.
type Ready struct {
	What  string
	Argv  []string
	Limit int
}

// File is a file in the run's directory.
type File struct{ Name, Text string }

// Launch is what one node does for a run.
type Launch struct {
	RunID string
	// Dir is the code's directory there, absolute or relative to the home.
	Dir string
	// Results is a directory of the run's own, absolute or relative to the
	// home; it is made before the start, and the processes find it in
	// DLWB_RESULTS. Empty: none.
	Results string
	Procs   []Proc
	// Env is K=V for all processes. It never shows in an argument list: it
	// travels into a file that only the user can read.
	Env []string
	// Grace is what the processes get between TERM and KILL; 0 means 10 s.
	Grace time.Duration
	// Patience is how long the others may go on when a process has failed, to
	// say what they know; 0 means 3 s.
	Patience time.Duration
	// OnNotice is a program with its arguments that the node runs in Dir, with
	// Env, when its provider announces to take it away; empty: none.
	OnNotice []string
	// LogMost is how many bytes of each log are kept on the node, the newest;
	// 0 means 4 GiB. It is rounded to whole segments, of which there are two at
	// least.
	LogMost int64
	// Peers are the other nodes, which are told when a process here failed.
	// They must have been paired.
	Peers []Peer
	// Files are written into the run's directory before anything starts.
	Files []File
	// Restarts is set when a launcher starts ranks again that have failed.
	Restarts bool
	// Leads is set on the node that ends the run on its peers, once all has ended
	// well here.
	Leads bool
	// Called is the run's name for its processes, where RunID is not: nodes with one
	// home directory have the run under a name of their own each.
	Called string
	// Beside are the ids of the other parts of the run, in the order of their nodes, of
	// the part that leads them: with one disk they tell each other there. Led is set for
	// those others.
	Beside []string
	Led    bool
	// CalledAt are the ids of the run on peers where it has another, by their names.
	CalledAt map[string]string

	logSegment int64 // what tests shorten; 0 means logSegment
}

const (
	defaultGrace    = 10 * time.Second
	defaultPatience = 3 * time.Second
	defaultLogMost  = 4 << 30
	// logSegment is the length of a log's segments on a node. It tells where a
	// byte of a log is, so it stays as it is for ever.
	logSegment = 64 << 20
)

// Launch starts a run on the node and returns when it is supervised there:
// from then on it needs no connection. A second launch of the same run does
// nothing. Everything travels in one round trip.
func (n *Node) Launch(ctx context.Context, l Launch) error {
	what := "launch run " + l.RunID
	if err := l.check(); err != nil {
		return n.wrap(what, err)
	}
	return n.Ask(ctx, wire.Launch, l.request(n.target.Name), nil)
}

// PrepareAs puts a run on the node's disk and starts nothing: "agent part" begins
// it, on a machine of another name that has the same disk.
func (n *Node) PrepareAs(ctx context.Context, name string, l Launch) error {
	if err := l.check(); err != nil {
		return n.wrap("prepare run "+l.RunID, err)
	}
	r := l.request(name)
	r.Hold = true
	return n.Ask(ctx, wire.Launch, r, nil)
}

// request is the launch as the agent gets it.
func (l Launch) request(node string) wire.LaunchRequest {
	segment := orElse(l.logSegment, logSegment)
	r := wire.LaunchRequest{
		RunID: l.RunID, Node: node, Dir: l.Dir, Results: l.Results, Env: bytesOf(l.Env), OnNotice: bytesOf(l.OnNotice),
		Grace:    orElse(l.Grace, defaultGrace).Milliseconds(),
		Patience: orElse(l.Patience, defaultPatience).Milliseconds(),
		Segment:  segment, Keep: max(2, orElse(l.LogMost, defaultLogMost)/segment),
		Restarts: l.Restarts, Leads: l.Leads, Called: l.Called, Beside: l.Beside, Led: l.Led,
	}
	for _, p := range l.Procs {
		w := wire.LaunchProc{Name: p.Name, Log: p.Log, Env: bytesOf(p.Env), Argv: bytesOf(p.Argv), Again: bytesOf(p.Again), Helper: p.Helper}
		if a := p.After; a != nil {
			w.After = &wire.LaunchReady{What: a.What, Argv: bytesOf(a.Argv), Limit: int64(a.Limit)}
		}
		r.Procs = append(r.Procs, w)
	}
	for _, f := range l.Files {
		r.Files = append(r.Files, wire.LaunchFile{Name: f.Name, Text: []byte(f.Text)})
	}
	for _, p := range l.Peers {
		r.Peers = append(r.Peers, wire.LaunchPeer{Name: p.Name, Host: p.Host, Port: p.Port, User: p.User, Run: l.CalledAt[p.Name]})
	}
	return r
}

func bytesOf(words []string) [][]byte {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return all
}

func orElse[T time.Duration | int64](d, otherwise T) T {
	if d == 0 {
		return otherwise
	}
	return d
}

var (
	plainName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainHost = regexp.MustCompile(`^[A-Za-z0-9_:][A-Za-z0-9_.:%-]*$`)
)

// check refuses what can't be written into the files of a run.
func (l Launch) check() error {
	if err := checkRunID(l.RunID); err != nil {
		return err
	}
	if l.Called != "" && checkRunID(l.Called) != nil {
		return checkRunID(l.Called)
	}
	if len(l.Procs) == 0 {
		return fmt.Errorf("there is nothing to start")
	}
	if strings.ContainsAny(l.Dir, "\x00\n") || l.Dir == "" || l.Dir[0] == '-' {
		return fmt.Errorf("%q can't be the code directory", l.Dir)
	}
	if strings.ContainsAny(l.Results, "\x00\n") {
		return fmt.Errorf("%q can't be a directory of results", l.Results)
	}
	if err := checkEnv(l.Env); err != nil {
		return err
	}
	if strings.Contains(strings.Join(l.OnNotice, ""), "\x00") {
		return fmt.Errorf("a word of the command for a notice holds a NUL byte")
	}
	for _, p := range l.Procs {
		if err := p.check(); err != nil {
			return fmt.Errorf("process %q: %w", p.Name, err)
		}
	}
	for _, p := range l.Peers {
		if err := p.check(); err != nil {
			return err
		}
		if at := l.CalledAt[p.Name]; at != "" && checkRunID(at) != nil {
			return checkRunID(at)
		}
	}
	for _, id := range l.Beside {
		if err := checkRunID(id); err != nil {
			return err
		}
	}
	for _, f := range l.Files {
		if !plainName.MatchString(f.Name) {
			return fmt.Errorf("%q is not a plain file name", f.Name)
		}
	}
	return nil
}

func (p Proc) check() error {
	switch {
	case !plainName.MatchString(p.Name):
		return fmt.Errorf("its name is not a plain file name")
	case !plainName.MatchString(p.Log):
		return fmt.Errorf("its log %q is not a plain file name", p.Log)
	case len(p.Argv) == 0:
		return fmt.Errorf("it has no program")
	case strings.Contains(strings.Join(append(p.Argv[:len(p.Argv):len(p.Argv)], p.Again...), ""), "\x00"):
		return fmt.Errorf("an argument holds a NUL byte")
	case p.After != nil && (len(p.After.Argv) == 0 || strings.Contains(strings.Join(p.After.Argv, ""), "\x00")):
		return fmt.Errorf("what it waits for has no program, or a NUL byte in it")
	}
	return checkEnv(p.Env)
}

func checkEnv(env []string) error {
	for _, kv := range env {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok || !envName.MatchString(name):
			return fmt.Errorf("%q can't be the name of an environment variable", name)
		case name == "DLWB_RESULTS":
			return fmt.Errorf("%s is set by dlwb itself, to a directory of the run's own", name)
		case slices.Contains([]string{"DLWB_RUN", "DLWB_RUN_DIR", "DLWB_ROLE", "DLWB_AGENT", "DLWB_LIFE"}, name):
			return fmt.Errorf("%s is set by dlwb itself: the processes of a run are found by it", name)
		case strings.Contains(value, "\x00"):
			return fmt.Errorf("the value of %s holds a NUL byte", name)
		}
	}
	return nil
}

func checkRunID(id string) error {
	if !plainName.MatchString(id) {
		return fmt.Errorf("%q can't be the id of a run: use letters, digits, '.', '_' and '-'", id)
	}
	return nil
}
