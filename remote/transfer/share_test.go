//go:build linux

package transfer

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote/wire"
)

const (
	givenDir = "dlwb/c/.wheels.0"
	takenDir = "dlwb/c/.wheels"
)

// given is what the first node has to give.
var given = map[string]string{"big.whl": noise(3, 700_000), "with a blank.whl": "small", "sub/dir/x": "x"}

// sharers are nodes of which the first has something to give.
func sharers(t *testing.T, count int, opts ...sshdtest.Option) (from sharing, to []sharing, servers []*sshdtest.Server) {
	t.Helper()
	nodes, servers := family(t, count, opts...)
	writeFiles(t, filepath.Join(servers[0].Home, givenDir), given)
	for _, n := range nodes[1:] {
		to = append(to, sharing{peer{n}, takenDir})
	}
	return sharing{peer{nodes[0]}, givenDir}, to, servers
}

func wantGiven(t *testing.T, home string) {
	t.Helper()
	for name, text := range given {
		got, err := os.ReadFile(filepath.Join(home, takenDir, name))
		if err != nil || string(got) != text {
			t.Errorf("%s has %d bytes (%v), want %d", filepath.Join(home, takenDir, name), len(got), err, len(text))
		}
	}
}

// wantNothing waits until a node has cleaned up: what is cut off does it by itself.
func wantNothing(t *testing.T, home string) {
	t.Helper()
	runbox.Within(t, runbox.Patience, "nothing left in "+home, func() bool {
		left, _ := filepath.Glob(filepath.Join(home, takenDir+"*"))
		pipes, _ := filepath.Glob(filepath.Join(home, ".dlwb/in/*"))
		half, _ := filepath.Glob(filepath.Join(home, "dlwb/c/.dlwb-in*"))
		return len(left)+len(pipes)+len(half) == 0
	})
}

func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the error is %v; it should say %q", err, text)
	}
}

func TestADirectoryOfOneNodeComesWholeToTheOthers(t *testing.T) {
	from, to, servers := sharers(t, 3)
	// What was there before goes.
	writeFiles(t, filepath.Join(servers[1].Home, takenDir), map[string]string{"old.whl": "old"})
	errs := Share(testContext(t), Place{from.node.(peer).Node, from.dir},
		[]Place{{to[0].node.(peer).Node, takenDir}, {to[1].node.(peer).Node, takenDir}}, 8<<20)
	for i, err := range errs {
		check(t, err)
		wantGiven(t, servers[i+1].Home)
		all, _ := filepath.Glob(filepath.Join(servers[i+1].Home, takenDir+"*/*.whl"))
		pipes, _ := filepath.Glob(filepath.Join(servers[i+1].Home, ".dlwb/in/*"))
		if len(all) != 2 || len(pipes) > 0 {
			t.Errorf("there are %q and %q", all, pipes)
		}
	}
}

func TestANodeThatTheSenderCantReachGetsNothingAndTheOthersAll(t *testing.T) {
	from, to, servers := sharers(t, 3)
	known := filepath.Join(servers[0].Home, ".dlwb/peer_known_hosts")
	text, err := os.ReadFile(known)
	check(t, err)
	own := strings.Fields(servers[2].HostKey)[1]
	other := strings.Fields(sshdtest.MakeKey(t, filepath.Join(t.TempDir(), "key")))[1]
	check(t, os.WriteFile(known, bytes.ReplaceAll(text, []byte(own), []byte(other)), 0o600))
	errs := share(testContext(t), from, to, 8<<20)
	check(t, errs[0])
	wantGiven(t, servers[1].Home)
	says(t, errs[1], "could not reach this one")
	wantNothing(t, servers[2].Home)
}

// liar says another checksum than that of what it sends.
type liar struct{ syncPeer }

func (l liar) talk(ctx context.Context, service string, request any) (talking, func(error) error, error) {
	st, wrap, err := l.syncPeer.talk(ctx, service, request)
	return lie{st}, wrap, err
}

type lie struct{ talking }

func (l lie) Recv(v any) error {
	err := l.talking.Recv(v)
	if given, ok := v.(*wire.ShareGiven); ok {
		given.Digest = bytes.Repeat([]byte("a"), 32)
	}
	return err
}

func TestWhatIsNotWhatTheSenderSaysIsNotTaken(t *testing.T) {
	from, to, servers := sharers(t, 3)
	from.node = liar{from.node}
	for i, err := range share(testContext(t), from, to, 8<<20) {
		says(t, err, "not what the other node says it has sent")
		wantNothing(t, servers[i+1].Home)
	}
}

func TestMoreThanWasAgreedIsNotTaken(t *testing.T) {
	from, to, servers := sharers(t, 2)
	err := share(testContext(t), from, to, 300_000)[0]
	says(t, err, "more of it than was agreed")
	wantNothing(t, servers[1].Home)
}

// onTheWay puts a script in the place of ssh on a node; the real one is $0.real.
func onTheWay(t *testing.T, script string) sshdtest.Option {
	t.Helper()
	bin := t.TempDir()
	real, err := exec.LookPath("ssh")
	check(t, err)
	check(t, os.Symlink(real, filepath.Join(bin, "ssh.real")))
	check(t, testprogram.Write(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\n"+script), 0o700))
	return sshdtest.PathFirst(bin)
}

func TestWhatIsCutShortOnTheWayIsNotTaken(t *testing.T) {
	from, to, servers := sharers(t, 2, onTheWay(t, `head -c 200000 | "$0.real" "$@"; cat >/dev/null`))
	if err := share(testContext(t), from, to, 8<<20)[0]; err == nil {
		t.Error("nobody was told")
	}
	wantNothing(t, servers[1].Home)
}

func TestWhenTheSenderIsCutOffNothingIsLeftAnywhere(t *testing.T) {
	from, to, servers := sharers(t, 3, onTheWay(t, `{ head -c 200000; : >>"$HOME/came"; until [ -e "$HOME/gone" ]; do sleep 0.05; done; } | "$0.real" "$@"; : >"$HOME/over"`))
	gone, over := filepath.Join(servers[0].Home, "gone"), filepath.Join(servers[0].Home, "over")
	done := make(chan []error)
	go func() { done <- share(testContext(t), from, to, 8<<20) }()
	runbox.Within(t, runbox.Patience, "files at both nodes", func() bool {
		first, _ := filepath.Glob(filepath.Join(servers[1].Home, "dlwb/c/.dlwb-in*/f/*"))
		second, _ := filepath.Glob(filepath.Join(servers[2].Home, "dlwb/c/.dlwb-in*/f/*"))
		return len(first) > 0 && len(second) > 0
	})
	servers[0].KillConnections()
	for i, err := range <-done {
		says(t, err, "node0 could not send it")
		wantNothing(t, servers[i+1].Home)
	}
	check(t, os.WriteFile(gone, nil, 0o600))
	runbox.Within(t, runbox.Patience, "the sender's end", func() bool { _, err := os.Stat(over); return err == nil })
}
