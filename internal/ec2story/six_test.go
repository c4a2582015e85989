package ec2story

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// Machines that have IPv6 addresses only train together with PyTorch, which finds its
// master by one, and the user's own ssh gets there.
func TestMachinesOfIPv6AloneTrainTogether(t *testing.T) {
	sample.Leave(t)
	long(t)
	needTorch(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1", NoDefaultVPC: true, VPCs: []fakeaws.VPC{{Name: "ml-lab",
		Subnets: []fakeaws.Subnet{{Name: "six", Zone: "a", IPv6: "only", In6: true}}}}}}})
	b.inLab(4, "", torchRun)
	b.write("train.py", "import os\nprint('master', os.environ['MASTER_ADDR'])\n"+ddp)
	c := b.command("run", "--json")
	c.Env = withoutSource(c.Env)
	r := b.play(c)
	if r.code != 0 {
		t.Fatal(r)
	}
	b.trainedTogether(r)
	for _, n := range r.one(t, "cluster_up")["nodes"].([]any) {
		n := n.(map[string]any)
		if !strings.HasPrefix(n["addr"].(string), "[") || !strings.Contains(n["peer_host"].(string), ":") {
			t.Errorf("node %v", n)
		}
	}
	if log := b.run("logs", "--rank", "3", "--plain"); !strings.Contains(log.stdout, "master ::ffff:") {
		t.Error(log)
	}
	b.ownSSH()
	if r := b.run("down", "story", "--json"); r.code != 0 || r.one(t, "receipt")["proven"] != true {
		t.Fatal(r)
	}
	b.nothingLeft("after down")
}
