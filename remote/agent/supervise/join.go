//go:build linux

package supervise

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/ownfile"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// A launcher of MPI on the first node wants a daemon of its own on each other
// one. There a process of the run waits to become that daemon (JoinedMain): it
// lies in the run's directory that it waits, and is written there what it is to
// be (JoinForPeer), when the first node asks for it over the key that the nodes
// have for each other (JoinMain). Parts of a scheduler's job have no way to each
// other and one disk: there the first node writes it. Nothing but MPI's daemon is
// started so, and only where a run waits for one.

const (
	waitsName = "join.waits"
	joinName  = "join"
	// joinMost bounds what a daemon is told.
	joinMost = 64 << 10
	// joinLimit is how long the first node asks before the other waits.
	joinLimit = time.Minute
	// joinEvery is the pause between two looks for it.
	joinEvery = 50 * time.Millisecond
)

// daemons are the programs that may be started.
var daemons = []string{"orted", "prted"}

// JoinMain is "agent join RUN_DIR dlwb-nodeN COMMAND": what the launcher calls to
// start its daemon.
func JoinMain(args []string) int {
	if len(args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: join RUN_DIR NODE COMMAND")
		return 64
	}
	r := runs.At(args[0])
	plan, err := ReadPlan(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlwb join:", err)
		return 66
	}
	// The peers of the first node are all others, in their order.
	n, err := strconv.Atoi(strings.TrimPrefix(args[1], "dlwb-node"))
	var ask func() error
	switch {
	case err != nil || n < 1 || n > max(len(plan.Peers), len(plan.Beside)):
		fmt.Fprintf(os.Stderr, "dlwb join: %.80q is no node of this run\n", args[1])
		return 66
	case n <= len(plan.Beside):
		ask = func() error { return askBeside(r, plan.Beside[n-1], []byte(args[2])) }
	default:
		ask = func() error { return askPeer(r, plan.Peers[n-1], []byte(args[2])) }
	}
	for end := time.Now().Add(joinLimit); time.Now().Before(end); time.Sleep(awaitEvery) {
		if err = ask(); !errors.Is(err, errNotYet) {
			break
		}
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "dlwb join: %s can't be asked to join: %v\n", args[1], err)
	return 1
}

// errNotYet: the node does not wait for a daemon yet.
var errNotYet = errors.New("it does not wait for anything yet")

// askPeer asks by the key that the nodes have for each other.
func askPeer(r runs.Run, p wire.LaunchPeer, text []byte) error {
	argv := toPeer(r, p, fmt.Sprintf("join %s %s", idAt(p, r.ID), base64.RawURLEncoding.EncodeToString(text)))
	said, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == codeNotYet:
		return fmt.Errorf("%w: %s", errNotYet, strings.TrimSpace(string(said)))
	}
	return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said)))
}

// idAt is the id of a run at a peer.
func idAt(p wire.LaunchPeer, own string) string {
	if runs.Plain(p.Run) {
		return p.Run
	}
	return own
}

// toPeer is how a peer is told something, by the key that the nodes have for each
// other.
func toPeer(run runs.Run, p wire.LaunchPeer, words string) []string {
	ssh := strings.Fields(os.Getenv("DLWB_SSH"))
	if len(ssh) == 0 {
		ssh = []string{"ssh"}
	}
	return append(ssh, "-i", run.PeerFile("peer_key"), "-p", fmt.Sprint(p.Port),
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile="+run.PeerFile("peer_known_hosts"),
		"-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes",
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2",
		p.User+"@"+p.Host, words)
}

// askBeside asks on the disk that the parts of a job share. Whether the other one has
// ended is not looked for: until it waits in this life, what lies there is of an earlier
// one.
func askBeside(r runs.Run, id string, text []byte) error {
	other, err := runs.Open(r.Home(), id)
	switch {
	case err != nil:
		return err
	case !other.Sees(waitsName) || other.Line(waitsName) != os.Getenv(runs.EnvLife):
		return errNotYet
	case daemonOf(string(text)) == nil:
		return fmt.Errorf("a run is joined by %s alone", strings.Join(daemons, " or "))
	}
	return other.Write(joinName, text)
}

// codeNotYet: the node does not wait for a daemon yet.
const codeNotYet = 75

// JoinForPeer is what another node asks for by "join RUN COMMAND".
func JoinForPeer(args []string) int {
	r, err := runs.At(""), error(nil)
	var text []byte
	if len(args) == 2 {
		if text, err = base64.RawURLEncoding.DecodeString(args[1]); err == nil && len(text) <= joinMost {
			r, err = runs.Open(os.Getenv("HOME"), args[0])
		}
	}
	if err != nil || r.Dir == "" || len(text) == 0 || len(text) > joinMost {
		fmt.Fprintln(os.Stderr, "dlwb peer: this is no word to join a run")
		return 64
	}
	if daemonOf(string(text)) == nil {
		fmt.Fprintf(os.Stderr, "dlwb peer: a run is joined by %s alone\n", strings.Join(daemons, " or "))
		return 64
	}
	if r.Ended() || r.Has("stopping") {
		fmt.Fprintf(os.Stderr, "dlwb peer: run %s has ended here\n", r.ID)
		return 66
	}
	if !r.Has(waitsName) {
		fmt.Fprintf(os.Stderr, "dlwb peer: run %s does not wait for anything here\n", r.ID)
		return codeNotYet
	}
	if err := r.Write(joinName, text); err != nil {
		fmt.Fprintln(os.Stderr, "dlwb peer:", err)
		return 1
	}
	return 0
}

// JoinedMain is "agent joined RUN_DIR": it waits for what it is to be.
func JoinedMain(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: joined RUN_DIR")
		return 64
	}
	r := runs.At(args[0])
	if err := r.Write(waitsName, []byte(os.Getenv(runs.EnvLife))); err != nil {
		fmt.Fprintln(os.Stderr, "dlwb joined:", err)
		return 1
	}
	for !r.Sees(joinName) {
		time.Sleep(joinEvery)
	}
	_ = os.Remove(r.Path(waitsName)) // one is enough
	text, err := os.ReadFile(r.Path(joinName))
	argv := daemonOf(string(text))
	if err != nil || argv == nil {
		fmt.Fprintln(os.Stderr, "dlwb joined: nothing to be was told:", err)
		return 1
	}
	program, err := ownDaemon(argv[0])
	if err == nil {
		err = syscall.Exec(program, argv, os.Environ())
	}
	fmt.Fprintf(os.Stderr, "dlwb joined: %s can't be started: %v: is Open MPI installed on this node, as on the first one?\n", argv[0], err)
	return 127
}

// ownDaemon is the daemon that is meant by the path that the first node has: one of
// this node's own PATH, or one that is installed outside the home, where nobody else
// can change it. What lies elsewhere in the home may have come from another node,
// whose key is to start MPI's daemon and nothing else.
func ownDaemon(told string) (string, error) {
	base := path.Base(told)
	if told == base {
		return exec.LookPath(base)
	}
	at, err := os.Stat(told)
	if err != nil {
		return exec.LookPath(base) // it is installed elsewhere here
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if own, err := os.Stat(filepath.Join(dir, base)); filepath.IsAbs(dir) && err == nil && os.SameFile(own, at) {
			return told, nil
		}
	}
	real, err := filepath.EvalSymlinks(told)
	if err != nil {
		return "", err
	}
	home, err := filepath.EvalSymlinks(os.Getenv("HOME"))
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(home, real); !filepath.IsAbs(told) || err != nil || filepath.IsLocal(rel) {
		return "", errors.New("it is in the home and not on the PATH, so another node may have put it there")
	}
	return told, ownfile.Check(real)
}

// daemonOf is MPI's daemon with its arguments, out of the line of shell by which
// a launcher starts it; nil where there is none. What the line sets before that
// is left to the environment of the run here.
func daemonOf(line string) []string {
	words := shellWords(line)
	at := slices.IndexFunc(words, func(w string) bool { return slices.Contains(daemons, path.Base(w)) })
	if at < 0 {
		return nil
	}
	argv := words[at:]
	if end := slices.Index(argv, ";"); end >= 0 {
		argv = argv[:end]
	}
	return argv
}

// shellWords cuts a line into words by blanks and quotes. A semicolon between
// blanks is a word.
func shellWords(line string) (words []string) {
	var word strings.Builder
	in, quote := false, rune(0)
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}
