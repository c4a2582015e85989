package checkup

import (
	"slices"
	"testing"

	"github.com/dlwb/dlwb/remote/environment"
)

// The nodes of a job work in one environment, on a disk that all of them see.
func TestEachNodeIsAskedByThePythonOfItsEnvironment(t *testing.T) {
	one, two := environment.Result{Python: "/home/ada/venv/bin/python"}, environment.Result{Python: "/opt/python", Wrap: []string{"enter"}}
	for _, c := range []struct {
		envs []environment.Result
		node int
		want []string
	}{{nil, 0, []string{"python3"}}, {[]environment.Result{one}, 0, []string{one.Python}}, {[]environment.Result{one}, 3, []string{one.Python}},
		{[]environment.Result{one, two}, 1, []string{"enter", two.Python}}, {[]environment.Result{one, two}, 2, []string{"python3"}}} {
		if got := (Cluster{Envs: c.envs}).python(c.node); !slices.Equal(got, c.want) {
			t.Errorf("node %d of %d environments: %q, want %q", c.node, len(c.envs), got, c.want)
		}
	}
}
