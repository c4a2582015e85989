//go:build linux

package hostsstory

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testbed"
)

// together writes where all see it and where nobody else does, and looks who it is.
const together = `import os, socket, sys, time
rank = os.environ["RANK"]
print("rank", rank, "on", socket.gethostname(), "of run", os.environ["DLWB_RUN"], "python", sys.prefix, flush=True)
os.makedirs("outputs", exist_ok=True)
open("outputs/rank" + rank, "w").write(socket.gethostname())
open(os.path.join(os.environ["DLWB_RESULTS"], "own"), "w").write(socket.gethostname())
while os.path.exists("hold"):
    time.sleep(0.1)
`

// sharedProfile trains on four hosts.
func sharedProfile(name, more string) string {
	return fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\n%srun: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n",
		name, hostNames(0, 4), more)
}

// whole is everything below a directory but what ssh itself keeps.
func whole(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("find", dir, "-mindepth", "1", "-not", "-path", "*/.ssh/*", "-not", "-path", "*/.cache*", "-not", "-path", "*/.local*").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// ran says what a run of four ranks has brought home and printed.
func ran(t *testing.T, l *laptop, run *said, hosts int) {
	t.Helper()
	id := fmt.Sprint(l.await(run, time.Second, "the start", called("run_started"))["run"])
	dir := filepath.Join(l.home, "state", "runs", id)
	for rank := range hosts {
		want := fmt.Sprintf("rank %d on %s of run %s ", rank, testbed.Name(rank), id)
		if log := mustRead(t, filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank))); !strings.Contains(log, want) {
			t.Errorf("the log of rank %d does not say %q: %s", rank, want, log)
		}
		own := filepath.Join(dir, "results", fmt.Sprintf("node%d", rank), "own")
		if text := mustRead(t, own); text != testbed.Name(rank) {
			t.Errorf("%s is of %s", own, text)
		}
	}
}

// Four hosts have one home, by a bind mount of which df says nothing. Code and
// environment come there once, each host's part of the run has a place of its own, and
// nothing is left.
func TestHostsWithOneHomeShareWhatCanBeShared(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 4)
	home, err := bed.ShareHome(0, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	before := whole(t, home)
	keys := mustRead(t, filepath.Join(home, ".ssh", "authorized_keys"))
	l := newLaptop(t, bed.SSHConfig(), sharedProfile("shared", "environment: {venv: requirements.txt}\n"), together)
	write(t, filepath.Join(l.home, "code", "requirements.txt"), "# nothing\n")
	write(t, filepath.Join(l.home, "code", "hold"), "")
	run := l.start("run", "--json")
	l.await(run, 3*time.Minute, "the start of the run", called("run_started"))
	for host := range 4 {
		until(t, 20*time.Second, testbed.Name(host)+" trains", func() bool { return trainsOn(t, bed, host) })
	}
	if lines := strings.Count(mustRead(t, filepath.Join(home, ".ssh", "authorized_keys")), "dlwb-peer"); lines != 1 {
		t.Errorf("the nodes' key stands %d times in authorized_keys", lines)
	}
	synced := l.await(run, time.Second, "the sync", func(e map[string]any) bool { return e["event"] == "step_ended" && e["step"] == "sync" })
	if text := fmt.Sprint(synced["text"]); !strings.Contains(text, "to 1 node") {
		t.Errorf("the code was sent more than once: %s", text)
	}
	if got := strings.Count(run.text(), "making a virtual environment"); got > 1 {
		t.Errorf("the environment was made %d times", got)
	}
	if err := os.Remove(filepath.Join(home, "dlwb", "shared", "code", "hold")); err != nil {
		t.Fatal(err)
	}
	if code := l.end(run, time.Minute); code != 0 {
		t.Fatalf("run ended with %d", code)
	}
	ran(t, l, run, 4)
	code, text := l.do(time.Minute, "down", "shared")
	if code != 0 {
		t.Errorf("down ended with %d:\n%s", code, text)
	}
	for host := range 4 {
		if !strings.Contains(text, testbed.Name(host)) {
			t.Errorf("the receipt does not name %s:\n%s", testbed.Name(host), text)
		}
		if trainsOn(t, bed, host) {
			t.Errorf("%s still trains", testbed.Name(host))
		}
		if out, err := bed.Run(host, "ls -d /var/tmp/dlwb-* /tmp/dlwb-* /dev/shm/dlwb-* 2>/dev/null || true"); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("left on %s: %s, %v", testbed.Name(host), out, err)
		}
	}
	if after := whole(t, home); after != before {
		t.Errorf("left in the shared home:\n%s\nbefore:\n%s", after, before)
	}
	if now := mustRead(t, filepath.Join(home, ".ssh", "authorized_keys")); now != keys {
		t.Errorf("authorized_keys is changed: %q", now)
	}
}

// Two of four have one home, and one rank fails there: its twin is stopped too. A host
// that is dead keeps its twin from removing what both have.
func TestHostsOfWhichTwoHaveOneHome(t *testing.T) {
	bed := realHosts(t, 4)
	home, err := bed.ShareHome(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	before := whole(t, home)
	fails := strings.Replace(together, "while os.path", "if rank == '2' and os.path.exists('fail'):\n    time.sleep(2)\n    sys.exit(7)\nwhile os.path", 1)
	l := newLaptop(t, bed.SSHConfig(), sharedProfile("partly", "environment: system\n"), fails)
	write(t, filepath.Join(l.home, "code", "fail"), "")
	write(t, filepath.Join(l.home, "code", "hold"), "")
	run := l.start("run", "--json")
	if code := l.end(run, 2*time.Minute); code != 7 {
		t.Errorf("the run ended with %d, not with the 7 of its rank", code)
	}
	for host := range 4 {
		if trainsOn(t, bed, host) {
			t.Errorf("%s still trains", testbed.Name(host))
		}
	}
	if err := os.Remove(filepath.Join(l.home, "code", "fail")); err != nil {
		t.Fatal(err)
	}
	run = l.start("run", "--detach", "--json")
	l.end(run, time.Minute)
	until(t, 20*time.Second, "all train", func() bool { return trainsOn(t, bed, 1) && trainsOn(t, bed, 2) })
	mustDo(t, bed, "kill", testbed.Name(2))
	code, text, took := l.down("partly")
	if code == 0 || !strings.Contains(text, testbed.Name(2)+": it could not be looked at") || !strings.Contains(text, "stay for "+testbed.Name(2)) {
		t.Errorf("down ended with %d:\n%s", code, text)
	}
	if took > 25*time.Second {
		t.Errorf("down took %s", took)
	}
	if trainsOn(t, bed, 1) {
		t.Error("the twin of the dead host still trains")
	}
	if _, err := os.Stat(filepath.Join(home, "dlwb", "partly", "code", "train.py")); err != nil {
		t.Errorf("what the dead host may still use was removed: %v", err)
	}
	mustDo(t, bed, "reboot", testbed.Name(2))
	if _, err := bed.ShareHome(2); err != nil { // as its fstab would
		t.Fatal(err)
	}
	if code, text := l.do(time.Minute, "down", "partly"); code != 0 {
		t.Errorf("down again ended with %d:\n%s", code, text)
	}
	if after := whole(t, home); after != before {
		t.Errorf("left in the shared home:\n%s\nbefore:\n%s", after, before)
	}
}

// The home is one, and the place for the code a disk of each host's own; or the other
// way round.
func TestHostsWithOneHomeOrOneDirectoryForTheCode(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 4)
	home, err := bed.ShareHome(0, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	for host := range 4 {
		if _, err := bed.Run(host, "mkdir -p /scratch && chown "+testbed.User+" /scratch"); err != nil {
			t.Fatal(err)
		}
	}
	before := whole(t, home)
	var list []string
	for i := range 4 {
		list = append(list, fmt.Sprintf("{host: %s, dir: /scratch}", testbed.Name(i)))
	}
	profile := strings.Replace(sharedProfile("scratch", "environment: system\n"), hostNames(0, 4), strings.Join(list, ", "), 1)
	l := newLaptop(t, bed.SSHConfig(), profile, together)
	run := l.start("run", "--down", "--json")
	if code := l.end(run, 2*time.Minute); code != 0 {
		t.Fatalf("run ended with %d", code)
	}
	ran(t, l, run, 4)
	if after := whole(t, home); after != before {
		t.Errorf("left in the shared home:\n%s\nbefore:\n%s", after, before)
	}
	for host := range 4 {
		if out, err := bed.Run(host, "ls -A /scratch"); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("left on %s: %s, %v", testbed.Name(host), out, err)
		}
	}
}

// Each host has a home of its own, and one directory for the code of all.
func TestHostsWithOneDirectoryForTheCode(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 4)
	data, err := bed.Share("data", "/data", 0, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for i := range 4 {
		list = append(list, fmt.Sprintf("{host: %s, dir: /data}", testbed.Name(i)))
	}
	profile := strings.Replace(sharedProfile("data", "environment: system\n"), hostNames(0, 4), strings.Join(list, ", "), 1)
	l := newLaptop(t, bed.SSHConfig(), profile, together)
	run := l.start("run", "--down", "--json")
	if code := l.end(run, 2*time.Minute); code != 0 {
		t.Fatalf("run ended with %d", code)
	}
	ran(t, l, run, 4)
	if left := whole(t, data); left != "" {
		t.Errorf("left:\n%s", left)
	}
	for host := range 4 {
		if _, err := os.Stat(filepath.Join(bed.Home(host), ".dlwb")); !os.IsNotExist(err) {
			t.Errorf("~/.dlwb is left on %s: %v", testbed.Name(host), err)
		}
	}
}

// withInputs keeps what each rank has seen, run after run.
const withInputs = `import os
own = os.path.join(os.environ["DLWB_STATE"], "mine")
open(own, "a").write(os.environ["RANK"])
print("rank", os.environ["RANK"], "state", open(own).read(), "input", open(os.environ["DLWB_CHANNEL_TRAIN"] + "/a.csv").read().strip(), flush=True)
open(os.path.join(os.environ["SM_MODEL_DIR"], "model"), "w").write(os.environ["RANK"])
`

// What the hosts of one home read comes there once. What each keeps, and what each
// writes, is its own.
func TestHostsWithOneHomeGetInputsOnceAndKeepStateApart(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 4)
	home, err := bed.ShareHome(0, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	before := whole(t, home)
	l := newLaptop(t, bed.SSHConfig(), sharedProfile("inputs", "state: kept\ndata: {train: digits}\n"), withInputs)
	write(t, filepath.Join(l.home, "code", "digits", "a.csv"), "seven\n")
	write(t, filepath.Join(l.home, "code", ".dlwbignore"), "digits/\n")
	for times := 1; times <= 2; times++ {
		args := []string{"run", "--json"}
		if times == 2 {
			args = append(args, "--down")
		}
		run := l.start(args...)
		if code := l.end(run, 3*time.Minute); code != 0 {
			t.Fatalf("run ended with %d", code)
		}
		data := l.await(run, time.Second, "the inputs", func(e map[string]any) bool { return e["event"] == "step_ended" && e["step"] == "data" })
		if text := fmt.Sprint(data["text"]); times == 1 && !strings.Contains(text, "to 1 node") || times == 2 && data["skipped"] != true {
			t.Errorf("the inputs of run %d: %v", times, data)
		}
		id := fmt.Sprint(l.await(run, time.Second, "the start", called("run_started"))["run"])
		for rank := range 4 {
			mine := strings.Repeat(fmt.Sprint(rank), times)
			want := fmt.Sprintf("rank %d state %s input seven", rank, mine)
			if log := mustRead(t, filepath.Join(l.home, "state", "runs", id, fmt.Sprintf("rank-%d.log", rank))); !strings.Contains(log, want) {
				t.Errorf("the log of rank %d does not say %q: %s", rank, want, log)
			}
			if kept := mustRead(t, filepath.Join(l.home, "code", "kept", fmt.Sprintf("node%d", rank), "mine")); kept != mine {
				t.Errorf("the state of node %d came home as %q", rank, kept)
			}
			if model := mustRead(t, filepath.Join(l.home, "state", "runs", id, "results", fmt.Sprintf("node%d", rank), "model", "model")); model != fmt.Sprint(rank) {
				t.Errorf("the model of node %d came home as %q", rank, model)
			}
		}
	}
	if after := whole(t, home); after != before {
		t.Errorf("left in the shared home:\n%s\nbefore:\n%s", after, before)
	}
}
