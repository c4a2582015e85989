//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/testprogram"
)

func TestUpIsIdempotentAndDownLeavesNothing(t *testing.T) {
	t.Parallel()
	p := provider(t)
	if r, err := p.Down(t.Context(), cloud.Life{Name: "c"}, nil); err != nil || !r.Proven() {
		t.Errorf("down of a cluster that never was: %v %+v", err, r)
	}
	if _, err := p.Load("c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load of a cluster that never was: %v", err)
	}
	var mu sync.Mutex
	said := map[int]string{}
	began := time.Now()
	c, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: 3}, func(i int, text string) {
		mu.Lock()
		defer mu.Unlock()
		said[i] = text
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("3 nodes were up after %s", time.Since(began))
	if len(said) != 3 || !strings.HasPrefix(said[2], "answers on 127.0.0.1:") {
		t.Errorf("progress: %v", said)
	}
	for i, n := range c.Nodes {
		if n.Name != "node"+strconv.Itoa(i) || n.PeerHost != "127.0.0.1" || n.Addr != "127.0.0.1:"+strconv.Itoa(n.PeerPort) || n.HostKey == "" || n.Interface == "" {
			t.Errorf("node %d: %+v", i, n)
		}
	}
	want(t, p, c, cloud.Alive, cloud.Alive, cloud.Alive)
	first := pidOf(t, p, 1)
	again := up(t, p, 3, 0)
	if pidOf(t, p, 1) != first || !reflect.DeepEqual(again.Nodes, c.Nodes) || !again.CreatedAt.Equal(c.CreatedAt) {
		t.Errorf("a second up changed the cluster:\n%+v\n%+v", c, again)
	}
	if all, err := p.List(); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0].Nodes, c.Nodes) {
		t.Errorf("list: %v %+v", err, all)
	}
	if _, err := p.Up(t.Context(), cloud.Life{}, cloud.Spec{Name: "c", Count: 2}, nil); err == nil || !strings.Contains(err.Error(), "dlwb down c") {
		t.Errorf("up with another count: %v", err)
	}
	temp := sh(t, login(t, c, 0), `touch "$TMPDIR/left"; echo $TMPDIR`)
	r := down(t, p)
	if _, err := os.Lstat(temp); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the temporary directory is still there: %v", err)
	}
	if len(r.Resources) != 3*3+1 || r.Lived <= 0 {
		t.Errorf("receipt: %+v", r)
	}
	for _, res := range r.Resources {
		if res.Proof == "" || res.ID == "" || res.Lived <= 0 {
			t.Errorf("a resource without proof: %+v", res)
		}
	}
	want(t, p, c, cloud.Gone, cloud.Gone, cloud.Gone)
}

// want compares the states of all nodes.
func want(t *testing.T, p *Provider, c cloud.Cluster, states ...cloud.State) {
	t.Helper()
	probed, err := p.Probe(t.Context(), c)
	var got []cloud.State
	for _, s := range probed {
		got = append(got, s.State)
	}
	if err != nil || !slices.Equal(got, states) {
		t.Errorf("the states are %v (%v), want %v", got, err, states)
	}
}

func TestTwoUpsAtOnceMakeOneCluster(t *testing.T) {
	t.Parallel()
	p := provider(t)
	var clusters [3]cloud.Cluster
	var all sync.WaitGroup
	for i := range clusters {
		all.Go(func() { clusters[i] = up(t, p, 2, 0) })
	}
	all.Wait()
	for _, c := range clusters[1:] {
		if !reflect.DeepEqual(c.Nodes, clusters[0].Nodes) {
			t.Errorf("two ups made two clusters:\n%+v\n%+v", clusters[0], c)
		}
	}
}

func TestAClusterOutlivesTheKillOfItsStarter(t *testing.T) {
	t.Parallel()
	p := provider(t)
	starter := exec.Command(p.exe, starterCommand, p.dir, "c", "2")
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 3)
	if _, err := out.Read(said); err != nil || string(said) != "up\n" {
		t.Fatalf("%q %v", said, err)
	}
	before, err := p.Load("c")
	if err != nil {
		t.Fatal(err)
	}
	client := login(t, before, 0)
	sh(t, client, "(while :; do date >>beat; sleep 0.02; done) >/dev/null 2>&1 </dev/null &")
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	c, err := p.Load("c")
	if err != nil {
		t.Fatal(err)
	}
	want(t, p, c, cloud.Alive, cloud.Alive)
	beat := filepath.Join(p.dir, "c", "node0", "home", "beat")
	size := func() int64 {
		fi, err := os.Stat(beat)
		if err != nil {
			return 0
		}
		return fi.Size()
	}
	was := size()
	eventually(t, "what ran goes on", func() bool { return size() > was+100 })
	if got := sh(t, login(t, c, 1), "echo here"); got != "here" {
		t.Error(got)
	}
	down(t, p)
}

// escapees starts, on node i, processes that try to get away from it, and
// returns their pids.
func escapees(t *testing.T, p *Provider, c cloud.Cluster, i int) map[string]int {
	t.Helper()
	lines := map[string]string{
		"plain":     `sh -c 'echo $$ >plain.pid; sleep 1000' >/dev/null 2>&1 </dev/null &`,
		"deaf":      `setsid nohup sh -c 'trap "" TERM HUP INT; echo $$ >deaf.pid; while :; do sleep 0.1; done' >/dev/null 2>&1 </dev/null &`,
		"forked":    `(setsid sh -c '(sh -c "echo \$\$ >forked.pid; exec sleep 1000" &) ; exit' >/dev/null 2>&1 </dev/null &)`,
		"stopped":   `setsid sh -c 'echo $$ >stopped.pid; kill -STOP $$; sleep 1000' >/dev/null 2>&1 </dev/null &`,
		"elsewhere": `cd / && setsid sh -c 'echo $$ >"$HOME/elsewhere.pid"; exec sleep 1000' >/dev/null 2>&1 </dev/null &`,
	}
	if runtime.GOOS == "linux" {
		lines["clean"] = `echo 'trap "" TERM HUP; cd /; echo $$ >$1; while :; do sleep 0.1; done' >clean.sh
			(setsid env -i /bin/sh -c 'sh "$0" "$1" &' "$PWD/clean.sh" "$PWD/clean.pid" >/dev/null 2>&1 </dev/null &)`
	}
	client := login(t, c, i)
	pids := map[string]int{}
	for name, line := range lines {
		sh(t, client, line)
		pids[name] = readPID(t, filepath.Join(nodeDir(filepath.Join(p.dir, "c"), i), homeDir, name+".pid"))
	}
	return pids
}

func TestDownEndsEverythingThatTriedToGetAway(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 2, 0)
	pids := escapees(t, p, c, 1)
	node := pidOf(t, p, 1)
	down(t, p)
	pids["node"] = node
	for name, pid := range pids {
		if running(pid) {
			t.Errorf("%s (%d) is still there", name, pid)
		}
	}
}

func TestDownEndsEverythingAlsoWhenTheNodeWasKilled(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 2, 0)
	pids := escapees(t, p, c, 0)
	kill9(t, pidOf(t, p, 0))
	for name, pid := range pids {
		if !running(pid) {
			t.Errorf("%s (%d) died with the node: this test proves nothing", name, pid)
		}
		if name == "clean" && (variable(pid, cookieName) != "" || variable(pid, "PATH") != "") {
			t.Errorf("%s (%d) still has its environment", name, pid)
		}
	}
	want(t, p, c, cloud.Gone, cloud.Alive)
	down(t, p)
	for name, pid := range pids {
		if running(pid) {
			t.Errorf("%s (%d) is still there", name, pid)
		}
	}
}

func TestDownRemovesTheGroupsOfRunsThatCouldNot(t *testing.T) {
	group := ""
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"} {
		if path := filepath.Join(top, "dlwb-test-"+strconv.Itoa(os.Getpid())); group == "" && os.Mkdir(path, 0o755) == nil {
			group = path
		}
	}
	if group == "" {
		t.Skip("NOT RUN: no cgroup can be made here")
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	p := provider(t)
	up(t, p, 1, 0)
	dir, err := p.clusterDir("c")
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(nodeDir(dir, 0), homeDir, ".dlwb", "runs", "r1")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "cgroup"), []byte(group+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	down(t, p)
	if _, err := os.Stat(group); err == nil {
		t.Errorf("%s is left", group)
	}
}

// As long as a container is left, or nobody knows, the receipt says it and the files that
// say what to look for stay.
func TestDownRemovesTheContainersOfEachNode(t *testing.T) {
	t.Parallel()
	p := provider(t)
	up(t, p, 2, 0)
	dir, err := p.clusterDir("c")
	if err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(nodeDir(dir, 1), homeDir, "dlwb", "c", containers.Prefix)
	if err := os.MkdirAll(image, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text, proof string
		state       cloud.State
	}{
		{"echo 'no daemon' >&2; exit 1", "not known: no daemon", cloud.Unknown},
		{"echo 12ab Created", "could not be removed: 12ab Created", cloud.Alive},
	} {
		if err := testprogram.Write(filepath.Join(image, containers.Gone), []byte("#!/bin/sh\n"+c.text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		r, err := p.Down(t.Context(), cloud.Life{Name: "c"}, nil)
		last := r.Resources[len(r.Resources)-1]
		if err == nil || !strings.Contains(err.Error(), c.proof) || r.Proven() || last.Kind != "containers" || last.Node != "node1" || last.State != c.state {
			t.Errorf("%v\n%+v; want %s", err, r, c.proof)
		}
		if _, err := os.Stat(image); err != nil {
			t.Fatal(err)
		}
	}
	home, left := filepath.Join(nodeDir(dir, 1), homeDir), filepath.Join(t.TempDir(), "pid")
	// What an engine leaves running for the node ends too.
	text := fmt.Sprintf("#!/bin/sh\n[ \"$HOME\" = '%s' ] || exit 1\nsetsid sleep 1000 >/dev/null 2>&1 &\necho $! >'%s'\n", home, left)
	if err := testprogram.Write(filepath.Join(image, containers.Gone), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	boxes := slices.DeleteFunc(down(t, p).Resources, func(r cloud.Resource) bool { return r.Kind != "containers" })
	if len(boxes) != 1 || boxes[0].Node != "node1" || boxes[0].State != cloud.Gone || boxes[0].Proof == "" {
		t.Errorf("%+v", boxes)
	}
	if pid := readPID(t, left); running(pid) {
		t.Errorf("%d is left", pid)
	}
}

func TestANodeThatIsStoppedIsUnknownAndStillTakenDown(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	pid := pidOf(t, p, 0)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a node that does not answer is unknown", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		states, err := p.Probe(ctx, c)
		if err != nil || states[0].State == cloud.Gone {
			t.Errorf("a stopped node: %v %v", states, err)
		}
		return states[0].State == cloud.Unknown
	})
	down(t, p)
	if running(pid) {
		t.Error("the stopped node is still there")
	}
}

func TestAKilledNodeComesBackAtItsAddressWithWhatItHad(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	sh(t, login(t, c, 0), "echo kept >file")
	kill9(t, pidOf(t, p, 0))
	want(t, p, c, cloud.Gone)
	again := up(t, p, 1, 0)
	if !reflect.DeepEqual(again.Nodes[0], c.Nodes[0]) {
		t.Errorf("it came back as %+v, was %+v", again.Nodes[0], c.Nodes[0])
	}
	if got := sh(t, login(t, again, 0), "cat file"); got != "kept" {
		t.Error(got)
	}
}

func TestAReusedPidIsNotTakenForTheNode(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	node := nodeDir(filepath.Join(p.dir, "c"), 0)
	s, err := readServing(node)
	if err != nil {
		t.Fatal(err)
	}
	kill9(t, s.PID)
	// A pid is used again when all others were, not within the tick of the clock in which
	// the kernel has its first owner start.
	var bystander *exec.Cmd
	eventually(t, "a process that starts in another tick", func() bool {
		bystander = exec.Command("sleep", "1000")
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		if living(bystander.Process.Pid, s.Start) {
			_ = bystander.Process.Kill()
			_ = bystander.Wait()
			return false
		}
		return true
	})
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	s.PID = bystander.Process.Pid
	if err := writeJSON(filepath.Join(node, servingFile), s); err != nil {
		t.Fatal(err)
	}
	want(t, p, c, cloud.Gone)
	down(t, p)
	if !running(bystander.Process.Pid) {
		t.Error("down killed a process that had only the pid of the node")
	}
}

func TestANodeWhoseDirectoryWasDeletedEndsWithAllItRuns(t *testing.T) {
	t.Parallel()
	p := provider(t)
	c := up(t, p, 1, 0)
	child := sh(t, login(t, c, 0), "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo $!")
	pid, _ := strconv.Atoi(child)
	node, temp := pidOf(t, p, 0), sh(t, login(t, c, 0), "echo $TMPDIR")
	defer os.RemoveAll(temp)
	if err := os.RemoveAll(filepath.Join(p.dir, "c")); err != nil {
		t.Fatal(err)
	}
	want(t, p, c, cloud.Alive)
	eventually(t, "the node has ended", func() bool { return !running(node) && !running(pid) })
	want(t, p, c, cloud.Gone)
}

func TestANodeHoldsNothingOpenOfItsStarter(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("descriptors that leak into dlwb are closed on Linux only")
	}
	p := provider(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// As a make job server does, this leaks a descriptor into dlwb.
	starter := exec.Command("sh", "-c", `exec "$@" 7>&3`, "sh", p.exe, starterCommand, p.dir, "c", "1")
	starter.ExtraFiles = []*os.File{w}
	startAndKill(t, starter)
	w.Close()
	_ = r.SetReadDeadline(time.Now().Add(60 * time.Second))
	if _, err := r.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the node keeps a pipe of its starter open: %v", err)
	}
}

// startAndKill starts a starter, and kills it when its cluster is up.
func startAndKill(t *testing.T, starter *exec.Cmd) {
	t.Helper()
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 3)
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "up\n" {
		t.Fatalf("the starter said %q (%v)", said, err)
	}
	_ = starter.Process.Kill()
	_ = starter.Wait()
}
