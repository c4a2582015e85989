package engine

import (
	"slices"
	"strings"
	"testing"
)

// Where nodes reach each other by IPv6, an address with a port is in brackets, one
// without is not, and NCCL is told the family.
func TestAddressesOfIPv6AreWrittenAsEachToolReadsThem(t *testing.T) {
	nodes := []Node{{Host: "2600:1f18::11", Interface: "ens5", GPUs: 1}, {Host: "2600:1f18::12", Interface: "ens5", GPUs: 1}}
	for name, c := range map[string]struct {
		options Options
		has     []string
	}{
		"torchrun":   {has: []string{"--master_addr=2600:1f18::11"}},
		"plain":      {has: []string{"MASTER_ADDR=2600:1f18::11"}},
		"jax":        {has: []string{"JAX_COORDINATOR_ADDRESS=[2600:1f18::11]:29500"}},
		"ray":        {has: []string{"RAY_ADDRESS=[2600:1f18::11]:29500", "--node-ip-address=2600:1f18::11"}},
		"accelerate": {has: []string{"2600:1f18::11"}},
		"deepspeed":  {has: []string{"MASTER_ADDR=2600:1f18::11"}},
		"lightning":  {has: []string{"MASTER_ADDR=2600:1f18::11"}},
	} {
		plan, err := Make(name, nodes, Job{Command: []string{"t.py"}, Options: c.options})
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, p := range slices.Concat(plan.Nodes...) {
			words = append(append(words, p.Argv...), p.Env...)
		}
		for _, want := range append(c.has, "NCCL_SOCKET_FAMILY=AF_INET6") {
			if !slices.Contains(words, want) {
				t.Errorf("%s: no %s in %q", name, want, words)
			}
		}
	}
	plan, err := Make("torchrun", nodes, Job{Command: []string{"t.py"}, Options: Options{Rendezvous: RendezvousC10d}})
	if err != nil || !slices.Contains(plan.Nodes[1][0].Argv, "--rdzv_endpoint=[2600:1f18::11]:29500") {
		t.Error(err, plan)
	}
	plan, err = Make("tensorflow", nodes, Job{Command: []string{"t.py"}})
	if err != nil {
		t.Fatal(err)
	}
	if env := strings.Join(plan.Nodes[0][0].Env, " "); !strings.Contains(env, `"[2600:1f18::12]:29501"`) {
		t.Error(env)
	}
}
