package ec2story

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// savingScript trains for long, or, with --resume, from where it was left.
const savingScript = `mkdir -p out
if [ "$1" = --resume ]; then
    echo "resumed on rank $RANK"
    for i in 4 5 6; do echo "step: $i loss: 0.$((9 - i))"; done
    echo done >out/done
    exit
fi
echo "first start of rank $RANK"
i=1
while :; do echo "step: $i loss: 0.9"; i=$((i + 1)); sleep 0.5; done
`

// spotProfile is of two spot machines. more is more of run, limits after it.
func (b *bench) spotProfile(run, limits string) {
	b.t.Helper()
	b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, count: 2, spot: true, ssh_port: %d}\n"+
		"environment: system\nrun: {engine: plain, command: \"sh train.sh\", grace: 1s, resume: \"--resume\"%s}\nresults: {paths: [out/]}\nlimits: {%s}\n",
		b.rig.SSHPort(), run, limits))
	b.write("train.sh", savingScript)
}

// taken is one machine that AWS takes back in the middle of a run.
type taken struct {
	id     string
	node   float64
	notice time.Duration
	told   time.Duration // until the event
}

// takeBack waits until a run trains and lets AWS take node 1 back.
func (d *driven) takeBack(up printedEvent, notice time.Duration) taken {
	d.b.t.Helper()
	d.await("training", func(e printedEvent) bool { return e["event"] == "point" && e["step"] == 2.0 })
	it := taken{id: up["nodes"].([]any)[1].(map[string]any)["id"].(string), node: 1, notice: notice}
	began := time.Now()
	d.b.aws.Reclaim(it.id, notice)
	e := d.await("the notice", called("spot_notice"))
	it.told = e["seen"].(time.Time).Sub(began)
	if e["node"] != it.node || e["action"] != "terminate" {
		d.b.t.Errorf("spot_notice %v", e)
	}
	if it.told > notice { // nodes ask every 5 s
		d.b.t.Errorf("of a notice of %s was told after %s only", notice, it.told)
	}
	return it
}

// A machine that AWS takes back is told of at once; its run saves what it has,
// gets one machine in its place, and goes on.
func TestASpotMachineTakenBackIsReplacedAndTheRunGoesOn(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	hook := filepath.Join(b.home, "told")
	b.spotProfile(", on_notice: \"sh -c 'echo $PWD >"+hook+"'\"", "replacements: 2")
	d := b.start("run", "--down", "--json")
	it := d.takeBack(d.await("the cluster", called("cluster_up")), 25*time.Second)
	d.await("the end of the first run", called("run_ended"))
	lost := time.Now()
	d.await("the second start", called("run_started"))
	again := time.Since(lost)
	r := d.end()
	if r.code != 0 {
		t.Fatal(r)
	}
	if text, err := os.ReadFile(hook); err != nil || !strings.HasSuffix(string(text), "/dlwb/story/code\n") {
		t.Errorf("run.on_notice: %q, %v", text, err)
	}
	ends := r.events("run_ended")
	if len(ends) != 2 || ends[0]["verdict"] != "lost" || ends[0]["node"] != 1.0 || ends[1]["verdict"] != "succeeded" {
		t.Errorf("run_ended %v", ends)
	}
	if starts := r.events("run_started"); len(starts) != 2 || !strings.HasSuffix(fmt.Sprint(starts[1]["command"]), " --resume") {
		t.Errorf("run_started %v", starts)
	}
	if n := b.aws.Launched(); n != 3 {
		t.Errorf("%d machines were launched, want 2 and 1 in place of the lost one", n)
	}
	ups := r.events("cluster_up")
	before, after := nodeIDs(ups[0]), nodeIDs(ups[len(ups)-1])
	if after[0] != before[0] || after[1] == it.id {
		t.Errorf("nodes were %v and then %v", before, after)
	}
	if r.one(t, "receipt")["proven"] != true {
		t.Errorf("receipt %v", r.events("receipt"))
	}
	b.nothingLeft("after the spot story")
	t.Logf("notice of %s: seen after %.1f s; first run: %v; the second began %.1f s after it", it.notice, it.told.Seconds(), ends[0]["cause"], again.Seconds())
}

func nodeIDs(up printedEvent) (ids []string) {
	for _, n := range up["nodes"].([]any) {
		ids = append(ids, n.(map[string]any)["id"].(string))
	}
	return ids
}

// Where there is no replacement to be had, that is said, nothing runs twice,
// and what is left is removed as was asked for.
func TestASpotMachineThatIsNotReplacedEndsTheRun(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.spotProfile("", "replacements: 1")
	d := b.start("run", "--down", "--json")
	up := d.await("the cluster", called("cluster_up"))
	b.aws.SetSpotCapacity("us-east-1", "", "g5.xlarge", 0)
	it := d.takeBack(up, 25*time.Second)
	r := d.end()
	if r.code == 0 || r.code == 3 {
		t.Errorf("exit code %d", r.code)
	}
	ends := r.events("run_ended")
	if len(ends) != 1 || ends[0]["verdict"] != "lost" || !strings.Contains(fmt.Sprint(ends[0]["cause"]), "about to be taken away") {
		t.Errorf("run_ended %v", ends)
	}
	if n := len(r.events("run_started")); n != 1 {
		t.Errorf("%d runs were started", n)
	}
	r.says(t, "AWS has no room for 1 × g5.xlarge (spot)")
	if n := b.aws.Launched(); n != 2 {
		t.Errorf("%d machines were launched", n)
	}
	b.nothingLeft("after the spot story")
	t.Logf("notice seen after %.1f s; %v; then: %v", it.told.Seconds(), ends[0]["cause"], r.last(t, "failed")["why"])
}
