//go:build linux

package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
	"github.com/dlwb/dlwb/remote"
)

// benchVar asks for the measurements on the testbed, which take minutes.
const benchVar = "DLWB_BENCH_SYNC"

// bedProject is 5,000 files of 10 KB, of which a quarter does not compress.
func bedProject(t *testing.T, dir string) {
	t.Helper()
	files := map[string]string{}
	for i := range 5000 {
		text := strings.Repeat(" ", 0)
		for line := 0; len(text) < 7500; line++ {
			text += fmt.Sprintf("    layer_%d = self.block_%d(hidden_%d, scale=%d) # %s\n", line, i, (i*line)%97, i*line%1013, noiseWord(i*1000+line))
		}
		files[fmt.Sprintf("pkg%02d/mod%d/file%d.py", i%50, i%7, i)] = text + noise(uint64(i), 2500)
	}
	writeFiles(t, dir, files)
}

func noiseWord(i int) string { return fmt.Sprintf("%x", uint32(i)*2654435761) }

func bedNodes(t *testing.T, b *testbed.Bed, wan bool) []*remote.Node {
	t.Helper()
	var nodes []*remote.Node
	for i := range b.N {
		key, err := b.HostKey(i)
		check(t, err)
		target := remote.Target{Name: fmt.Sprintf("node%d", i), Addr: testbed.Addr(i), User: testbed.User, HostKey: key, KeyFile: b.KeyFile()}
		if wan {
			target.Addr = testbed.WANAddr(i)
		}
		n := remote.Open(target)
		t.Cleanup(func() { _ = n.Close() })
		nodes = append(nodes, n)
	}
	return nodes
}

func bedPair(t *testing.T, b *testbed.Bed, nodes []*remote.Node) {
	t.Helper()
	var peers []remote.Peer
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			if err := n.Install(t.Context()); err != nil {
				t.Error(err)
			}
		})
		peers = append(peers, remote.Peer{Name: n.Name(), Host: testbed.Host(i), Port: 22, User: testbed.User, HostKey: n.Target().HostKey})
	}
	all.Wait()
	check(t, remote.Pair(t.Context(), nodes, nil, peers, filepath.Join(t.TempDir(), "peer")))
}

// bedRsync copies by rsync to all hosts at once, over new connections.
func bedRsync(t *testing.T, b *testbed.Bed, dir, to, suffix, options string) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range b.N {
		all.Go(func() {
			c := exec.Command("rsync", options, "--delete", "-e", "ssh -F "+b.SSHConfig(), dir+"/", fmt.Sprintf("%s%s:%s/", testbed.Name(i), suffix, to))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("rsync: %v: %s", err, out)
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

// bedSync is one sync over new connections, as rsync has them.
func bedSync(t *testing.T, b *testbed.Bed, dir string, wan bool) (time.Duration, SyncResult) {
	t.Helper()
	nodes := bedNodes(t, b, wan)
	began := time.Now()
	tree, err := Scan(t.Context(), dir, Rules{})
	check(t, err)
	tree.HashCache = dir + ".cache"
	res, err := Sync(t.Context(), nodes, tree, codeDir, nil)
	check(t, err)
	took := time.Since(began)
	for _, n := range nodes {
		_ = n.Close()
	}
	return took, res
}

func TestBenchSyncNextToParallelRsync(t *testing.T) {
	if os.Getenv(benchVar) == "" {
		t.Skip("NOT RUN: the measurement on the testbed takes a minute; set " + benchVar)
	}
	dir := filepath.Join(t.TempDir(), "project")
	bedProject(t, dir)
	var zip bytes.Buffer
	c := exec.Command("sh", "-c", "tar -cf - . | gzip -6")
	c.Dir, c.Stdout = dir, &zip
	check(t, c.Run())
	b, err := testbed.Up(8, testbed.Options{})
	if errors.Is(err, testbed.ErrMissing) {
		t.Skip("NOT RUN: ", err)
	}
	check(t, err)
	defer func() { _ = b.Down() }()
	check(t, b.WAN(20*time.Millisecond, "100mbit"))
	bedPair(t, b, bedNodes(t, b, false))
	for _, step := range []struct {
		name    string
		target  float64
		prepare func(k int)
	}{{"first", 3, func(int) {}}, {"unchanged", 2, func(int) {}}, {"ten files", 2, func(k int) { bedChange(t, dir, k) }}} {
		step.prepare(1)
		ours, res := bedSync(t, b, dir, true)
		theirs := bedRsync(t, b, dir, "rsynced", "-wan", "-az")
		t.Logf("BENCH sync-%s %.2f x target %.1f (dlwb %.2f s, parallel rsync -az %.2f s; %d bytes sent, %.2f of tar|gzip -6; %v)",
			step.name, theirs.Seconds()/ours.Seconds(), step.target, ours.Seconds(), theirs.Seconds(), res.Wire, float64(res.Wire)/float64(zip.Len()), res)
	}
	if out, err := b.Run(7, "diff -r /home/ubuntu/rsynced /home/ubuntu/"+codeDir); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// bedTimes runs two ways in turn and gives the medians of their times and of
// their ratios.
func bedTimes(rounds int, ours, theirs func() time.Duration) (a, b, ratio float64) {
	var as, bs, ratios []float64
	for range rounds {
		x, y := ours().Seconds(), theirs().Seconds()
		as, bs, ratios = append(as, x), append(bs, y), append(ratios, x/y)
	}
	for _, list := range [][]float64{as, bs, ratios} {
		slices.Sort(list)
	}
	return as[rounds/2], bs[rounds/2], ratios[rounds/2]
}

func TestBenchSyncOnALAN(t *testing.T) {
	if os.Getenv(benchVar) == "" {
		t.Skip("NOT RUN: the measurement on the testbed takes minutes; set " + benchVar)
	}
	dir, large := filepath.Join(t.TempDir(), "project"), filepath.Join(t.TempDir(), "large")
	bedProject(t, dir)
	b, err := testbed.Up(4, testbed.Options{})
	if errors.Is(err, testbed.ErrMissing) {
		t.Skip("NOT RUN: ", err)
	}
	check(t, err)
	defer func() { _ = b.Down() }()
	bedPair(t, b, bedNodes(t, b, false))
	clear := func() {
		for i := range b.N {
			_, err := b.Run(i, "rm -rf /home/ubuntu/rsynced /home/ubuntu/large /home/ubuntu/dlwb /home/ubuntu/.dlwb/sync")
			check(t, err)
		}
		_ = os.Remove(dir + ".cache-nodes")
		_ = os.Remove(dir + ".cache")
	}
	sync := func() time.Duration { took, _ := bedSync(t, b, dir, false); return took }
	rsync := func(options string) func() time.Duration {
		return func() time.Duration { return bedRsync(t, b, dir, "rsynced", "", options) }
	}
	first := func(do func() time.Duration) func() time.Duration {
		return func() time.Duration { clear(); return do() }
	}
	changes := 0
	changed := func(do func() time.Duration) func() time.Duration {
		return func() time.Duration { changes++; bedChange(t, dir, changes); return do() }
	}
	for _, options := range []string{"-a", "-az"} {
		x, y, r := bedTimes(5, first(sync), first(rsync(options)))
		t.Logf("BENCH lan-first %.2f x rsync %s (%.2f s, %.2f s)", r, options, x, y)
	}
	sync()
	rsync("-a")()
	x, y, r := bedTimes(7, sync, rsync("-a"))
	t.Logf("BENCH lan-unchanged %.2f x rsync -a (%.2f s, %.2f s)", r, x, y)
	x, y, r = bedTimes(7, changed(sync), changed(rsync("-a")))
	t.Logf("BENCH lan-ten-changed %.2f x rsync -a (%.2f s, %.2f s)", r, x, y)
	writeFiles(t, large, map[string]string{"weights": noise(1, 500_000_000)})
	one := *b
	one.N = 1
	send := first(func() time.Duration { took, _ := bedSync(t, &one, large, false); return took })
	scp := first(func() time.Duration {
		began := time.Now()
		out, err := exec.Command("scp", "-q", "-F", b.SSHConfig(), filepath.Join(large, "weights"), testbed.Name(0)+":large").CombinedOutput()
		if err != nil {
			t.Errorf("scp: %v: %s", err, out)
		}
		return time.Since(began)
	})
	x, y, r = bedTimes(5, send, scp)
	t.Logf("BENCH lan-500MB %.2f x scp (%.2f s, %.2f s)", r, x, y)
}

// bedChange adds a line to ten files.
func bedChange(t *testing.T, dir string, k int) {
	t.Helper()
	for i := range 10 {
		name := fmt.Sprintf("pkg%02d/mod%d/file%d.py", (i*37)%50, (i*37)%7, i*37)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_WRONLY, 0)
		check(t, err)
		_, err = fmt.Fprintln(f, "# changed", k)
		check(t, errors.Join(err, f.Close()))
	}
}
