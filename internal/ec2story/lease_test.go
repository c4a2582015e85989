package ec2story

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// listed is a cluster as dlwb ls --json shows it.
type listed struct {
	Phase  string    `json:"phase"`
	States []string  `json:"states"`
	Price  float64   `json:"price_per_hour"`
	Spent  float64   `json:"spent"`
	Ends   time.Time `json:"ends"`
}

// ls is the one cluster that there is.
func (b *bench) ls() listed {
	b.t.Helper()
	r := b.run("ls", "--json")
	var a struct{ Clusters []listed }
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil || len(a.Clusters) != 1 {
		b.t.Fatalf("not one cluster (%v): %s", err, r)
	}
	return a.Clusters[0]
}

// hurry makes the leases of all machines look every second and gives them
// other limits: no profile may ask for so little.
func (b *bench) hurry(settings string) {
	b.t.Helper()
	for _, id := range b.ids("running") {
		f, err := os.OpenFile(filepath.Join(b.rig.Dir(id), "lib", "settings"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		_, err = fmt.Fprintf(f, "every=1 %s\n", settings)
		if err := f.Close(); err != nil {
			b.t.Fatal(err)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	if r := b.run("exec", "story", "--", "sudo", "-n", "systemctl", "restart", "dlwb-lease.service"); r.code != 0 {
		b.t.Fatal(r)
	}
}

func (b *bench) eventually(what string, is func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(storyLimit); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("after %s still not: %s", storyLimit, what)
		}
	}
}

// Machines that nobody uses end themselves, and dlwb says so when it comes
// back.
func TestMachinesThatNobodyUsesEndThemselves(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	if r := b.run("up", "--plain"); r.code != 0 {
		t.Fatal(r)
	}
	before := b.ls().Ends
	if r := b.run("extend", "story", "--by", "2h", "--plain"); r.code != 0 {
		t.Error(r)
	}
	if moved := b.ls().Ends.Sub(before); moved != 2*time.Hour {
		t.Errorf("dlwb extend --by 2h moved the end by %s", moved)
	}
	for _, id := range b.ids("running") {
		if text, err := os.ReadFile(filepath.Join(b.rig.Dir(id), "lib", "extend")); err != nil || !strings.HasPrefix(string(text), "7200 0 ") {
			t.Errorf("%s was told %q, %v", id, text, err)
		}
	}
	b.hurry("bootstrap=4 idle_limit=4")
	began := time.Now()
	b.eventually("both machines have ended", func() bool { return len(b.ids("terminated")) == 2 })
	t.Logf("idle for 4 s, with a look each second: terminated after %.1f s", time.Since(began).Seconds())
	b.eventually("ls says it", func() bool { return strings.Join(b.ls().States, " ") == "gone gone" })
	b.run("ls", "--plain").says(t, "2 gone")
	if r := b.run("exec", "story", "--", "true"); r.code == 0 {
		t.Errorf("a command on machines that are gone: %s", r)
	}
	r := b.run("down", "story", "--json")
	receipt := r.one(t, "receipt")
	if r.code != 0 || receipt["proven"] != true || strings.Count(fmt.Sprint(receipt["resources"]), "Client.InstanceInitiatedShutdown") != 2 {
		t.Errorf("down: %s", r)
	}
	b.nothingLeft("the lease")
}

// A lease that is over ends also what runs, in an orderly way, and dlwb says
// why.
func TestALeaseThatIsOverEndsTheRunAndSaysWhy(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(1, quiet)
	b.write("train.sh", "trap 'echo saved; exit' TERM; i=0; while :; do i=$((i+1)); echo step: $i loss: 1.0; sleep 0.3; done\n")
	d := b.start("run", "--json")
	d.await("training", func(e printedEvent) bool { return e["event"] == "point" })
	b.hurry("lifetime=3")
	began := time.Now()
	end := d.await("the end of the run", called("run_ended"))
	if end["verdict"] != "stopped" || end["exit_code"] != 130.0 || !strings.Contains(fmt.Sprint(end["cause"]), "the lease of node0 is over") {
		t.Errorf("run_ended %v", end)
	}
	t.Logf("told %.1f s after the lease was cut short: %v", time.Since(began).Seconds(), end["cause"])
	if r := d.end(); r.code != 130 || !strings.Contains(r.stdout, `"line":"saved"`) {
		t.Errorf("%s", r)
	}
	b.eventually("the machine has ended", func() bool { return len(b.ids("terminated")) == 1 })
	if r := b.run("down", "story", "--json"); r.code != 0 || !strings.Contains(r.stdout, "Client.InstanceInitiatedShutdown") {
		t.Error(r)
	}
	b.nothingLeft("the lease")
}

// What a run writes when it is told to stop comes home before its machine shuts
// down, with no S3 in the profile; so does what no dlwb has fetched.
func TestResultsComeHomeBeforeALeaseEndsTheMachine(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(1, quiet+"results: {paths: [out/]}\n")
	b.write("train.sh", `mkdir -p out
save() { i=0; while [ $i -lt 300 ]; do echo "$i" >out/part-$i; i=$((i + 1)); done; echo all >out/last; exit; }
trap save TERM
i=0
while :; do i=$((i+1)); echo step: $i loss: 1.0; sleep 0.3; done
`)
	d := b.start("run", "--json")
	d.await("training", func(e printedEvent) bool { return e["event"] == "point" })
	b.hurry("lifetime=3")
	r := d.end()
	got := r.last(t, "results")
	if r.code != 130 || got["files"] != 301.0 || len(r.events("results_lost")) > 0 {
		t.Errorf("%s", r)
	}
	if text, err := os.ReadFile(filepath.Join(got["dir"].(string), "out", "last")); err != nil || string(text) != "all\n" {
		t.Errorf("out/last is %q, %v", text, err)
	}
	b.eventually("the machine has ended", func() bool { return len(b.ids("terminated")) == 1 })
	if r := b.run("down", "story", "--yes", "--json"); r.code != 0 {
		t.Error(r)
	}
	b.nothingLeft("the lease")
}

// Results that went with their machine are lost, and nothing says otherwise.
func TestResultsThatWentWithTheirMachineAreSaidToBeLost(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(1, quiet+"results: {paths: [out/]}\n")
	b.write("train.sh", "mkdir -p out; i=0; while :; do i=$((i+1)); echo step: $i loss: 1.0; echo $i >out/step; sleep 0.3; done\n")
	d := b.start("run", "--plain")
	b.eventually("it trains", func() bool { return strings.Contains(d.said(), "step: 3") })
	id := b.ids("running")[0]
	b.aws.Crash(id)
	r := d.end()
	if strings.Contains(r.stdout+r.stderr, "still on the node") || strings.Contains(r.stdout+r.stderr, "tries again") {
		t.Errorf("it says that there is something left: %s", r)
	}
	r.says(t, "results are lost", "node0 is gone")
	lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "is lost") {
		t.Errorf("the last line is %q", last)
	}
	if p := b.run("pull"); p.code == 0 {
		t.Errorf("pull: %s", p)
	}
	b.run("down", "story", "--yes", "--plain")
	b.nothingLeft("the lease")
}

// Machines that are stopped cost what their disks cost, and come back with
// what was on them.
func TestStoppedMachinesKeepTheirDisksAndCostOnlyThose(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet)
	b.write("train.sh", "echo step: 1 loss: 0.5\n")
	if r := b.run("up", "--plain"); r.code != 0 {
		t.Fatal(r)
	}
	up := b.ls()
	if r := b.run("exec", "story", "--", "sh", "-c", "echo kept >kept"); r.code != 0 {
		t.Fatal(r)
	}
	r := b.run("stop", "story", "--machines", "--json")
	if r.code != 0 || len(b.ids("stopped")) != 2 {
		t.Fatalf("%v: %s", b.aws.Instances(), r)
	}
	stopped := b.ls()
	said := r.one(t, "cluster_stopped")
	if stopped.Phase != "stopped" || stopped.Price <= 0 || stopped.Price > up.Price/20 || said["price_per_hour"] != stopped.Price {
		t.Errorf("%+v, then %+v; cluster_stopped %v", up, stopped, said)
	}
	for _, args := range [][]string{{"run", "--plain"}, {"up", "--plain"}} {
		no := b.run(args...)
		if no.code != 1 {
			t.Errorf("%v: %s", args, no)
		}
		no.says(t, "its machines are stopped", "dlwb start story")
	}
	if s := b.run("start", "story", "--plain"); s.code != 0 {
		t.Fatal(s)
	}
	again := b.ls()
	if again.Phase != "ready" || again.Price != up.Price || again.Ends.Before(up.Ends) {
		t.Errorf("before %+v, and after a rest %+v", up, again)
	}
	if got := b.run("exec", "story", "--", "cat", "kept"); got.code != 0 || strings.Count(got.stdout, "kept") != 2 {
		t.Errorf("the files: %s", got)
	}
	if r := b.run("run", "--down", "--plain"); r.code != 0 {
		t.Error(r)
	}
	if n := b.aws.Launched(); n != 2 {
		t.Errorf("%d machines were launched, want 2", n)
	}
	b.nothingLeft("stop and start")
	t.Logf("$%.4f/h, stopped $%.4f/h, again $%.4f/h", up.Price, stopped.Price, again.Price)
}

// Trials of a sweep that run when the machines are stopped are ended, their logs and
// results are home, none is launched on machines that go, and the rest runs when they
// are back.
func TestASweepIsPutAsideWithItsMachinesAndGoesOnWithThem(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.profile(2, quiet+"sweep: {parameters: {lr: [1, 2, 3, 4, 5]}, metric: loss}\n")
	slow := filepath.Join(b.home, "slow")
	if err := os.WriteFile(slow, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.write("train.sh", "mkdir -p $DLWB_RESULTS; echo trial $DLWB_TRIAL >$DLWB_RESULTS/which; echo step: 1 loss: 0.5\nwhile [ -e "+slow+" ]; do sleep 0.2; done\n")
	d := b.start("sweep", "--json")
	b.eventually("two trials run", func() bool { return strings.Count(d.said(), `"run_started"`) == 2 })
	if r := b.run("stop", "story", "--machines", "--json"); r.code != 0 || len(b.ids("stopped")) != 2 {
		t.Fatalf("%v: %s", b.aws.Instances(), r)
	}
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	r := d.end()
	r.says(t, "the cluster is stopped")
	if starts, ends := r.events("run_started"), r.events("run_ended"); r.code == 0 || len(starts) != 2 || len(ends) != 2 {
		t.Fatalf("exit code %d, %d began and %d ended: %s", r.code, len(starts), len(ends), r)
	}
	for _, e := range r.events("run_ended") {
		if e["verdict"] != "stopped" {
			t.Errorf("%v", e)
		}
	}
	if s := b.run("start", "story", "--plain"); s.code != 0 {
		t.Fatal(s)
	}
	again := b.run("sweep", "--down", "--json")
	if got := again.events("run_started"); len(got) != 3 || len(again.events("results_lost")) > 0 {
		t.Errorf("%d began: %s", len(got), again)
	}
	ran := map[any]bool{}
	for _, e := range append(r.events("run_started"), again.events("run_started")...) {
		run := e["run"].(string)
		ran[run] = true
		found, _ := filepath.Glob(filepath.Join(b.home, "state", "runs", run, "results", "*", "which"))
		if log, err := os.ReadFile(filepath.Join(b.home, "state", "runs", run, "rank-0.log")); err != nil || !strings.Contains(string(log), "loss: 0.5") || len(found) != 1 {
			t.Errorf("%s: %q, %v, %v", run, log, err, found)
		}
	}
	if len(ran) != 5 {
		t.Errorf("%v", ran)
	}
	if n := b.aws.Launched(); n != 2 {
		t.Errorf("%d machines were launched, want 2", n)
	}
	b.nothingLeft("a sweep that was put aside")
}
