package ec2story

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// ledProfile is of a head and so many other machines, where TensorFlow's chief is on
// the head.
func (b *bench) ledProfile(count int, run string) {
	b.t.Helper()
	b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, head_instance: m5.xlarge, count: %d, ssh_port: %d}\n"+
		"environment: system\nrun: {engine: %s, command: \"sh train.sh\"}\nresults: {paths: [out/]}\n", count, b.rig.SSHPort(), run))
}

// tasks is what tells by its log which task of TensorFlow a process is. Servers wait
// for ever, as the real ones do.
const tasks = `echo "I am $TF_CONFIG"
case $TF_CONFIG in
*'"type":"ps"'*) sleep 1000 ;;
*'"type":"chief"'*) mkdir -p out; for i in 1 2 3; do echo "step: $i loss: 0.$i"; done; echo done >out/done ;;
esac
`

// The chief hands out the work on a machine without GPUs, the others work, what the
// chief writes comes home, and the head is on the receipt and in what it costs.
func TestACheapHeadLeadsMachinesWithGPUs(t *testing.T) {
	sample.Leave(t)
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.ledProfile(2, "tensorflow, parameter_servers: 1")
	b.write("train.sh", tasks)
	plan := b.run("plan", "--plain")
	for _, want := range []string{"3 nodes on ec2", "m5.xlarge", "for the head"} {
		if !strings.Contains(plan.stdout, want) {
			t.Errorf("the plan does not say %q:\n%s", want, plan)
		}
	}
	r := b.run("run", "--down", "--json")
	if r.code != 0 {
		t.Fatal(r)
	}
	up := r.one(t, "cluster_up")
	head := up["nodes"].([]any)[0].(map[string]any)
	if head["head"] != true || head["instance_type"] != "m5.xlarge" || up["instance_type"] != "g5.xlarge" || len(up["nodes"].([]any)) != 3 {
		t.Errorf("cluster_up %v", up)
	}
	if price := up["price_per_hour"].(float64); price < 2*1.006+0.192 {
		t.Errorf("$%v an hour", price)
	}
	for rank, want := range []string{`"task":{"type":"chief"`, `"task":{"type":"worker"`, `"task":{"type":"ps"`} {
		if log := b.run("logs", "--rank", fmt.Sprint(rank), "--plain"); !strings.Contains(log.stdout, want) {
			t.Errorf("rank %d is not %s:\n%s", rank, want, log)
		}
	}
	if _, err := os.Stat(filepath.Join(r.one(t, "results")["dir"].(string), "out", "done")); err != nil {
		t.Error(err)
	}
	receipt := r.one(t, "receipt")
	instances := map[any]bool{}
	for _, res := range receipt["resources"].([]any) {
		if res := res.(map[string]any); res["kind"] == "instance" {
			instances[res["node"]] = res["cost"].(float64) > 0
		}
	}
	if receipt["proven"] != true || len(instances) != 3 || !instances["node0"] {
		t.Errorf("receipt %v", receipt)
	}
	b.nothingLeft("after run --down")
}

// Nothing is paid for a head that would have nothing to do: the plan says so, with
// the line of the profile.
func TestAHeadWithNothingToDoIsRefusedByThePlan(t *testing.T) {
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	b.write("train.sh", "true\n")
	for _, run := range []string{"plain", "torchrun", "tensorflow"} {
		b.ledProfile(2, run)
		r := b.run("up", "--plain")
		if r.code == 0 || !strings.Contains(r.stderr+r.stdout, "dlwb.yaml:3:") || !strings.Contains(r.stderr+r.stdout, "machines.head_instance") || b.aws.Launched() > 0 {
			t.Errorf("%s: %s", run, r)
		}
	}
}
