//go:build unix

package hosts

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote"
)

// targetOf is a node as the workbench dials it.
func targetOf(n cloud.Node) remote.Target {
	t := remote.Target{Name: n.Name, Addr: n.Addr, User: n.User, HostKey: n.HostKey, Keys: n.Keys}
	for _, j := range n.Jumps {
		t.Jumps = append(t.Jumps, remote.Jump{Name: j.Name, Addr: j.Addr, User: j.User, HostKey: j.HostKey, Keys: j.Keys})
	}
	return t
}

// work puts on the nodes what the workbench puts there.
func work(t *testing.T, w *world, c cloud.Cluster) []*remote.Node {
	t.Helper()
	var nodes []*remote.Node
	var peers []remote.Peer
	for _, n := range c.Nodes {
		node := remote.Open(targetOf(n))
		t.Cleanup(func() { _ = node.Close() })
		if err := node.Install(w.ctx()); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, node)
		peers = append(peers, remote.Peer{Name: n.Name, Host: n.PeerHost, Port: n.PeerPort, User: n.User, HostKey: n.HostKey})
	}
	if err := remote.Pair(w.ctx(), nodes, nil, peers, w.path("peer")); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if _, err := node.Exec(w.ctx(), remote.Cmd{Line: "mkdir -p dlwb/demo/code .dlwb/sync/x && echo hi >dlwb/demo/code/train.py"}); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// escapes is a program that leaves its session and its environment behind.
const escapes = "setsid env -i sleep 61237 & exec sleep 600"

func TestClusterComesUpWorksAndLeavesTheHostsAsTheyWere(t *testing.T) {
	w := newWorld(t)
	outer := w.start("outer")
	a, b := w.start("gpu1"), sshdtest.Start(t)
	w.host("gpu2", b, "ProxyJump outer")
	w.known(b)
	for _, file := range []string{"mine.txt", ".ssh/authorized_keys", "dlwb/other/keep"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(b.Home, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.Home, file), []byte("ssh-ed25519 AAAA me\n"), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, a.Home) + tree(t, b.Home)
	c := w.mustUp("aa", "gpu1", "gpu2")
	n := c.Nodes[1]
	if n.Name != "node1" || n.ID != "gpu2" || n.Addr != b.Addr || n.PeerHost != "127.0.0.1" || n.HostKey != b.HostKey ||
		n.Jumps[0].Addr != outer.Addr || n.Jumps[0].HostKey != outer.HostKey || c.CreatedAt != w.life("aa").Began {
		t.Errorf("%+v", c)
	}
	nodes := work(t, w, c)
	for i, node := range nodes {
		if err := node.Launch(w.ctx(), remote.Launch{RunID: "run-1", Dir: "dlwb/demo/code",
			Procs: []remote.Proc{{Name: "rank-0", Ranks: []int{0}, Log: "rank-0.log", Argv: []string{"sh", "-c", escapes}}}}); err != nil {
			t.Fatalf("node %d: %v", i, err)
		}
	}
	statuses, err := w.Probe(w.ctx(), c)
	if err != nil || statuses[0].State != cloud.Alive || statuses[1].State != cloud.Alive {
		t.Errorf("%+v %v", statuses, err)
	}
	again := w.mustUp("aa", "gpu1", "gpu2")
	if again.Nodes[1].HostKey != n.HostKey || again.CreatedAt != c.CreatedAt {
		t.Errorf("up again gives another cluster: %+v", again)
	}
	image := filepath.Join(b.Home, "dlwb/demo", containers.Prefix) // whose engine has none
	err = errors.Join(os.MkdirAll(image, 0o700), testprogram.Write(filepath.Join(image, containers.Gone), []byte("#!/bin/sh\n"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := w.down("aa")
	if err != nil || !receipt.Proven() || len(receipt.Resources) != 2 || strings.Contains(receipt.Resources[0].Proof, containers.Proof) {
		t.Fatalf("%+v %v", receipt, err)
	}
	want(t, receipt.Resources[1].Proof, "no process carries DLWB_RUN_DIR", "~/dlwb/demo is not there", containers.Proof, "~/.dlwb is not there")
	if after := tree(t, a.Home) + tree(t, b.Home); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if text := mustRead(t, filepath.Join(b.Home, ".ssh/authorized_keys")); text != "ssh-ed25519 AAAA me\n" {
		t.Errorf("authorized_keys is %q", text)
	}
	if out, _ := exec.Command("sh", "-c", "grep -lsF DLWB_RUN_DIR="+b.Home+" /proc/[0-9]*/environ").Output(); len(out) > 0 {
		t.Errorf("processes are left: %s", out)
	}
	if out, _ := exec.Command("pgrep", "-f", "^sleep 61237$").Output(); len(out) > 0 {
		t.Errorf("processes that had cleared their environment are left: %s", out)
	}
	if receipt, err = w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("the second time: %+v %v", receipt, err)
	}
}

func TestWhatWasThereBeforeStays(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	mine := filepath.Join(s.Home, ".dlwb", "of-somebody")
	if err := os.MkdirAll(filepath.Dir(mine), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, s.Home)
	work(t, w, w.mustUp("aa", "gpu1"))
	receipt, err := w.down("aa")
	if err != nil || !receipt.Proven() {
		t.Fatalf("%+v %v", receipt, err)
	}
	want(t, receipt.Resources[0].Proof, "only what others have there: .dlwb/of-somebody")
	if after := tree(t, s.Home); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestSecondClusterIsRefusedAndTakesNothing(t *testing.T) {
	w := newWorld(t)
	w.start("gpu1")
	free := w.start("gpu2")
	w.mustUp("aa", "gpu1")
	before := tree(t, free.Home)
	_, err := w.up("bb", "gpu1", "gpu2")
	if err == nil {
		t.Fatal("the host was taken twice")
	}
	want(t, err.Error(), "gpu1: cluster demo of "+owner()+" has it since 2023-11-1")
	if after := tree(t, free.Home); after != before {
		t.Errorf("the other host was kept:\n%s", after)
	}
	sp := spec("gpu1")
	sp.Name = "rival"
	want(t, lines(w.Check(w.ctx(), sp)), "NO gpu1: cluster demo of ", "| dlwb down demo gives it back")
	// The loser's end takes nothing from the winner.
	if receipt, err := w.down("bb"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	want(t, lines(w.Check(w.ctx(), sp)), "NO gpu1: cluster demo of ")
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	want(t, lines(w.Check(w.ctx(), sp)), "ok gpu1: reachable")
}

func TestOfManyAtOnceOneTakesTheHost(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	for range 2 {
		lives := []string{"aa", "bb", "cc", "dd", "ee", "ff"}
		took := make([]bool, len(lives))
		var all sync.WaitGroup
		for i, l := range lives {
			life := w.life(l)
			all.Go(func() {
				_, err := New(w.options).Up(w.ctx(), life, spec("gpu1"), nil)
				took[i] = err == nil
			})
		}
		all.Wait()
		winners := 0
		for i, l := range lives {
			if took[i] {
				winners++
			}
			if receipt, err := w.down(l); err != nil || !receipt.Proven() {
				t.Errorf("%+v %v", receipt, err)
			}
		}
		if left := tree(t, s.Home); winners != 1 || left != "" {
			t.Errorf("%d took the host, want 1; left:\n%s", winners, left)
		}
	}
}

func TestTheAgentThatTakesAHostStaysAndIsNotBroughtAgain(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	c := w.mustUp("aa", "gpu1")
	agents := func() []string {
		found, _ := filepath.Glob(filepath.Join(s.Home, ".dlwb/bin/agent-*"))
		return found
	}
	taken := agents()
	if len(taken) != 1 {
		t.Fatalf("agents: %q", taken)
	}
	was, err := os.Stat(taken[0])
	if err != nil {
		t.Fatal(err)
	}
	work(t, w, c)
	now, err := os.Stat(taken[0])
	if err != nil || len(agents()) != 1 || !os.SameFile(was, now) {
		t.Errorf("another was brought: %q, %v", agents(), err)
	}
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	if left := tree(t, s.Home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

func TestAnAgentThatWasCutShortIsNotAsked(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	w.mustUp("aa", "gpu1")
	agents, _ := filepath.Glob(filepath.Join(s.Home, ".dlwb/bin/agent-*"))
	if len(agents) != 1 {
		t.Fatalf("agents: %q", agents)
	}
	for _, size := range []int64{0, 1000, 2 << 20} {
		if err := os.Truncate(agents[0], size); err != nil {
			t.Fatal(err)
		}
		want(t, w.check("gpu1"), "ok gpu1: reachable in")
	}
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
	if left := tree(t, s.Home); left != "" {
		t.Errorf("left:\n%s", left)
	}
}

func TestHostThatIsAwayIsNotGone(t *testing.T) {
	w := newWorld(t)
	w.start("gpu1")
	s := w.start("gpu2")
	c := w.mustUp("aa", "gpu1", "gpu2")
	s.Stop()
	statuses, err := w.Probe(w.ctx(), c)
	if err != nil || statuses[0].State != cloud.Alive || statuses[1].State != cloud.Unknown || !strings.Contains(statuses[1].Why, "connection refused") {
		t.Errorf("%+v %v", statuses, err)
	}
	receipt, err := w.down("aa")
	if err == nil || receipt.Proven() || receipt.Resources[0].State != cloud.Gone || receipt.Resources[1].State != cloud.Unknown {
		t.Errorf("%+v %v", receipt, err)
	}
	s.Start()
	if receipt, err = w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("when it is back: %+v %v", receipt, err)
	}
	_, _ = w.up("aa", "gpu1", "gpu2")
	s.ChangeHostKey()
	statuses, _ = w.Probe(w.ctx(), c)
	if statuses[1].State != cloud.Unknown || !strings.Contains(statuses[1].Why, "not the known one") {
		t.Errorf("with another key: %+v", statuses[1])
	}
	if receipt, err = w.down("aa"); err == nil || receipt.Resources[1].State != cloud.Unknown {
		t.Errorf("with another key: %+v %v", receipt, err)
	}
}

func TestProcessThatDoesNotEndKeepsItsFilesAndIsTold(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	work(t, w, w.mustUp("aa", "gpu1"))
	// A stop that ends nothing stands for a process that nothing ends.
	if err := testprogram.Write(filepath.Join(s.Home, ".dlwb/bin/stop"), []byte("exit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stuck := exec.CommandContext(ctx, "sleep", "600")
	stuck.Env = []string{"DLWB_RUN_DIR=" + s.Home + "/.dlwb/runs/run-1"}
	if err := stuck.Start(); err != nil {
		t.Fatal(err)
	}
	receipt, err := w.down("aa")
	if err == nil || receipt.Proven() || receipt.ProcessesLeft != 1 || receipt.Resources[0].State != cloud.Alive {
		t.Errorf("%+v %v", receipt, err)
	}
	if _, err := os.Stat(filepath.Join(s.Home, "dlwb/demo/code/train.py")); err != nil {
		t.Error("its files were removed")
	}
	cancel()
	_ = stuck.Wait()
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
}

func TestLifeKeepsItsHosts(t *testing.T) {
	w := newWorld(t)
	w.start("gpu1")
	w.start("gpu2")
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("of a life that never began: %+v %v", receipt, err)
	}
	w.mustUp("aa", "gpu1")
	if _, err := w.up("aa", "gpu2"); err == nil || !strings.Contains(err.Error(), "dlwb down") && !strings.Contains(err.Error(), "it has the hosts [gpu1]") {
		t.Errorf("got %v", err)
	}
	// The names mean nothing any more: the machines are known all the same.
	w.write("config", "Host gpu1\n HostName nowhere.invalid\n")
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("%+v %v", receipt, err)
	}
}

// The name of a host is given to another machine while a cluster is up: what was put on
// the first one is there still, and neither up nor down takes the second one for it.
func TestANameThatLeadsToAnotherMachineNowIsNotFollowed(t *testing.T) {
	w := newWorld(t)
	first, second := w.start("gpu1"), sshdtest.Start(t)
	before := tree(t, first.Home) + tree(t, second.Home)
	w.mustUp("aa", "gpu1")
	w.write("config", "")
	w.host("gpu1", second)
	w.known(second)
	_, err := w.up("aa", "gpu1")
	var problem *Problem
	if !errors.As(err, &problem) || !strings.Contains(problem.Why, "where its name leads now, is nothing of cluster demo") || !strings.Contains(problem.Next, "dlwb down demo") {
		t.Errorf("up: %v", err)
	}
	first.Stop()
	if receipt, err := w.down("aa"); err == nil || receipt.Resources[0].State != cloud.Unknown || !strings.Contains(receipt.Resources[0].Proof, "the one that was taken may still run processes") {
		t.Errorf("down, when only the other one answers: %+v %v", receipt, err)
	}
	first.Start()
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("down: %+v %v", receipt, err)
	}
	if after := tree(t, first.Home) + tree(t, second.Home); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func TestAHostThatIsReachedByAnotherWayNowIsTheSame(t *testing.T) {
	w := newWorld(t)
	outer, a := w.start("outer"), sshdtest.Start(t)
	w.known(a)
	config := mustRead(t, w.path("config"))
	w.host("gpu1", a, "ProxyJump outer")
	b := w.start("gpu2")
	w.mustUp("aa", "gpu1", "gpu2")
	w.write("config", config)
	w.host("gpu1", a)
	w.host("gpu2", b)
	w.mustUp("aa", "gpu1", "gpu2")
	w.write("config", config)
	w.host("gpu1", a, "ProxyJump outer")
	w.host("gpu2", b)
	w.mustUp("aa", "gpu1", "gpu2")
	w.write("config", config)
	w.host("gpu1", a)
	w.host("gpu2", b)
	outer.Stop()
	b.Stop()
	if receipt, err := w.down("aa"); err == nil || receipt.Resources[0].State != cloud.Gone || receipt.Resources[1].State != cloud.Unknown {
		t.Errorf("when gpu2 is away: %+v %v", receipt, err)
	}
	b.Start()
	if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
		t.Errorf("when it is back: %+v %v", receipt, err)
	}
}

func TestUpThatIsInterruptedIsTakenDown(t *testing.T) {
	w := newWorld(t)
	s := w.start("gpu1")
	for after := time.Duration(0); after < 300*time.Millisecond; after += 30 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		_, _ = w.Up(ctx, w.life("aa"), spec("gpu1"), nil)
		cancel()
		if receipt, err := w.down("aa"); err != nil || !receipt.Proven() {
			t.Errorf("after %v: %+v %v", after, receipt, err)
		}
	}
	if left := tree(t, s.Home); strings.Contains(left, "dlwb") {
		t.Errorf("left:\n%s", left)
	}
}
