//go:build linux

package ecsstory

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeecr"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// withDocker is a project whose image is built from a Dockerfile, by a docker of tests.
func withDocker(t *testing.T, more string) (*project, *fakeecr.Docker) {
	t.Helper()
	p, docker := newProject(t), fakeecr.NewDocker(t)
	p.fake.SetECR(fakeecr.New("us-west-2", "team/train"))
	t.Cleanup(p.fake.ECR().Close)
	for i, pair := range p.Env {
		if rest, is := strings.CutPrefix(pair, "PATH="); is {
			p.Env[i] = "PATH=" + docker.Dir + ":" + rest
		}
	}
	p.Write("Dockerfile", "FROM scratch\nCOPY requirements.txt /app/\n")
	p.Write("requirements.txt", "ray\n")
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", "machines: {count: 1, image: ./Dockerfile, repository: team/train, "+more+"}\nlimits: {lifetime: 1h}\n")
	return p, docker
}

// A whole life with an image of the profile's own: its containers are of what was pushed,
// another run of the cluster builds nothing, another image is refused, and the end says
// where the image stays.
func TestARayJobRunsInTheImageOfItsDockerfile(t *testing.T) {
	sample.Leave(t)
	t.Parallel()
	p, docker := withDocker(t, "instance: m5.xlarge")
	plan := p.Must("plan")
	for _, want := range []string{"Dockerfile and 1 file are built here by docker for linux/amd64, and pushed to " + p.fake.ECR().Host + "/team/train", "may pull the image", "image " + p.fake.ECR().Host + "/team/train:dlwb-"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan does not say %q:\n%s", want, plan)
		}
	}
	p.Must("run", "--json")
	tags := p.fake.ECR().Tags("team/train")
	if len(tags) != 1 {
		t.Fatalf("the tags are %v", tags)
	}
	name := ""
	for tag, digest := range tags {
		name = tag
		seen := 0
		for _, c := range p.fake.Calls() {
			if c.Name == "RegisterTaskDefinition" {
				if seen++; !strings.Contains(string(c.Body), `"image":"`+p.fake.ECR().Host+"/team/train@"+digest+`"`) {
					t.Errorf("a task definition is %s", c.Body)
				}
			}
		}
		if seen != 2 {
			t.Errorf("there are %d task definitions", seen)
		}
	}
	p.Write("train.py", jobstory.Script+"\n# changed\n")
	if out := p.Must("run", "--plain"); !strings.Contains(out, "unchanged: "+p.fake.ECR().Host+"/team/train:"+name) || len(docker.Calls("build")) != 1 {
		t.Errorf("the second run says\n%s", out)
	}
	p.Write("requirements.txt", "ray==2.40\n")
	if out, err := p.Try("run", "--plain"); err == nil || !strings.Contains(out, "was made with machines.image") {
		t.Errorf("a run with another image: %v\n%s", err, out)
	}
	out := p.Must("down", "jobs", "--plain")
	if want := "aws ecr batch-delete-image --region us-west-2 --repository-name team/train --image-ids imageTag=" + name + " removes it"; strings.Count(out, want) != 1 {
		t.Errorf("down says\n%s", out)
	}
	p.clean()
}

// Before anything is made, who may not pull the image is named.
func TestARoleThatMayNotPullTheImageIsSaid(t *testing.T) {
	t.Parallel()
	p, _ := withDocker(t, "instance: m5.xlarge, task_execution_role: 'arn:aws:iam::123456789012:role/ecs'")
	p.fake.Refuse("ecr:BatchGetImage")
	if out, _ := p.Try("plan"); !strings.Contains(out, "arn:aws:iam::123456789012:role/ecs may not ecr:BatchGetImage: no container would start") || !strings.Contains(out, "on arn:aws:ecr:us-west-2:123456789012:repository/team/train") {
		t.Errorf("the plan says\n%s", out)
	}
}
