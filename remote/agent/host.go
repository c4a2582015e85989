//go:build linux

package agent

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/remote/agent/host"
	"github.com/dlwb/dlwb/remote/wire"
)

// askHost WORD WORD: answers one question about this machine: the request is on
// the standard input, the answer follows a mark that holds the words.
func askHost(args []string) int {
	if len(args) != 2 {
		return exitUsage
	}
	if !whole(false) {
		fmt.Fprintln(os.Stderr, "the file of dlwb's agent was altered")
		return exitFailed
	}
	// What was begun is brought to its end, also when nobody waits for it any more.
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE, syscall.SIGINT)
	syscall.CloseOnExec(onceDescriptor)
	syscall.Umask(0o077)
	answer := hostclaim.Answer{}
	request, err := hostclaim.ReadRequest(os.Stdin)
	if err != nil {
		answer.Failed = fmt.Sprintf("the question can't be read: %v", err)
	} else {
		answer = thisHost().Do(request)
	}
	text, err := hostclaim.Encode(answer)
	if err == nil {
		_, err = os.Stdout.Write(append([]byte(hostclaim.Mark(args[0], args[1])), text...))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	return 0
}

// onceDescriptor is where an agent that is started once is open: see agentbin's
// OnceLine.
const onceDescriptor = 9

// thisHost is the machine that this runs on.
func thisHost() *host.Host {
	h := host.New(home())
	name := "dlwb-" + strconv.Itoa(os.Getuid())
	for _, dir := range []string{"/var/tmp", "/dev/shm", "/tmp"} {
		h.Agents = append(h.Agents, filepath.Join(dir, name))
	}
	return h
}

// pair lets the nodes of a cluster reach each other.
func pair(_ context.Context, r wire.PairRequest) (wire.Done, error) {
	files := map[string]string{"peer_key": r.Key, "peer_known_hosts": r.KnownHosts, "peers": r.Peers}
	return wire.Done{}, thisHost().Pair(r.Life, files, r.Authorized)
}

// uninstall removes what dlwb has put here.
func uninstall(_ context.Context, r wire.UninstallRequest) (wire.Done, error) {
	return wire.Done{}, thisHost().Uninstall(r.Dirs)
}
