package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one of a pod.
type container struct {
	cmd         *exec.Cmd
	log         string
	state, last core.ContainerState
	restarts    int32
	done        chan struct{}
}

// terminate asks the containers of a pod to end, and gives those that run.
func (p *pod) terminate() (running []*container) {
	for _, c := range p.containers {
		if c.cmd != nil && c.state.Running != nil {
			signalInit(c, syscall.SIGTERM)
			running = append(running, c)
		}
	}
	return running
}

// awaitAll waits for containers; those that take longer than the grace are
// killed.
func awaitAll(running []*container, grace time.Duration) {
	over := time.After(grace)
	for _, c := range running {
		select {
		case <-c.done:
		case <-over:
			_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
			<-c.done
		}
	}
}

// signalInit tells the first process of a container alone, as a runtime does.
func signalInit(c *container, s syscall.Signal) {
	if pid, err := initOf(c); err == nil {
		_ = syscall.Kill(pid, s)
		return
	}
	_ = syscall.Kill(-c.cmd.Process.Pid, s)
}

// run runs the containers of a pod side by side. Init containers are left out:
// those of operators wait for names that the hosts file has.
func (k *Kubelet) run(p *pod) {
	var all sync.WaitGroup
	for i := range p.object.Spec.Containers {
		all.Go(func() { k.keep(p, &p.object.Spec.Containers[i]) })
	}
	all.Wait()
}

// keep runs a container, again where the pod wants that.
func (k *Kubelet) keep(p *pod, c *core.Container) {
	dir := filepath.Join(p.dir, "logs", c.Name)
	_ = os.MkdirAll(dir, 0o755)
	ct := &container{log: filepath.Join(dir, "0.log"), done: make(chan struct{})}
	defer close(ct.done)
	k.set(p, func() { p.containers[c.Name] = ct; ct.state = waiting("ContainerCreating", "") })
	if strings.HasPrefix(c.Image, "missing/") && !k.pulls(p, c, ct) {
		return
	}
	for pauseFor := time.Second; ; pauseFor = min(2*pauseFor, 10*time.Second) {
		end := k.once(p, c, ct)
		k.set(p, func() { ct.state = core.ContainerState{Terminated: &end} })
		if p.stopping || p.object.Spec.RestartPolicy == core.RestartPolicyNever || p.object.Spec.RestartPolicy == core.RestartPolicyOnFailure && end.ExitCode == 0 {
			return
		}
		k.set(p, func() {
			ct.restarts++
			ct.last = ct.state
			ct.state = waiting("CrashLoopBackOff", fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", pauseFor, c.Name, p.object.Name, p.object.Namespace, p.object.UID))
		})
		time.Sleep(pauseFor)
		if p.stopping {
			return
		}
		k.set(p, func() { ct.log = filepath.Join(dir, fmt.Sprint(ct.restarts)+".log") })
	}
}

// set changes something of a pod and tells it.
func (k *Kubelet) set(p *pod, change func()) {
	k.mu.Lock()
	change()
	k.mu.Unlock()
	k.push(p)
}

func waiting(reason, message string) core.ContainerState {
	return core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: message}}
}

// pulls stands for a registry that has no such image.
func (k *Kubelet) pulls(p *pod, c *core.Container, ct *container) bool {
	why := fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %q: not found", c.Image, c.Image)
	for i := 0; !p.stopping; i++ {
		state := waiting("ErrImagePull", "rpc error: code = NotFound desc = "+why)
		if i > 0 {
			state = waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: ErrImagePull: %s", c.Image, why))
		}
		k.set(p, func() { ct.state = state })
		time.Sleep(time.Second)
	}
	return false
}

// once runs a container to its end.
func (k *Kubelet) once(p *pod, c *core.Container, ct *container) core.ContainerStateTerminated {
	started := meta.Now()
	fail := func(reason, message string, code int32) core.ContainerStateTerminated {
		return core.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, StartedAt: started, FinishedAt: meta.Now()}
	}
	log, err := openLog(ct.log, k.o.LogMax)
	if err != nil {
		return fail("ContainerCannotRun", err.Error(), 128)
	}
	defer log.Close()
	cmd, note, err := k.command(p, c)
	if err != nil {
		return fail("CreateContainerError", err.Error(), 128)
	}
	out, said := log.stream("stdout"), log.stream("stderr")
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, said, time.Second
	if err := cmd.Start(); err != nil {
		return fail("ContainerCannotRun", err.Error(), 128)
	}
	k.set(p, func() {
		ct.cmd, ct.state = cmd, core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: started}}
	})
	err = cmd.Wait()
	out.flush()
	said.flush()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	end := fail("Completed", "", 0)
	if text, err := os.ReadFile(note); err == nil {
		end.Message = string(text[:min(len(text), 4096)])
	}
	if err != nil {
		if end.Message == "" && c.TerminationMessagePolicy == core.TerminationMessageFallbackToLogsOnError {
			end.Message = lastOf(ct.log)
		}
		end.Reason, end.ExitCode = "Error", codeOf(err)
		if oom(p.dir, c.Name) {
			end.Reason = "OOMKilled"
		}
	}
	return end
}

// lastOf is the end of a log, as a kubelet puts it into the status: two kilobytes of what
// was printed.
func lastOf(log string) string {
	text, _ := os.ReadFile(log)
	var said strings.Builder
	for line := range strings.Lines(string(text)) {
		if words := strings.SplitN(line, " ", 4); len(words) == 4 {
			said.WriteString(words[3])
		}
	}
	return said.String()[max(0, said.Len()-2048):]
}

// oom reports whether the kernel has ended the container for lack of memory: a
// test says so by a file, as no limit is set here.
func oom(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, "oom-"+name))
	return err == nil
}

func codeOf(err error) int32 {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 1
	}
	if status := exit.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(exit.ExitCode())
}

// status is what the API is told of a pod.
func (p *pod) status() core.PodStatus {
	s := *p.object.Status.DeepCopy()
	s.ContainerStatuses = nil
	running, failed, over, restarted := 0, 0, 0, false
	for _, c := range p.object.Spec.Containers {
		told := core.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, State: waiting("ContainerCreating", "")}
		if ct := p.containers[c.Name]; ct != nil {
			told.State, told.RestartCount, told.LastTerminationState = ct.state, ct.restarts, ct.last
			restarted = restarted || ct.restarts > 0
		}
		if told.State.Running != nil {
			running++
			told.Ready, told.Started = true, new(true)
		}
		if end := told.State.Terminated; end != nil {
			over++
			if end.ExitCode != 0 {
				failed++
			}
		}
		s.ContainerStatuses = append(s.ContainerStatuses, told)
	}
	n := len(p.object.Spec.Containers)
	switch {
	case over == n && failed > 0:
		s.Phase = core.PodFailed
	case over == n:
		s.Phase = core.PodSucceeded
	case running > 0 || over > 0 || restarted:
		s.Phase = core.PodRunning
	default:
		s.Phase = core.PodPending
	}
	ready := core.ConditionFalse
	if running == n {
		ready = core.ConditionTrue
	}
	s.Conditions = nil
	for kind, status := range map[core.PodConditionType]core.ConditionStatus{core.PodScheduled: core.ConditionTrue, core.PodInitialized: core.ConditionTrue, core.PodReady: ready, core.ContainersReady: ready} {
		s.Conditions = append(s.Conditions, core.PodCondition{Type: kind, Status: status, LastTransitionTime: meta.Now()})
	}
	return s
}

// initOf is the first process of a container, as this machine numbers it.
func initOf(c *container) (int, error) {
	if c == nil || c.cmd == nil || c.state.Running == nil {
		return 0, errors.New("the container is not running")
	}
	parent := c.cmd.Process.Pid
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", parent, parent))
	if err != nil {
		return 0, err
	}
	pid := 0
	if _, err := fmt.Sscan(string(text), &pid); err != nil {
		return 0, errors.New("the container is not running")
	}
	return pid, nil
}

func background() context.Context { return context.Background() }
