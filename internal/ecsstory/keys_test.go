//go:build linux

package ecsstory

import (
	"os"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// Everything by keys: the plan, the steps of the cluster, the run with its curve, the
// keys that can't do anything with the reason and the way round, and the receipt with
// each thing that was made.
func TestARayClusterByKeys(t *testing.T) {
	sample.Leave(t)
	if os.Getenv("DLWB_KEYS") == "" {
		t.Skip("it goes through a whole life in a terminal: make test-ecs runs it, by DLWB_KEYS=1")
	}
	t.Parallel()
	const soon, late = 15 * time.Second, 90 * time.Second
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 0.5}", "limits: {lifetime: 2h}\n")
	x := p.Terminal()
	x.Press(p.Program+" --theme dark; echo code $?", "Enter")
	x.See(soon, "› home", "R")
	x.Press("R")
	x.See(soon, "› plan", "2 nodes of ecs", "✓ machines", "✓ instance profile", "R run")
	x.Press("R")
	x.See(late, "● training", "━ loss", "world size 2")
	x.Press("s")
	x.See(soon, "✓ cluster", "✓ machines", "✓ head", "✓ workers", "✓ ray", "✓ upload", "✓ queue")
	x.Refused(map[string][]string{
		"J": {"Jupyter", "no port of a container is reached from here", "docs/ecs.md"},
		"T": {"TensorBoard", "no port of a container is reached from here", "docs/ecs.md"},
		"S": {"shell", "no agent runs in containers of ECS", "aws ssm start-session --region us-west-2 --target INSTANCE"},
		"n": {"nodes", "no agent runs in containers of ECS", "Ray's dashboard", "docs/ecs.md"},
	})
	x.Press("l")
	x.See(soon, "step 3/40")
	x.Press("X")
	x.See(soon, "Tear down jobs?", "› Cancel", "type jobs to agree")
	x.Type("jobs")
	x.See(soon, "› Tear down")
	x.Press("Enter")
	x.See(late, "› receipt", "Everything is gone", "auto-scaling-group", "ecs-cluster", "security-group")
	x.Press("q")
	p.clean()
}
