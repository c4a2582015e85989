//go:build linux

package sagemakerstory

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/fakesagemaker"
	"github.com/dlwb/dlwb/internal/sample"
)

// changing are the calls that make or remove something, and those that decide about
// it; the others are between them.
var changing = map[string]bool{"PutObject": true, "CreateTrainingJob": true, "StopTrainingJob": true, "AddTags": true, "DeleteObject": true, "ListObjectsV2": true, "DescribeTrainingJob": true}

// dlwb is ended by SIGKILL at each call that changes something, before it is carried
// out or when it was and before the reply; another dlwb takes everything down. Nothing
// is left, and there is no second job.
func TestADlwbThatIsKilledAtAnyCallLeavesNothing(t *testing.T) {
	const most = 9
	points := sample.Of(t, 4, 2*most, "moments")
	for i := range points {
		point := i
		if points < 2*most {
			point = []int{0, 5, 4, 10}[i] // around PutObject and CreateTrainingJob
		}
		nth, after := point/2+1, point%2 == 1
		t.Run(fmt.Sprintf("call %d, after it %v", nth, after), func(t *testing.T) { killedAt(t, nth, after) })
	}
}

func killedAt(t *testing.T, nth int, after bool) {
	p := newProject(t)
	p.profile("sagemaker", "{engine: plain, command: train.py 0.01}", "")
	var pid, seen atomic.Int64
	kill := func(call string) bool {
		if !changing[call] || pid.Load() == 0 || seen.Add(1) != int64(nth) {
			return false
		}
		_ = syscall.Kill(int(pid.Load()), syscall.SIGKILL)
		return true
	}
	if after {
		p.fake.Cut(func(call string, _ int) bool { return kill(call) })
	} else {
		p.fake.Answer(func(call string, _ int) *fakesagemaker.Error {
			if kill(call) {
				return &fakesagemaker.Error{Status: 500, Code: "InternalFailure", Says: "nobody hears this"}
			}
			return nil
		})
	}
	cmd := p.Command("run", "--plain", "--down")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid.Store(int64(cmd.Process.Pid))
	err := cmd.Wait()
	pid.Store(0)
	if err == nil {
		t.Logf("it was through before call %d", nth)
	}
	if text, downErr := p.Try("down", "jobs", "--plain"); downErr != nil && !strings.Contains(text, "no cluster") {
		t.Errorf("down: %v\n%s", downErr, text)
	}
	if jobs := p.fake.Jobs(); len(jobs) > 1 {
		t.Errorf("there are %d jobs of one run: %q", len(jobs), jobs)
	}
	p.clean()
}
