//go:build linux

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote/agent/runs"
	"github.com/dlwb/dlwb/remote/wire"
)

// Prefix begins the name of an agent's file; the beginning of the SHA-256 of its
// bytes follows.
const Prefix = "agent-"

// check HASH: whether this program is the one whose bytes have that hash.
func check(args []string) int {
	if len(args) != 1 {
		return exitUsage
	}
	sum, err := ownHash()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	case !strings.HasPrefix(sum, args[0]):
		fmt.Fprintln(os.Stderr, "it did not arrive whole")
		return exitFailed
	}
	return 0
}

func ownHash() (string, error) {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// wholeSuffix ends the name of the file beside an agent that says in which state
// its file was when all of its bytes were right.
const wholeSuffix = ".whole"

// whole reports whether this program is what its name says. One whose file was cut
// short or altered ends before its hello, and another one is brought. With keep
// its file is read again only when it was touched since.
func whole(keep bool) bool {
	hash, named := strings.CutPrefix(filepath.Base(self()), Prefix)
	if !named {
		return true
	}
	state, beside := ownState(), filepath.Join(filepath.Dir(self()), "."+filepath.Base(self())+wholeSuffix)
	if was, err := os.ReadFile(beside); err == nil && state != "" && string(was) == state {
		return true
	}
	sum, err := ownHash()
	if err != nil || !strings.HasPrefix(sum, hash) {
		return false
	}
	if keep && state != "" {
		keepState(beside, state)
	}
	return true
}

// ownState changes with whatever is done to the file that this program is; empty:
// it is not there any more.
func ownState() string {
	var own, there syscall.Stat_t
	if syscall.Stat("/proc/self/exe", &own) != nil || syscall.Stat(self(), &there) != nil || own.Ino != there.Ino || own.Dev != there.Dev {
		return ""
	}
	return fmt.Sprintln(own.Dev, own.Ino, own.Size, own.Mtim.Nano(), own.Ctim.Nano())
}

// keepState writes a state down. Where that fails the bytes are read each time.
func keepState(path, state string) {
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if os.WriteFile(temp, []byte(state), 0o600) != nil || os.Rename(temp, path) != nil {
		_ = os.Remove(temp)
	}
}

// stubs are what the rest of the system calls on a node by a name that stays: a
// launcher starts ranks by rank, the lease of a paid machine ends runs by stop,
// and another node of the cluster may start peer and nothing else.
var stubs = []string{"rank", "stop", "peer"}

// install puts the stubs in place and removes agents that nobody uses.
func install(context.Context, wire.InstallRequest) (a wire.InstallAnswer, err error) {
	dir := filepath.Join(home(), ".dlwb", "bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return a, err
	}
	for _, name := range stubs {
		if err := writeStub(filepath.Join(dir, name), name); err != nil {
			return a, err
		}
	}
	// An older dlwb's scripts are known by this file. Without it that puts its own
	// again, in place of stubs which it would take for them.
	_ = os.Remove(filepath.Join(dir, "version"))
	stayYoung()
	removeOld(dir)
	removeOld(filepath.Dir(self()))
	return a, nil
}

// writeStub writes a stub where it is not there as it should be. Processes of a
// run find the agent that started them by DLWB_AGENT.
func writeStub(path, mode string) error {
	agent := shellword.Quote(self())
	text := "#!/bin/sh\n[ -n \"$DLWB_AGENT\" ] || DLWB_AGENT=" + agent + "\nexec \"$DLWB_AGENT\" " + mode + ` "$@"` + "\n"
	if was, err := os.ReadFile(path); err == nil && string(was) == text {
		return nil
	}
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(temp, []byte(text), 0o700); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.Rename(temp, path)
}

const (
	// unusedFor is how long an agent must not have been put or started for it to be
	// removed: another dlwb may come back to it.
	unusedFor = 7 * 24 * time.Hour
	// brokenFor is how long one that did not arrive whole is left to whoever may
	// still bring it.
	brokenFor = time.Hour
)

// stayYoung notes that this agent is used.
func stayYoung() {
	now := time.Now()
	if info, err := os.Stat(self()); err == nil && now.Sub(info.ModTime()) > unusedFor/2 {
		_ = os.Chtimes(self(), now, now)
	}
}

// removeOld removes agents of other versions that nobody uses, and what was left
// of broken installations.
func removeOld(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	used, busy := sync.OnceValue(running), sync.OnceValue(func() bool { return unfinished(dir) })
	for _, e := range entries {
		name, hidden := strings.CutPrefix(e.Name(), ".")
		agent, state := strings.CutSuffix(name, wholeSuffix)
		limit := unusedFor
		if hidden && !state {
			limit = brokenFor
		}
		info, err := e.Info()
		if !strings.HasPrefix(name, Prefix) || err != nil || time.Since(info.ModTime()) < limit || used()[filepath.Join(dir, agent)] || limit == unusedFor && busy() {
			continue
		}
		_ = os.Remove(filepath.Join(dir, e.Name()))
	}
}

// unfinished reports whether a run beside a directory of agents has not come to its end:
// other hosts may have the same home, and what runs there is not seen here.
func unfinished(bin string) bool {
	all := filepath.Join(filepath.Dir(bin), "runs")
	dirs, _ := os.ReadDir(all)
	return slices.ContainsFunc(dirs, func(e fs.DirEntry) bool {
		r := runs.At(filepath.Join(all, e.Name()))
		return r.Launched() && !r.Ended()
	})
}

// running are the programs of the processes that can be seen.
func running() map[string]bool {
	paths := map[string]bool{self(): true}
	found, _ := fs.Glob(os.DirFS("/proc"), "[0-9]*/exe")
	for _, exe := range found {
		if path, err := os.Readlink("/proc/" + exe); err == nil {
			paths[path] = true
		}
	}
	return paths
}
