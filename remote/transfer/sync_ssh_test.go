//go:build linux

package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dlwb/dlwb/internal/runbox"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
)

// twoNodes are nodes on two real sshd.
func twoNodes(t testing.TB, opts ...sshdtest.Option) (nodes []*remote.Node, servers []*sshdtest.Server) {
	t.Helper()
	for i := range 2 {
		s := sshdtest.Start(t, opts...)
		target := targetOf(s)
		target.Name = fmt.Sprintf("node%d", i)
		n := remote.Open(target)
		t.Cleanup(func() { _ = n.Close() })
		nodes, servers = append(nodes, n), append(servers, s)
	}
	return nodes, servers
}

func wantCode(t testing.TB, s *sshdtest.Server, dir string) {
	t.Helper()
	if got, want := dirText(t, filepath.Join(s.Home, codeDir)), dirText(t, dir); got != want {
		t.Errorf("the node has\n%s\nwant\n%s", got, want)
	}
}

func TestSyncAndPullOverOpenSSH(t *testing.T) {
	nodes, servers := twoNodes(t)
	dir := t.TempDir()
	writeFiles(t, dir, oddProject)
	ctx := testContext(t)
	var told []string
	res, err := Sync(ctx, nodes, scanTest(t, dir), "~/"+codeDir, func(node int, text string) { told = append(told, fmt.Sprint(node, ": ", text)) })
	check(t, err)
	for _, s := range servers {
		wantCode(t, s, dir)
	}
	if text := res.String(); !strings.HasPrefix(text, "17 files, 320 kB to 2 nodes in ") {
		t.Errorf("the result reads %q", text)
	}
	if all := strings.Join(told, "\n"); !strings.Contains(all, "1: sending 17 files, 320 kB") {
		t.Errorf("progress was\n%s", all)
	}
	res, err = Sync(ctx, nodes, scanTest(t, dir), codeDir, nil)
	check(t, err)
	if !strings.HasPrefix(res.String(), "nothing changed on 2 nodes in ") {
		t.Errorf("without changes: %q", res)
	}
	// One node falls behind: only it is served.
	check(t, os.RemoveAll(filepath.Join(servers[1].Home, codeDir, "d")))
	res, err = Sync(ctx, nodes, scanTest(t, dir), codeDir, nil)
	check(t, err)
	if res.Changed != 1 || res.Files != 2 {
		t.Errorf("one node lacks d: %q, want two files to one node", res)
	}
	dest := t.TempDir()
	pulled, err := Pull(ctx, nodes[1], codeDir, []string{"."}, dest, PullLimits{})
	check(t, err)
	if dirText(t, dest) != dirText(t, filepath.Join(servers[1].Home, codeDir)) {
		t.Errorf("pulled %v, skipped %q:\n%s", pulled, pulled.Skipped, dirText(t, dest))
	}
}

func TestSyncGoesOnAfterTheConnectionDied(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a": noise(1, 3_000_000), "b": "1", "c": "1"})
	cut := &dyingNode{Node: n, after: 1 << 20, die: func() { s.KillConnections() }}
	_, err := syncNodes(testContext(t), []syncPeer{cut}, scanTest(t, dir), codeDir, nil)
	if err == nil || !cut.died.Load() {
		t.Fatalf("the connection was killed: %v, and the error is %v", cut.died.Load(), err)
	}
	if lost := new(remote.LostError); !errors.As(err, &lost) {
		t.Errorf("the error is no lost connection: %v", err)
	}
	if exists(filepath.Join(s.Home, codeDir, "a")) {
		t.Error("a stream that broke off put a file in place")
	}
	res, err := Sync(testContext(t), []*remote.Node{n}, scanTest(t, dir), codeDir, nil)
	check(t, err)
	wantCode(t, s, dir)
	if res.Files != 3 || len(res.MadeWay) != 0 {
		t.Errorf("the next sync says %q, %q", res, res.MadeWay)
	}
	// The receiver that was cut off cleans up by itself.
	runbox.Within(t, runbox.Patience, "nothing left of the sync that was cut off", func() bool {
		left, _ := filepath.Glob(filepath.Join(s.Home, codeDir, ".dlwb*"))
		return len(left) == 0
	})
}

// dyingNode does something once it has been sent so many bytes.
type dyingNode struct {
	*remote.Node
	after int64
	die   func()
	died  atomic.Bool
}

func (n *dyingNode) talk(ctx context.Context, service string, request any) (talking, func(error) error, error) {
	st, wrap, err := n.Call(ctx, service, request)
	return &dyingTalk{talking: st, node: n}, wrap, err
}

type dyingTalk struct {
	talking
	node *dyingNode
	sent int64
}

func (d *dyingTalk) SendEncoded(p []byte) error {
	if d.sent += int64(len(p)); d.sent > d.node.after && d.node.died.CompareAndSwap(false, true) {
		d.node.die()
	}
	return d.talking.SendEncoded(p)
}

// smallDisk mounts a tmpfs of so many KiB.
func smallDisk(t *testing.T, kib int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the small disk that this test fills")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dk", kib), "dlwb-test", dir).CombinedOutput(); err != nil {
		t.Skipf("this machine lets nobody mount a small disk to fill: %v: %s", err, out)
	}
	t.Cleanup(func() { // an agent may be on its way out
		runbox.Within(t, runbox.Patience, "the disk's end", func() bool { return exec.Command("umount", dir).Run() == nil })
	})
	return dir
}

func TestAFullDiskOnTheNodeIsOneClearError(t *testing.T) {
	disk := smallDisk(t, 300)
	n := newIntakeNode(t)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "old", "b": "old"})
	code := filepath.Join(disk, "code")
	_, err := syncNodes(t.Context(), []syncPeer{n}, scanTest(t, dir), code, nil)
	check(t, err)
	before := dirText(t, code)
	writeFiles(t, dir, map[string]string{"a": "new", "big": noise(1, 500_000)})
	_, err = syncNodes(t.Context(), []syncPeer{n}, scanTest(t, dir), code, nil)
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, part := range []string{"node0", code, "no space left", "free some space"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error %q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	if got := dirText(t, code); got != before {
		t.Errorf("the node has\n%s\nwant\n%s", got, before)
	}
	writeFiles(t, dir, map[string]string{"big": "small"})
	_, err = syncNodes(t.Context(), []syncPeer{n}, scanTest(t, dir), code, nil)
	check(t, err)
	if got, want := dirText(t, code), dirText(t, dir); got != want {
		t.Errorf("after that the node has\n%s\nwant\n%s", got, want)
	}
}

func TestADiskThatCantBeWrittenIsOneClearError(t *testing.T) {
	disk := smallDisk(t, 300)
	check(t, exec.Command("mount", "-o", "remount,ro", disk).Run())
	n := newIntakeNode(t)
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "x"})
	_, err := syncNodes(t.Context(), []syncPeer{n}, scanTest(t, dir), filepath.Join(disk, "code"), nil)
	want := "sync to node0:" + disk + "/code: mkdir " + disk + "/code: read-only file system; choose a directory on a disk that can be written"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func BenchmarkSyncOf2000SmallFiles(b *testing.B) {
	s := sshdtest.Start(b)
	n := openTest(b, s)
	dir := b.TempDir()
	for i := range 2000 {
		writeFiles(b, dir, map[string]string{fmt.Sprintf("d%d/f%d.py", i%50, i): strings.Repeat(fmt.Sprintln("line", i), 100)})
	}
	check(b, n.Connect(b.Context()))
	run := func(b *testing.B) SyncResult {
		tree, err := Scan(b.Context(), dir, Rules{})
		check(b, err)
		tree.HashCache = filepath.Join(s.Home, "cache")
		res, err := Sync(b.Context(), []*remote.Node{n}, tree, codeDir, nil)
		check(b, err)
		return res
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			check(b, os.RemoveAll(filepath.Join(s.Home, "dlwb")))
			check(b, os.RemoveAll(filepath.Join(s.Home, ".dlwb")))
			b.StartTimer()
			if res := run(b); res.Files != 2000 {
				b.Fatal(res)
			}
		}
	})
	b.Run("one changed", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			writeFiles(b, dir, map[string]string{"d0/f0.py": fmt.Sprint(i)})
			if res := run(b); res.Files != 1 {
				b.Fatal(res)
			}
		}
	})
	b.Run("nothing changed", func(b *testing.B) {
		for b.Loop() {
			if res := run(b); res.Changed != 0 {
				b.Fatal(res)
			}
		}
	})
	b.Run("pull", func(b *testing.B) {
		for b.Loop() {
			res, err := Pull(b.Context(), n, codeDir, []string{"."}, b.TempDir(), PullLimits{})
			if err != nil || res.Files != 2000 {
				b.Fatal(res, err)
			}
		}
	})
}
