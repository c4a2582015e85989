//go:build linux

package ecsstory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/internal/fakeecs"
	"github.com/dlwb/dlwb/internal/sample"
)

// reads reports whether a call changes nothing.
func reads(call string) bool {
	return strings.HasPrefix(call, "Describe") || strings.HasPrefix(call, "Get") || strings.HasPrefix(call, "List") || strings.HasPrefix(call, "Simulate")
}

// dlwb is ended by SIGKILL at each call that changes something, before it is carried
// out or when it was and before the reply; another dlwb takes everything down. Nothing
// is left, and there is no second job.
func TestADlwbThatIsKilledAtAnyCallLeavesNothing(t *testing.T) {
	const most = 40
	points := sample.Of(t, 6, 2*most, "moments")
	for i := range points {
		point := i
		if points < 2*most {
			point = []int{1, 12, 19, 27, 34, 45}[i%6]
		}
		nth, after := point/2+1, point%2 == 1
		t.Run(fmt.Sprintf("call %d, after it %v", nth, after), func(t *testing.T) { killedAt(t, nth, after) })
	}
}

func killedAt(t *testing.T, nth int, after bool) {
	p := newProject(t)
	p.profile("ecs", "{engine: plain, command: train.py 0.01}", "")
	var pid, seen atomic.Int64
	kill := func(call string) bool {
		if reads(call) || pid.Load() == 0 || seen.Add(1) != int64(nth) {
			return false
		}
		t.Log("killed at", call)
		_ = syscall.Kill(int(pid.Load()), syscall.SIGKILL)
		return true
	}
	if after {
		p.fake.Cut(func(call string, _ int) bool { return kill(call) })
	} else {
		p.fake.Answer(func(call string, _ int) *fakeecs.Error {
			if kill(call) {
				return &fakeecs.Error{Status: 500, Code: "InternalFailure", Says: "nobody hears this"}
			}
			return nil
		})
	}
	cmd := p.command("run", "--plain", "--down")
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid.Store(int64(cmd.Process.Pid))
	err = cmd.Wait()
	pid.Store(0)
	if err == nil {
		t.Logf("it was through before call %d", nth)
	}
	if text, downErr := p.try("down", "jobs", "--plain"); downErr != nil && !strings.Contains(text, "no cluster") {
		t.Errorf("down: %v\n%s", downErr, text)
	}
	if n := p.fake.Posts(); n > 1 {
		t.Errorf("%d jobs were asked for", n)
	}
	p.clean()
}
