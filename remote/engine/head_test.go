package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// led are nodes with a head before them.
func led(workers, gpus int) []Node {
	nodes := cluster(workers+1, gpus)
	nodes[0].Head = true
	return nodes
}

func TestRaysHeadHasTheDriverAndNothingElse(t *testing.T) {
	plan, err := Make("ray", led(2, 4), Job{Command: []string{"t.py"}, MaxThreads: 16})
	if err != nil {
		t.Fatal(err)
	}
	has := func(node int, words ...string) {
		t.Helper()
		for _, w := range words {
			if !slices.Contains(plan.Nodes[node][0].Argv, w) {
				t.Errorf("node %d lacks %s: %v", node, w, plan.Nodes[node][0].Argv)
			}
		}
	}
	has(0, "--head", "--num-gpus=0", "--num-cpus=0")
	has(1, "--num-gpus=4", "--num-cpus=16")
	has(2, "--num-gpus=4", "--num-cpus=16")
	driver := plan.Nodes[0][1]
	if env := strings.Join(driver.Env, " "); !strings.Contains(env, "DLWB_WORKERS=8") || !strings.Contains(env, "DLWB_GPUS=8") || strings.Contains(env, "OMP_NUM_THREADS") {
		t.Errorf("the driver is told %s", env)
	}
	if got := fmt.Sprint(driver.After.Argv[3:]); !strings.HasSuffix(got, " 3 8 180]") {
		t.Errorf("the driver waits for %s", got)
	}
	if ranks := plan.Ranks(); len(ranks) != 1 || ranks[0].Node != 0 || plan.WorldSize != 8 || !plan.Leads {
		t.Errorf("ranks %v, world size %d", ranks, plan.WorldSize)
	}
}

func TestTheChiefOfParameterServersIsOnTheHead(t *testing.T) {
	plan, err := Make("tensorflow", led(3, 4), Job{Command: []string{"t.py"}, ProcsPerNode: 2, MasterPort: 29511, Options: Options{ParameterServers: 1}})
	if err != nil {
		t.Fatal(err)
	}
	tasks, clusters := tfConfigs(t, plan)
	if got, want := fmt.Sprint(tasks), "[chief:0 worker:0 worker:1 worker:2 worker:3 ps:0 helper ps:1 helper]"; got != want {
		t.Errorf("tasks %s, want %s", got, want)
	}
	if want := "map[chief:[10.0.0.1:29511] ps:[10.0.0.4:29516 10.0.0.4:29517] worker:[10.0.0.2:29512 10.0.0.2:29513 10.0.0.3:29514 10.0.0.3:29515]]"; clusters[0] != want {
		t.Errorf("cluster %s, want %s", clusters[0], want)
	}
	if _, err := Make("tensorflow", led(1, 0), Job{Command: []string{"t.py"}, Options: Options{ParameterServers: 1}}); err == nil || !strings.Contains(err.Error(), "1 of 1 nodes would not train") {
		t.Error(err)
	}
}

// A machine that is paid for and has nothing to do is refused, with the key.
func TestAnEngineWithNothingForAHeadRefusesOne(t *testing.T) {
	for _, name := range Names() {
		_, err := Make(name, led(2, 1), Job{Command: []string{"t.py"}})
		switch {
		case name == "ray":
			if err != nil {
				t.Error(err)
			}
		case err == nil || !strings.Contains(err.Error(), headKey) || !strings.Contains(err.Error(), "remove"):
			t.Errorf("%s: %v", name, err)
		}
	}
}
