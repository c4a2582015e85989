//go:build unix

package hosts

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
)

// holdingNodes is the spec of a cluster with connections that are held to its nodes,
// and how many lines were run over them.
func holdingNodes(t *testing.T, c cloud.Cluster, hosts ...string) (cloud.Spec, *atomic.Int64) {
	t.Helper()
	var held []cloud.Held
	count := &atomic.Int64{}
	for _, n := range c.Nodes {
		node := remote.Open(targetOf(n))
		t.Cleanup(func() { _ = node.Close() })
		if err := node.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		held = append(held, cloud.Held{Node: n, Run: func(ctx context.Context, line string, input []byte) (cloud.Said, error) {
			count.Add(1)
			r, err := node.Exec(ctx, remote.Cmd{Line: line, Stdin: strings.NewReader(string(input))})
			return cloud.Said{Code: r.ExitCode, Out: r.Stdout, Err: r.Stderr}, err
		}})
	}
	s := spec(hosts...)
	s.Held = func(context.Context) []cloud.Held { return held }
	return s, count
}

// The key with which one logs in is gone: who logs in anew fails.
func withoutLogins(t *testing.T, w *world, s *sshdtest.Server) {
	t.Helper()
	if err := os.Rename(s.KeyFile, s.KeyFile+".away"); err != nil {
		t.Fatal(err)
	}
	if text := w.check("gpu1"); !strings.HasPrefix(text, "NO") {
		t.Fatalf("a login without its key succeeds: %s", text)
	}
}

func TestAHostToWhichAConnectionIsHeldIsAskedOverIt(t *testing.T) {
	w := newWorld(t)
	jump, a := w.start("outer"), sshdtest.Start(t)
	_ = jump
	w.host("gpu1", a, "ProxyJump outer")
	w.known(a)
	c := w.mustUp("1", "gpu1")
	s, count := holdingNodes(t, c, "gpu1")
	withoutLogins(t, w, a)
	if text := lines(w.Check(w.ctx(), s)); strings.Contains(text, "NO ") || !strings.Contains(text, "ok gpu1: ") {
		t.Errorf("it was not asked over the connection: %s", text)
	}
	again, err := w.Up(w.ctx(), w.life("1"), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again.Nodes[0].HostKey != c.Nodes[0].HostKey || len(again.Nodes[0].Jumps) != 1 || again.Nodes[0].Jumps[0].HostKey != c.Nodes[0].Jumps[0].HostKey {
		t.Errorf("the node is another one:\n%+v\n%+v", again.Nodes[0], c.Nodes[0])
	}
	if count.Load() < 2 {
		t.Errorf("%d lines were run over the connection", count.Load())
	}
	other := cloud.Life{Name: "other", ID: "2", Began: w.life("1").Began, Dir: w.life("2").Dir}
	if _, err := w.Up(w.ctx(), other, s, nil); err == nil || !strings.Contains(err.Error(), "cluster demo") {
		t.Errorf("another cluster takes it too: %v", err)
	}
}

// What stands in place of a shell says why, whichever way it was asked.
func TestWhatAHostSaysInsteadOfAnAnswerIsToldOverAHeldConnectionToo(t *testing.T) {
	c := &contact{held: &cloud.Held{Run: func(context.Context, string, []byte) (cloud.Said, error) {
		return cloud.Said{Code: 1, Out: []byte("this account is closed\n")}, nil
	}}}
	_, err := c.commandHeld(t.Context(), "true", nil).answer(agentbin.Words{})
	if err == nil || !strings.Contains(err.Error(), "this account is closed") {
		t.Errorf("%v", err)
	}
}

func TestAConnectionThatANewLoginWouldNotLeadToIsNotUsed(t *testing.T) {
	for name, change := range map[string]func(w *world, s *sshdtest.Server, c *cloud.Cluster){
		"its host key is not known any more": func(w *world, _ *sshdtest.Server, _ *cloud.Cluster) { w.write("known_hosts", "") },
		"its host key is revoked": func(w *world, s *sshdtest.Server, _ *cloud.Cluster) {
			w.add("known_hosts", "@revoked * "+s.HostKey+"\n")
		},
		"another user": func(_ *world, _ *sshdtest.Server, c *cloud.Cluster) { c.Nodes[0].User = "somebody" },
		"another port": func(_ *world, _ *sshdtest.Server, c *cloud.Cluster) { c.Nodes[0].Addr = "127.0.0.1:1" },
		"other keys":   func(_ *world, _ *sshdtest.Server, c *cloud.Cluster) { c.Nodes[0].Keys.Files = nil },
		"behind a jump host": func(_ *world, _ *sshdtest.Server, c *cloud.Cluster) {
			c.Nodes[0].Jumps = []cloud.Jump{{Name: "outer", Addr: "127.0.0.1:1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.start("gpu1")
			c := w.mustUp("1", "gpu1")
			s, count := holdingNodes(t, c, "gpu1")
			withoutLogins(t, w, a)
			held := s.Held(t.Context())
			changed := cloud.Cluster{Nodes: []cloud.Node{held[0].Node}}
			change(w, a, &changed)
			held[0].Node = changed.Nodes[0]
			if text := lines(w.Check(w.ctx(), s)); !strings.HasPrefix(text, "NO") || count.Load() > 0 {
				t.Errorf("%d lines were run over it: %s", count.Load(), text)
			}
		})
	}
}
