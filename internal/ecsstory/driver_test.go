//go:build linux

package ecsstory

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// With engine ray the script is the driver, beside the head: it runs once, finds the
// cluster, and its exit code is the run's. Each machine is a node of the run.
func TestAScriptOfRayIsTheDriverOfItsJob(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	for _, c := range []struct {
		name, end string
		code      float64
	}{{"well", "print('through', flush=True)", 0}, {"badly", "sys.exit(3)", 3}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t)
			p.Write("train.py", `import os, sys
print("driver", os.environ["DLWB_WORKERS"], os.environ["RANK"], os.environ["WHAT"], flush=True)
for step in range(1, 4):
    print(f"step {step}/3 loss {4 / step:.4f}", flush=True)
`+c.end+"\n")
			p.profile("ecs", `{engine: ray, command: train.py, env: {WHAT: "a 'b' $c"}}`, "environment: {python: python3}\n")
			if out := p.Must("plan"); !strings.Contains(out, "ray") || strings.Contains(out, "needs processes and files") {
				t.Errorf("the plan says\n%s", out)
			}
			out, err := p.Try("run", "--json", "--down")
			events := jobstory.Said(t, out)
			if (err == nil) != (c.code == 0) {
				t.Errorf("%v\n%s", err, out)
			}
			if ended := jobstory.EventOf(t, events, "run_ended"); ended["exit_code"] != c.code {
				t.Errorf("%v", ended)
			}
			if up := jobstory.EventOf(t, events, "cluster_up"); len(up["nodes"].([]any)) != 3 {
				t.Errorf("a head and two workers are %v", up["nodes"])
			}
			want := "driver 2 0 a 'b' $c\nstep 1/3 loss 4.0000\nstep 2/3 loss 2.0000\nstep 3/3 loss 1.3333\n"
			if log := p.Logs()["rank-0.log"]; !strings.HasPrefix(log, want) || strings.Count(log, "driver") != 1 {
				t.Errorf("the log is %q", log)
			}
			if receipt := jobstory.EventOf(t, events, "receipt"); receipt["proven"] != true {
				t.Errorf("%v", receipt)
			}
			p.clean()
		})
	}
}
