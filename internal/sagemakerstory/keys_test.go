//go:build linux

package sagemakerstory

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
)

// Everything by keys: the plan with the call, the run with its curve and what CloudWatch
// has of its machines, the keys that can't do anything with the reason and the way round,
// the end with its receipt.
func TestATrainingJobByKeys(t *testing.T) {
	sample.Leave(t)
	if os.Getenv("DLWB_KEYS") == "" {
		t.Skip("it goes through a whole life in a terminal: make test-sagemaker runs it, by DLWB_KEYS=1")
	}
	const soon, late = 15 * time.Second, 60 * time.Second
	p := newProject(t)
	p.fake.Use = func(host, metric string) (float64, bool) {
		value, known := map[string]float64{"CPUUtilization": 2400, "MemoryUtilization": 25, "GPUUtilization": 200, "GPUMemoryUtilization": 40, "DiskUtilization": 10}[metric]
		return value, known && strings.HasSuffix(host, "/algo-1")
	}
	p.profile("sagemaker", "{engine: plain, command: train.py 2}", "machines: {count: 2, instance: ml.g5.12xlarge, execution_role: Training}\nlimits: {lifetime: 2h}\n")
	x := p.Terminal()
	x.Press(p.Program+" --theme dark; echo code $?", "Enter")
	x.See(soon, "› home", "R")
	x.Press("R")
	x.See(soon, "› plan", "2 nodes of sagemaker", "✓ role", "✓ quota", "$14.18", "R run")
	x.Press("R")
	x.See(late, "● training", "━ loss", "world size 8 on 2 nodes", "$14.18")
	x.Press("s")
	x.See(soon, "✓ upload", "✓ queue", "✓ image")
	x.Refused(map[string][]string{
		"J": {"Jupyter", "no port of this training job is reached from here", "write event files"},
		"T": {"TensorBoard", "no port of this training job is reached from here"},
		"S": {"shell", "this training job gives no way in", "machines.remote_debug: true"},
	})
	x.Press("n")
	x.See(late, "mean of 4 × A10G", "50")
	x.Press("l")
	x.See(soon, "step 3/40")
	x.Press("X")
	x.See(soon, "Tear down jobs?", "› Cancel", "type jobs to agree")
	x.Type("jobs")
	x.See(soon, "› Tear down")
	x.Press("Enter")
	x.See(late, "› receipt", "Everything is gone", "training-job", "s3-objects", "SageMaker says Stopped")
	x.Press("q")
	p.clean()
}
