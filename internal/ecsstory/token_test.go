//go:build linux

package ecsstory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const executing = "machines: {count: 2, instance: m5.xlarge, image: 'rayproject/ray:2.40.0', task_execution_role: 'arn:aws:iam::123456789012:role/ecsTaskExecutionRole'}\n"

// With an execution role no call of ECS has the token of Ray in it: it is an encrypted
// parameter, which goes with the cluster.
func TestTheTokenOfRayStandsInNoTaskDefinition(t *testing.T) {
	t.Parallel()
	for name, machines := range map[string]string{"with a role": executing, "without": machines} {
		p := newProject(t)
		p.profile("ecs", "{engine: plain, command: train.py 0.01}", machines)
		if out := p.Must("plan"); strings.Contains(out, "stands in the task definitions") != (name == "without") {
			t.Errorf("%s: the plan says\n%s", name, out)
		}
		if out := p.Must("run", "--plain"); !strings.Contains(out, "every rank ended with code 0") {
			t.Errorf("%s: %s", name, out)
		}
		found, _ := filepath.Glob(filepath.Join(p.Dir, "..", "*", "*", "*", "*", "ray-token"))
		if len(found) == 0 {
			_ = filepath.WalkDir(filepath.Dir(p.Dir), func(path string, e os.DirEntry, _ error) error {
				if e != nil && e.Name() == "ray-token" {
					found = append(found, path)
				}
				return nil
			})
		}
		if len(found) != 1 {
			t.Fatalf("%s: tokens are %q", name, found)
		}
		token, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]int{}
		for _, c := range p.fake.Calls() {
			if strings.Contains(string(c.Body), string(token)) {
				in[c.Name]++
			}
		}
		if name == "without" && in["RegisterTaskDefinition"] != 2 || name != "without" && (len(in) != 1 || in["PutParameter"] != 1) {
			t.Errorf("%s: the token is in %v", name, in)
		}
		if out := p.Must("down", "jobs", "--plain"); strings.Contains(out, "ssm-parameter") == (name == "without") {
			t.Errorf("%s: down says\n%s", name, out)
		}
		p.clean()
	}
	p := newProject(t)
	p.fake.Refuse("ssm:GetParameters")
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", executing)
	if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, "may not ssm:GetParameters") {
		t.Errorf("%v\n%s", err, out)
	}
	p.clean()
}
