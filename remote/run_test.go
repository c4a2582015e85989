//go:build linux

package remote

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/sshdtest"
)

// onSSHD gives a node with the scripts installed, on a real sshd, and the box
// to look into its home. No process of it may be left at the end.
func onSSHD(t *testing.T, opts ...sshdtest.Option) (*Node, *runbox.Box) {
	t.Helper()
	s := sshdtest.Start(t, opts...)
	n := openTest(t, s)
	must(t, n.Install(testContext(t)))
	b := &runbox.Box{T: t, Home: s.Home}
	t.Cleanup(func() {
		for _, p := range ofRun(b, runbox.Patience) {
			t.Errorf("left behind: %v", p)
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	})
	return n, b
}

func launchOf(procs []Proc) Launch {
	return Launch{RunID: "r1", Dir: ".", Procs: procs, Grace: time.Second, Patience: 300 * time.Millisecond}
}

func TestInstallPutsTheStubsWhereTheyAreNotAsTheyShouldBe(t *testing.T) {
	n, b := onSSHD(t)
	peer := filepath.Join(b.Home, ".dlwb/bin/peer")
	check := func() {
		t.Helper()
		must(t, n.Install(testContext(t)))
		if text, _ := os.ReadFile(peer); !strings.Contains(string(text), "/agent-") {
			t.Errorf("peer is %q", text)
		}
	}
	check()
	must(t, os.WriteFile(peer, []byte("of an older dlwb"), 0o600))
	check()
}

func TestARunIsWatchedToItsEnd(t *testing.T) {
	t.Parallel()
	n, b := onSSHD(t)
	ctx := testContext(t)
	if s, err := n.RunState(ctx, "r1"); err != nil || s.State != RunAbsent {
		t.Errorf("state %+v, %v", s, err)
	}
	var seen []Status
	var offsets []int64
	watched := make(chan error, 1)
	go func() {
		watched <- n.WatchRun(ctx, "r1", 0, func(off int64, s Status) error {
			seen, offsets = append(seen, s), append(offsets, off)
			return nil
		})
	}()
	must(t, n.Launch(ctx, launchOf(ranks("echo up; until [ -e go ]; do sleep 0.05; done; exit 3", forever))))
	b.WaitLog("rank-0.log", "up")
	s, err := n.RunState(ctx, "r1")
	if err != nil || s.State != RunRunning || s.LogSize("rank-0.log") != 3 || s.Exit != nil {
		t.Errorf("state %+v, %v", s, err)
	}
	must(t, os.WriteFile(filepath.Join(b.Home, "go"), nil, 0o600))
	must(t, <-watched)
	state := RunState{Statuses: seen}
	wantOrder(t, state, "started", "rank-ended 0 3", "stopping rank 0 on node0 exited with code 3", "rank-ended 1 143 TERM", "ended 3")
	if s, err = n.RunState(ctx, "r1"); err != nil || s.State != RunEnded || s.Exit.Code != 3 || s.Offset != offsets[len(offsets)-1] {
		t.Errorf("state %+v, %v; offsets %v", s, err, offsets)
	}
	// From an offset on only the rest comes.
	var rest []Status
	must(t, n.WatchRun(ctx, "r1", offsets[len(offsets)-2], func(_ int64, s Status) error {
		rest = append(rest, s)
		return nil
	}))
	if !slices.Equal(kinds(rest), []string{"ended 3"}) {
		t.Errorf("the rest is %q", kinds(rest))
	}
	if left := ofRun(b, runbox.Patience); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// ofRun waits until no process of a run is left, and returns those that are:
// sshd has some of its own in this home.
func ofRun(b *runbox.Box, limit time.Duration) []runbox.Process {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		left := slices.DeleteFunc(b.Processes(), func(p runbox.Process) bool {
			return strings.Contains(p.Args, " serve ") || !strings.Contains(p.Args, ".dlwb") && !strings.Contains(p.Args, forever)
		})
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

func TestARunOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	ctx := testContext(t)
	must(t, n.Install(ctx))
	b := &runbox.Box{T: t, Home: s.Home}
	must(t, n.Launch(ctx, launchOf(ranks("echo up; until [ -e go ]; do sleep 0.05; done; echo done"))))
	b.WaitLog("rank-0.log", "up")
	s.Stop()
	must(t, os.WriteFile(filepath.Join(s.Home, "go"), nil, 0o600))
	b.WaitLog("rank-0.log", "done")
	runbox.Within(t, runbox.Patience, "an exit record", func() bool { return b.Has("exit") })
	s.Start()
	if state, err := n.RunState(ctx, "r1"); err != nil || state.State != RunEnded || state.Exit.Code != 0 {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestStopRunTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	n, b := onSSHD(t)
	ctx := testContext(t)
	if left, err := n.StopRun(ctx, "r1", time.Second, "too early"); left != 0 || err != nil {
		t.Errorf("left %d, %v", left, err)
	}
	must(t, n.Launch(ctx, launchOf(ranks("trap '' TERM; echo up; "+forever))))
	b.WaitLog("rank-0.log", "up")
	if err := n.Uninstall(ctx); err == nil || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("uninstall during a run: %v", err)
	}
	if left, err := n.StopRun(ctx, "r1", 300*time.Millisecond, "the user's wish; $(reboot)"); left != 0 || err != nil {
		t.Errorf("left %d, %v", left, err)
	}
	s, err := n.RunState(ctx, "r1")
	must(t, err)
	wantOrder(t, s, "stopping the user's wish; $(reboot)", "rank-ended 0 137 KILL", "ended 143")
}

func TestAWatchEndsWhenTheRunIsLost(t *testing.T) {
	t.Parallel()
	n, b := onSSHD(t)
	ctx := testContext(t)
	must(t, n.Launch(ctx, launchOf(ranks("echo up; "+forever))))
	b.WaitLog("rank-0.log", "up")
	w := &watcher{n: n, runID: "r1", lookEvery: 100 * time.Millisecond, sink: func(int64, Status) error { return nil }}
	b.Kill(b.Supervisor(), syscall.SIGKILL)
	var lost *LostRunError
	if err := w.watch(ctx); !errors.As(err, &lost) || lost.State.State != RunUnknown {
		t.Errorf("the watch ended with %v", err)
	}
	if left, err := n.StopRun(ctx, "r1", 300*time.Millisecond, "lost"); left != 0 || err != nil {
		t.Errorf("left %d, %v", left, err)
	}
	// The status file could not be written to: the record tells the end.
	status := b.Read("status")
	must(t, os.WriteFile(b.File("status"), []byte(strings.Split(status, "\n")[0]+"\n"), 0o600))
	var seen []Status
	w = &watcher{n: n, runID: "r1", lookEvery: 100 * time.Millisecond, sink: func(_ int64, s Status) error {
		seen = append(seen, s)
		return nil
	}}
	must(t, w.watch(ctx))
	if !slices.Equal(kinds(seen), []string{"started", "ended 137"}) {
		t.Errorf("seen %q", kinds(seen))
	}
}

func TestUninstallRemovesWhatWasPutThere(t *testing.T) {
	n, b := onSSHD(t)
	ctx := testContext(t)
	own := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample user@home"
	keys := filepath.Join(b.Home, ".ssh/authorized_keys")
	must(t, os.MkdirAll(filepath.Dir(keys), 0o700))
	must(t, os.WriteFile(keys, []byte(own), 0o600)) // without a line end
	for range 2 {
		must(t, Pair(ctx, []*Node{n}, nil, []Peer{{"node0", "10.0.0.1", 22, "me", n.Target().HostKey}}, filepath.Join(t.TempDir(), "peer")))
	}
	if text, _ := os.ReadFile(keys); strings.Count(string(text), "\n") != 3 || !bytes.Contains(text, []byte("\nrestrict,command=")) {
		t.Errorf("authorized_keys: %q", text)
	}
	must(t, n.Launch(ctx, launchOf(ranks("exit 0"))))
	runbox.Within(t, runbox.Patience, "the end", func() bool { return strings.Contains(b.Read("status"), " ended 0\n") && b.Has("exit") })
	must(t, os.MkdirAll(filepath.Join(b.Home, "dlwb/demo/code"), 0o700))
	for _, bad := range []string{"/etc", "..", ".", "a/../../b"} {
		if err := n.Uninstall(ctx, bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	runbox.Within(t, runbox.Patience, "uninstall", func() bool { return n.Uninstall(ctx, "dlwb/demo") == nil })
	if text, _ := os.ReadFile(keys); string(text) != own+"\n" {
		t.Errorf("authorized_keys: %q", text)
	}
	if _, err := os.Stat(filepath.Join(b.Home, ".dlwb")); err == nil {
		t.Error(".dlwb is left")
	}
	if _, err := os.Stat(filepath.Join(b.Home, "dlwb")); err == nil {
		t.Error("dlwb/demo is left")
	}
}

// peerable starts an sshd that honours its home's authorized_keys with the
// commands in it, as an ordinary one does.
func peerable(t *testing.T, opts ...sshdtest.Option) (*sshdtest.Server, Peer) {
	t.Helper()
	dir := t.TempDir()
	keys := filepath.Join(dir, "authorized_keys")
	s := sshdtest.Start(t, append(opts, sshdtest.Plain(), sshdtest.Config("AuthorizedKeysFile "+keys))...)
	public, err := GenerateKey(s.KeyFile, "")
	must(t, err)
	must(t, os.WriteFile(keys, []byte(public+"\n"), 0o600))
	must(t, os.Symlink(dir, filepath.Join(s.Home, ".ssh")))
	host, port, err := net.SplitHostPort(s.Addr)
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	return s, Peer{Host: host, Port: number, User: s.User, HostKey: s.HostKey}
}

func TestAFailureOnOneNodeEndsTheOthersByThemselves(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Fatal("this test needs OpenSSH's client: apt-get install -y openssh-client")
	}
	ctx := testContext(t)
	var nodes []*Node
	var boxes []*runbox.Box
	var peers []Peer
	for _, name := range []string{"node0", "node1"} {
		s, peer := peerable(t)
		target := targetOf(s)
		target.Name, peer.Name = name, name
		n := Open(target)
		t.Cleanup(func() { _ = n.Close() })
		nodes, peers = append(nodes, n), append(peers, peer)
		boxes = append(boxes, &runbox.Box{T: t, Home: s.Home})
		must(t, n.Install(ctx))
	}
	must(t, Pair(ctx, nodes, nil, peers, filepath.Join(t.TempDir(), "peer")))
	programs := []string{"echo up; " + forever, "until [ -e go ]; do sleep 0.05; done; exit 3"}
	for i, n := range nodes {
		l := launchOf(ranks(programs[i]))
		l.Peers = []Peer{peers[1-i]}
		must(t, n.Launch(ctx, l))
	}
	boxes[0].WaitLog("rank-0.log", "up")
	t.Cleanup(func() {
		if t.Failed() {
			for i, b := range boxes {
				t.Logf("node%d's status:\n%s\nits supervise says:\n%s\nprocesses: %v", i, b.Read("status"), b.Read("supervise.log"), ofRun(b, 0))
			}
		}
	})
	// Nobody is connected from here on.
	for _, n := range nodes {
		must(t, n.Close())
	}
	must(t, os.WriteFile(filepath.Join(boxes[1].Home, "go"), nil, 0o600))
	for i, want := range []string{" stopping rank 0 on node1 exited with code 3\n", " peer node0 told\n"} {
		runbox.Within(t, runbox.Patience, "the end on "+nodes[i].Name(), func() bool {
			status := boxes[i].Read("status")
			return strings.Contains(status, want) && strings.Contains(status, " ended ")
		})
		if left := ofRun(boxes[i], runbox.Patience); len(left) > 0 {
			t.Errorf("left behind on %s: %v", nodes[i].Name(), left)
		}
	}
}
