package remote

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
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
	// Log is the file in the run directory for the process's own output.
	Log string
}

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
	// travels over stdin into a file that only the user can read.
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
	text, err := l.program(n.target.Name)
	if err != nil {
		return n.wrap(what, err)
	}
	_, err = n.program(ctx, what, text)
	return err
}

// launchBegin expects $dir and $run. A run that was launched stays as it is.
const launchBegin = `bin=$HOME/.dlwb/bin
if [ ! -f "$bin/supervise" ]; then
    echo "dlwb's scripts are not installed here" >&2
    exit 69
fi
if [ -d "$run/lock" ]; then exec sh "$bin/supervise" "$run"; fi
if ! cd "$HOME" || ! cd "$dir"; then
    echo "the code directory $dir is not there" >&2
    exit 66
fi
dir=$(pwd)
mkdir -p "$run" && cd "$run" || exit 74
`

// program is the text that makes the run directory and starts the run.
func (l Launch) program(node string) (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	begin := fmt.Sprintf("run=$HOME/.dlwb/runs/%s dir=%s\n%s", l.RunID, homeWord(l.Dir), launchBegin)
	var body, procs, peers strings.Builder
	body.WriteString(put("env", exports(l.Env)))
	for _, p := range l.Procs {
		fmt.Fprintf(&procs, "%s %s\n", p.Name, p.Log)
		body.WriteString(put("proc."+p.Name, l.procText(p)))
	}
	for _, p := range l.Peers {
		fmt.Fprintf(&peers, "%s %s %d %s\n", p.Name, p.Host, p.Port, p.User)
	}
	body.WriteString(put("procs", procs.String()))
	if len(l.Peers) > 0 {
		body.WriteString(put("peers", peers.String()))
	}
	body.WriteString(put("settings", l.settings(node)))
	if len(l.OnNotice) > 0 {
		body.WriteString(put("on_notice", l.noticeText()))
	}
	if l.Results != "" {
		fmt.Fprintf(&body, resultsDir, homeWord(l.Results))
	}
	body.WriteString(`printf '%s\n' "$dir" >dir || exit 74` + "\n")
	body.WriteString(`exec sh "$bin/supervise" "$run"`)
	return programOf(begin, body.String()), nil
}

// resultsDir makes the run's own directory and keeps its absolute path. What
// the run makes there is for whoever may read the code.
const resultsDir = `results=%s
case $results in /*) ;; *) results=$HOME/$results ;; esac
mkdir -p "$results" && chmod 755 "$results" && printf '%%s\n' "$results" >results || exit 74
`

// resultsEnv sets DLWB_RESULTS in a process whose run directory is WHERE.
func (l Launch) resultsEnv(where string) string {
	if l.Results == "" {
		return ""
	}
	return "read -r DLWB_RESULTS <" + where + "/results && export DLWB_RESULTS\n"
}

// settings is the file of what supervise, stop, state and log go by.
func (l Launch) settings(node string) string {
	segment := orElse(l.logSegment, logSegment)
	return fmt.Sprintf("node=%s\ngrace_ms=%d\nfail_grace=%s\nsegment=%d\nkeep=%d\n", quoteWord(node),
		orElse(l.Grace, defaultGrace).Milliseconds(), seconds(orElse(l.Patience, defaultPatience)),
		segment, max(2, orElse(l.LogMost, defaultLogMost)/segment))
}

// procText is the file from which supervise starts a process.
func (l Launch) procText(p Proc) string {
	words := make([]string, len(p.Argv))
	for i, w := range p.Argv {
		words[i] = homeWord(w)
	}
	return fmt.Sprintf(`# %s of run %s: what supervise starts.
. "$DLWB_RUN_DIR/env"
%s%sread -r dir <"$DLWB_RUN_DIR/dir" && cd "$dir" || exit 66
exec %s
`, p.Name, l.RunID, exports(p.Env), l.resultsEnv(`"$DLWB_RUN_DIR"`), strings.Join(words, " "))
}

// noticeText is the file that a machine runs, in the run's directory, when it
// is about to be taken away.
func (l Launch) noticeText() string {
	words := make([]string, len(l.OnNotice))
	for i, w := range l.OnNotice {
		words[i] = homeWord(w)
	}
	return fmt.Sprintf(`. ./env
%sread -r dir <dir && cd "$dir" || exit 66
exec %s
`, l.resultsEnv("."), strings.Join(words, " "))
}

// exports sets variables; a later value of a name counts.
func exports(env []string) string {
	values := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		values[name] = value
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "export %s=%s\n", name, quoteWord(values[name]))
	}
	return text.String()
}

// homeWord quotes a word for sh; ~/.dlwb/ in front is the node's home.
func homeWord(word string) string {
	if rest, ok := strings.CutPrefix(word, "~/"); ok && strings.HasPrefix(rest, ".dlwb/") {
		return `"$HOME"/` + quoteWord(rest)
	}
	return quoteWord(word)
}

// seconds is a duration as sleep takes it.
func seconds(d time.Duration) string {
	if d%time.Second == 0 {
		return fmt.Sprint(int(d / time.Second))
	}
	return fmt.Sprintf("%.1f", d.Seconds())
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
	case strings.Contains(strings.Join(p.Argv, ""), "\x00"):
		return fmt.Errorf("an argument holds a NUL byte")
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
		case name == "DLWB_RUN" || name == "DLWB_RUN_DIR" || name == "DLWB_ROLE":
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
