//go:build linux

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/agent/ending"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/agent/supervise"
	"github.com/dlwb/dlwb/remote/wire"
)

// launch starts a run.
func launch(ctx context.Context, r wire.LaunchRequest) (wire.LaunchAnswer, error) {
	return wire.LaunchAnswer{}, supervise.Launch(ctx, home(), self(), r)
}

// state looks at a run.
func state(_ context.Context, r wire.StateRequest) (wire.StateAnswer, error) {
	run, err := runs.Open(home(), r.RunID)
	if err != nil {
		return wire.StateAnswer{}, wire.Faultf(wire.Wrong, "%v", err)
	}
	return run.Look(), nil
}

// stopRun ends a run, in a process of its own: who asked may go away, and what
// was begun is finished.
func stopRun(_ context.Context, r wire.StopRequest) (a wire.StopAnswer, err error) {
	grace := "-"
	if r.Grace >= 0 {
		grace = strconv.FormatInt(r.Grace, 10)
	}
	c := apart(r.RunID, grace, r.Why)
	var complaint bytes.Buffer
	c.Stderr = &complaint
	said, err := c.Output()
	if _, scanErr := fmt.Sscanf(string(said), "left %d\n", &a.Left); scanErr == nil {
		return a, nil
	}
	return a, wire.Faultf(wire.Failed, "%s %v", strings.TrimSpace(complaint.String()), errors.Join(err, errors.New("it is not known what is left of it")))
}

// apart is "agent stop" in a session of its own.
func apart(args ...string) *exec.Cmd {
	c := exec.Command(self(), append([]string{"stop"}, args...)...)
	c.Env, c.Dir = os.Environ(), home()
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c
}

// stop RUN_ID [GRACE_MS|-] [WHY…]: ends every process of a run on this node.
// stop --own RUN_ID …: the same for the supervisor of an older dlwb, which is
// spared. It prints "left N": the number of processes that are still there.
func stop(args []string) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE)
	own := len(args) > 0 && args[0] == "--own"
	if own {
		args = args[1:]
	}
	args = append(args, make([]string, max(0, 2-len(args)))...)
	run, err := runs.Open(home(), args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlwb stop:", err)
		return exitUsage
	}
	grace := run.Settings().Grace
	if word := args[1]; word != "" && word != "-" {
		ms, err := strconv.ParseUint(word, 10, 31)
		grace = time.Duration(ms) * time.Millisecond
		if err != nil {
			fmt.Fprintf(os.Stderr, "dlwb stop: the grace %q is not in milliseconds\n", word)
			return exitUsage
		}
	}
	left := ending.Order{Run: run, Grace: grace, Why: strings.Join(args[2:], " "), Own: own}.End()
	fmt.Printf("left %d\n", left)
	if left > 0 {
		return 1
	}
	return 0
}

// peer: what another node of the cluster may do here. sshd calls it as the forced
// command of the node-to-node key; what the other node asks for is in
// SSH_ORIGINAL_COMMAND. It never runs anything that the other node sends.
func peer([]string) int {
	words := strings.Fields(os.Getenv("SSH_ORIGINAL_COMMAND"))
	if len(words) >= 2 {
		if do, ok := peers[words[0]]; ok {
			return do(words[1:])
		}
	}
	fmt.Fprintln(os.Stderr, "dlwb peer: this key can only stop a run, join one that waits for it, or pass on files")
	return exitUsage
}

// peers are the words that another node may say here, each with what does it.
var peers = map[string]func(args []string) int{
	"stop": stopForPeer,
	"sync": passOn,
	"join": supervise.JoinForPeer,
}

// stopForPeer RUN_ID WHY…: the stop goes on by itself, with the run's own grace,
// so that a peer need not wait for it.
func stopForPeer(args []string) int {
	run, err := runs.Open(home(), args[0])
	if err == nil && !run.Has("") {
		err = fmt.Errorf("no run %s here", run.ID)
	}
	if err == nil {
		err = apart(append([]string{run.ID, "-"}, args[1:]...)...).Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dlwb peer:", err)
		return exitAbsent
	}
	fmt.Println("stopping", run.ID)
	return 0
}
