//go:build linux

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// smallDisk puts a file system of its own on a directory of the bed. What
// fills it fills nothing else.
func (b *bed) smallDisk(size string, path ...string) string {
	b.t.Helper()
	dir := filepath.Join(append([]string{b.home, "state"}, path...)...)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		b.t.Skipf("a small disk can't be mounted (that needs root): %v", err)
	}
	b.t.Cleanup(func() {
		_ = b.command("down", "--all", "--plain").Run()
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			b.t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fill takes all the room that is left on a disk, save a little.
func (b *bed) fill(dir string, leave int64) (release func()) {
	b.t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		b.t.Fatal(err)
	}
	take := int64(st.Bavail)*int64(st.Bsize) - leave
	for off, step := int64(0), take; step > 0; {
		if syscall.Fallocate(int(f.Fd()), 0, off, step) == nil {
			off += step
		} else {
			step /= 2
		}
		step = min(step, take-off)
	}
	return func() { _ = os.Remove(f.Name()) }
}

// roomy is as much as a cluster must find when it is brought up.
const roomy = "260m"

// heldPython is a Python that waits on nodes for as long as a file is there:
// a moment at which the disk can be filled, between two steps.
func (b *bed) heldPython() string {
	b.t.Helper()
	hold := b.write("hold", "")
	path := filepath.Join(b.dir, "python")
	text := fmt.Sprintf("#!/bin/sh\n[ -z \"$DLWB_NODE\" ] || while [ -e '%s' ]; do sleep 0.05; done\nexec python3 \"$@\"\n", hold)
	if err := testprogram.Write(path, []byte(text), 0o755); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// fillBetween runs a profile and fills the nodes' disk while the environment
// is being set up.
func (b *bed) fillBetween(disk string, leave int64, args ...string) result {
	b.t.Helper()
	var r result
	s := b.start(args...)
	keep := func(e printedEvent) printedEvent { r.events = append(r.events, e); return e }
	s.await("the environment step", func(e printedEvent) bool {
		return keep(e)["event"] == "step_started" && e["step"] == "environment"
	})
	release := b.fill(disk, leave)
	defer release()
	if err := os.Remove(filepath.Join(b.dir, "hold")); err != nil {
		b.t.Fatal(err)
	}
	for e := range s.news {
		keep(e)
	}
	r.code = s.end()
	return r
}

// says checks that exactly one failure was told, and what it says.
func (r result) says(t *testing.T, words ...string) {
	t.Helper()
	text := fmt.Sprint(r.one(t, "failed"))
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not said: %s", w, text)
		}
	}
}

// downIsProven takes the cluster down and holds it to its promise.
func (b *bed) downIsProven() {
	b.t.Helper()
	d := b.run("down", "--json")
	if d.code != 0 || d.one(b.t, "receipt")["proven"] != true {
		b.t.Errorf("down: exit code %d\n%s%s", d.code, d.stdout, d.stderr)
	}
	b.nothingLeft()
}

func TestTooSmallADiskIsRefusedBeforeAnything(t *testing.T) {
	b := newBed(t)
	b.smallDisk("4m", "local")
	b.profile("print('hello')\n", "")
	for _, command := range []string{"run", "sync", "up"} {
		r := b.run(command, "--json")
		if r.code != 1 {
			t.Errorf("%s: exit code %d", command, r.code)
		}
		r.says(t, "free in", "a cluster needs")
		b.nothingLeft()
		if l := b.run("ls", "--json"); !strings.Contains(l.stdout, `"clusters":[]`) {
			t.Errorf("after %s: %s", command, l.stdout)
		}
	}
}

func TestFullDiskOfTheNodesStopsSyncAndLaunch(t *testing.T) {
	sample.Leave(t)
	b := newBed(t)
	disk := b.smallDisk(roomy, "local")
	python := b.heldPython()
	b.profile("print('hello')\n", "environment: {python: "+python+"}\ncode: {dir: ., exclude: [hold, python]}\n")

	b.write("big.bin", strings.Repeat("0123456789abcdef", 64<<10))
	r := b.fillBetween(disk, 256<<10, "run", "--json", "--remove-on-failure")
	if r.code != 1 || r.one(t, "receipt")["proven"] != true {
		t.Errorf("sync: exit code %d", r.code)
	}
	r.says(t, "copy the code", "node0", "no space left", "free some space")
	b.nothingLeft()

	if err := os.Remove(filepath.Join(b.dir, "big.bin")); err != nil {
		t.Fatal(err)
	}
	if r := b.run("sync", "--json"); r.code != 0 {
		t.Fatalf("sync with room: exit code %d\n%s", r.code, r.stdout)
	}
	b.write("hold", "")
	r = b.fillBetween(disk, 0, "run", "--json")
	if r.code != 1 {
		t.Errorf("launch: exit code %d", r.code)
	}
	r.says(t, "start the ranks", "node", "its disk is full")
	if left := b.ranks(); len(left) > 0 {
		t.Errorf("ranks are left: %v", left)
	}
	b.fill(disk, 0)
	b.downIsProven()
}

// talker prints until its disk is full.
const talker = `
import os, time
rank = int(os.environ["RANK"])
for i in range(1, 100000):
    if rank == 0:
        print(f"step {i} loss: {1 / i:.4f}", "x" * 2000, flush=True)
        time.sleep(0.005)
    else:
        time.sleep(0.005)
`

func TestRunThatFillsTheNodesDiskEndsAndSaysSo(t *testing.T) {
	b := newBed(t)
	disk := b.smallDisk(roomy, "local")
	// What is printed to a full disk is lost and ends nothing; a checkpoint that
	// can't be written does.
	b.profile(strings.Replace(talker, "        time.sleep(0.005)\n    else:",
		"        with open('checkpoint', 'a') as f: f.write('x' * 2000)\n        time.sleep(0.005)\n    else:", 1), "")
	s := b.start("run", "--json")
	s.awaitStep(3)
	b.fill(disk, 64<<10)
	end := s.await("the end of the run", func(e printedEvent) bool { return e["event"] == "run_ended" })
	if !strings.Contains(fmt.Sprint(end["cause"]), "the disk of node0 is full") || end["verdict"] != "disk-full" || end["rank"] != 0.0 {
		t.Errorf("run_ended %v", end)
	}
	if code := s.end(); code == 0 || float64(code) != end["exit_code"] {
		t.Errorf("exit code %d", code)
	}
	if left := b.ranks(); len(left) > 0 {
		t.Errorf("ranks are left: %v", left)
	}
	b.downIsProven()
}

func TestLogThatFindsNoRoomHereIsCompletedByAttach(t *testing.T) {
	b := newBed(t).withOneNode()
	disk := b.smallDisk("1m", "runs")
	b.profile(strings.Replace(talker, "100000", "1200", 1), "")
	s := b.start("run", "--json")
	run := s.await("the run", func(e printedEvent) bool { return e["event"] == "run_started" })["run"].(string)
	s.awaitStep(3)
	release := b.fill(disk, 32<<10)
	failed := s.await("the failure", func(e printedEvent) bool { return e["event"] == "failed" })
	for _, w := range []string{"store the output of rank 0", "rank-0.log", "no space left", "the run goes on"} {
		if !strings.Contains(fmt.Sprint(failed), w) {
			t.Errorf("%q is not said: %v", w, failed)
		}
	}
	if code := s.end(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if l := b.run("ls", "--json"); !strings.Contains(l.stdout, `"phase":"running"`) || !strings.Contains(l.stdout, run) {
		t.Errorf("the run is not shown as going on: %s", l.stdout)
	}
	release()
	// More than the disk can hold is still to come.
	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "mode=0700,size=16m"); err != nil {
		t.Fatal(err)
	}
	r := b.run("attach", "--json")
	if r.code != 0 || r.one(t, "run_ended")["verdict"] != "succeeded" {
		t.Errorf("attach: exit code %d %s", r.code, r.stderr)
	}
	stored, err := os.ReadFile(filepath.Join(disk, run, "rank-0.log"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := b.command("ssh", "bed", "0", "--", "cat", ".dlwb/runs/"+run+"/rank-0.log").Output()
	if err != nil || string(there) != string(stored) || strings.Count(string(stored), "\n") != 1199 {
		t.Errorf("%d bytes stored, %d on the node, %v", len(stored), len(there), err)
	}
}

func TestFullDiskHereIsSaidOnceAndTheClusterCanGo(t *testing.T) {
	sample.Leave(t)
	b := newBed(t).withOneNode()
	disk := b.smallDisk(roomy)
	b.profile(talker, "")
	first := b.command("run", "--plain")
	var said, told strings.Builder
	first.Stderr, first.Stdout = &said, &told
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	b.waitForLog(t, disk)
	release := b.fill(disk, 0)
	_ = first.Wait()
	if code := first.ProcessState.ExitCode(); code == 0 {
		t.Errorf("exit code %d\n%s", code, said.String())
	}
	// As an event, unless that found no room either.
	_, event, _ := strings.Cut(told.String(), "✗ ")
	if text := event + said.String(); !strings.Contains(text, "full") && !strings.Contains(text, "no space left") {
		t.Errorf("it is not said:\n%.2000s", text)
	}
	if event != "" && said.Len() > 0 {
		t.Errorf("it is said twice:\n%.2000s\n%s", event, said.String())
	}
	if r := b.run("down"); r.code == 0 {
		t.Log("down found room enough")
	} else if !strings.Contains(r.stderr, "no room") && !strings.Contains(r.stderr, "full") {
		t.Errorf("down: exit code %d\n%s", r.code, r.stderr)
	}
	release()
	if l := b.run("ls", "--json"); !strings.Contains(l.stdout, `"clusters":[]`) {
		b.downIsProven()
	}
	b.nothingLeft()
}

// waitForLog waits until output of rank 0 is stored.
func (b *bed) waitForLog(t *testing.T, state string) {
	t.Helper()
	for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		logs, _ := filepath.Glob(filepath.Join(state, "runs", "*", "rank-0.log"))
		for _, l := range logs {
			if info, err := os.Stat(l); err == nil && info.Size() > 0 {
				return
			}
		}
	}
	t.Fatal("no output of rank 0 within half a minute")
}
