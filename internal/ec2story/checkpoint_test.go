package ec2story

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// checkpointScript writes three whole checkpoints on rank 0, and then one that
// is never finished. With --resume it says on which one it goes on.
const checkpointScript = `if [ "$1" = --resume ]; then
    newest=$(ls out/ckpt | sort | tail -n 1)
    echo "goes on from $newest of $(wc -c <out/ckpt/$newest/model) bytes on rank $RANK"
    mkdir -p out && echo done >out/done
    echo "step: 9 loss: 0.1"
    exit
fi
[ "$RANK" = 0 ] || exec sleep 1000
mkdir -p out/ckpt
for i in 1 2 3; do
    mkdir out/ckpt/step-$i
    printf 'weights of step %d' $i >out/ckpt/step-$i/model
    echo "step: $i loss: 0.9"
done
mkdir out/ckpt/step-4
while :; do printf x >>out/ckpt/step-4/model; echo "step: 4 loss: 0.5"; sleep 0.3; done
`

// The machine that rank 0 wrote on is taken, or the other one: the run goes on
// from the newest checkpoint that is whole, and never from the one that was
// being written.
func TestALostRunGoesOnFromItsNewestWholeCheckpoint(t *testing.T) {
	sample.Leave(t)
	for _, c := range []struct {
		name          string
		taken         int
		notice, shuts time.Duration
	}{{"node 0 is taken", 0, 9 * time.Second, 0}, {"node 1 is taken", 1, 9 * time.Second, 0},
		// What a rank was writing when it was ended stays as it is meanwhile.
		{"node 0 is taken, after a long notice", 0, 25 * time.Second, 0},
		{"node 1 is taken, and shuts down for long", 1, 9 * time.Second, 15 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			long(t)
			t.Parallel()
			b := newBench(t, fakeaws.Options{ShuttingDown: c.shuts})
			b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, count: 2, spot: true, ssh_port: %d}\n"+
				"environment: system\nrun: {engine: plain, command: \"sh train.sh\", grace: 1s, resume: \"--resume\"}\n"+
				"results: {paths: [out/], checkpoints: out/ckpt}\nlimits: {replacements: 2}\n", b.rig.SSHPort()))
			b.write("train.sh", checkpointScript)
			d := b.start("run", "--down", "--json")
			up := d.await("the cluster", called("cluster_up"))
			// A quick look may also see the ones before it.
			saved := d.await("the newest whole checkpoint", func(e printedEvent) bool {
				return e["event"] == "checkpoint" && e["name"] != "step-1" && e["name"] != "step-2"
			})
			if saved["name"] != "step-3" || saved["node"] != 0.0 {
				t.Errorf("the checkpoint that came home is %v", saved)
			}
			b.aws.Reclaim(up["nodes"].([]any)[c.taken].(map[string]any)["id"].(string), c.notice)
			r := d.end()
			if r.code != 0 {
				t.Fatal(r)
			}
			if n := len(r.events("run_started")); n != 2 {
				t.Errorf("%d runs were started", n)
			}
			for _, e := range r.events("checkpoint") {
				if e["name"] == "step-4" {
					t.Errorf("a checkpoint that was being written came home as a whole one: %v", e)
				}
			}
			const want = "goes on from step-3 of 17 bytes on rank 0"
			if r.says(t, want); strings.Contains(r.stdout, "goes on from step-4") {
				t.Errorf("it went on from half a checkpoint")
			}
			results := r.events("results")
			if len(results) == 0 || results[len(results)-1]["files"] != 1.0 {
				t.Errorf("the second run brought home %v", results)
			}
			b.nothingLeft("after the spot story")
		})
	}
}
