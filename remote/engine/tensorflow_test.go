package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// tfConfigs are the TF_CONFIG of every process of a plan, by rank, each as its
// task and the cluster.
func tfConfigs(t *testing.T, p Plan) (tasks, clusters []string) {
	t.Helper()
	for _, procs := range p.Nodes {
		for _, proc := range procs {
			for _, kv := range proc.Env {
				text, ok := strings.CutPrefix(kv, "TF_CONFIG=")
				if !ok {
					continue
				}
				var c struct {
					Cluster map[string][]string
					Task    struct {
						Type  string
						Index int
					}
				}
				if err := json.Unmarshal([]byte(text), &c); err != nil {
					t.Fatal(err)
				}
				task := fmt.Sprintf("%s:%d", c.Task.Type, c.Task.Index)
				if proc.Helper {
					task += " helper"
				}
				tasks, clusters = append(tasks, task), append(clusters, fmt.Sprint(c.Cluster))
			}
		}
	}
	return tasks, clusters
}

func TestTheTasksOfTensorFlowAreDealtOut(t *testing.T) {
	for _, c := range []struct {
		nodes, procs int
		options      Options
		tasks        string
		cluster      string
	}{
		{1, 1, Options{}, "[]", ""},
		{2, 1, Options{}, "[worker:0 worker:1]", "map[worker:[10.0.0.1:29511 10.0.0.2:29512]]"},
		{2, 2, Options{}, "[worker:0 worker:1 worker:2 worker:3]", "map[worker:[10.0.0.1:29511 10.0.0.1:29512 10.0.0.2:29513 10.0.0.2:29514]]"},
		{4, 1, Options{ParameterServers: 1}, "[chief:0 worker:0 worker:1 ps:0 helper]", "map[chief:[10.0.0.1:29511] ps:[10.0.0.4:29514] worker:[10.0.0.2:29512 10.0.0.3:29513]]"},
		{4, 1, Options{ParameterServers: 2, Evaluator: true}, "[chief:0 evaluator:0 ps:0 helper ps:1 helper]", "map[chief:[10.0.0.1:29511] ps:[10.0.0.3:29513 10.0.0.4:29514]]"},
		{2, 1, Options{Evaluator: true}, "[chief:0 evaluator:0]", "map[chief:[10.0.0.1:29511]]"},
	} {
		plan, err := Make("tensorflow", cluster(c.nodes, 4), Job{Command: []string{"t.py"}, ProcsPerNode: c.procs, MasterPort: 29511, Options: c.options})
		if err != nil {
			t.Fatal(err)
		}
		tasks, clusters := tfConfigs(t, plan)
		if fmt.Sprint(tasks) != c.tasks {
			t.Errorf("%d × %d %+v: tasks %v, want %s", c.nodes, c.procs, c.options, tasks, c.tasks)
		}
		for _, got := range clusters {
			if got != c.cluster {
				t.Errorf("%d × %d %+v: cluster %s, want %s", c.nodes, c.procs, c.options, got, c.cluster)
			}
		}
		if plan.Ports != c.nodes*c.procs || plan.Leads != (c.options.ParameterServers > 0) {
			t.Errorf("%d × %d: %d ports, leads %v", c.nodes, c.procs, plan.Ports, plan.Leads)
		}
	}
}

func TestAPlannedPortOfATaskHasAName(t *testing.T) {
	plan, err := Make("tensorflow", cluster(2, 0), Job{Command: []string{"t.py"}, PortName: "PORT"})
	if err != nil {
		t.Fatal(err)
	}
	if _, clusters := tfConfigs(t, plan); clusters[0] != "map[worker:[10.0.0.1:PORT 10.0.0.2:PORT+1]]" {
		t.Error(clusters[0])
	}
}
