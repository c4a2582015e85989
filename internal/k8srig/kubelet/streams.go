package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	dto "github.com/prometheus/client_model/go"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	core "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// GetContainerLogs reads a log with the kubelet's own reader.
func (k *Kubelet) GetContainerLogs(ctx context.Context, namespace, name, of string, o api.ContainerLogOpts) (io.ReadCloser, error) {
	p, err := k.get(namespace, name)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	c := p.containers[of]
	path, restarts := "", int32(0)
	if c != nil {
		path, restarts = c.log, c.restarts
	}
	k.mu.Unlock()
	if c == nil {
		return nil, errdefs.InvalidInputf("container %q in pod %q is waiting to start: ContainerCreating", of, name)
	}
	if o.Previous {
		if restarts == 0 {
			return nil, errdefs.InvalidInputf("previous terminated container %q in pod %q not found", of, name)
		}
		path = filepath.Join(filepath.Dir(path), fmt.Sprint(restarts-1)+".log")
	}
	if _, err := os.Stat(path); err != nil {
		return nil, errdefs.NotFound(err.Error())
	}
	return readLogs(ctx, path, o, func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return c.log == path && c.state.Running != nil
	}), nil
}

func (p *pod) spec(name string) *core.Container {
	for i := range p.object.Spec.Containers {
		if p.object.Spec.Containers[i].Name == name {
			return &p.object.Spec.Containers[i]
		}
	}
	return &p.object.Spec.Containers[0]
}

// RunInContainer runs a command beside the one of a container.
func (k *Kubelet) RunInContainer(ctx context.Context, namespace, name, of string, argv []string, a api.AttachIO) error {
	p, err := k.get(namespace, name)
	if err != nil {
		return err
	}
	if a.TTY() { // a real pty, through script(1)
		argv = []string{"script", "-qec", strings.Join(argv, " "), "/dev/null"}
	}
	c := p.spec(of)
	k.mu.Lock()
	pid, err := initOf(p.containers[c.Name])
	k.mu.Unlock()
	if err != nil {
		return err
	}
	cmd := exec.Command("nsenter", append([]string{"-t", strconv.Itoa(pid), "-m", "-u", "-n", "-p", "-r", "-w", "--"}, argv...)...)
	cmd.Env = k.env(k.vars(p, c))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.Stdin() != nil {
		in, _ := cmd.StdinPipe()
		go func() { _, _ = io.Copy(in, a.Stdin()); in.Close() }()
	}
	if a.Stdout() != nil {
		cmd.Stdout = a.Stdout()
	}
	if a.Stderr() != nil {
		cmd.Stderr = a.Stderr()
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-ctx.Done():
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		case <-over:
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exitError{exit.ExitCode()}
	}
	return err
}

// exitError is how a command ended, as the API passes it on.
type exitError struct{ code int }

func (e exitError) Error() string {
	return fmt.Sprintf("command terminated with exit code %d", e.code)
}
func (e exitError) String() string { return e.Error() }

// Exited reports that there is a code.
func (exitError) Exited() bool { return true }

// ExitStatus is the code.
func (e exitError) ExitStatus() int { return e.code }

// AttachToContainer is not there.
func (k *Kubelet) AttachToContainer(context.Context, string, string, string, api.AttachIO) error {
	return errors.New("attach is not supported")
}

// PortForward connects to a port of 127.0.0.1 in the pod, as a kubelet does.
func (k *Kubelet) PortForward(ctx context.Context, namespace, name string, port int32, s io.ReadWriteCloser) error {
	p, err := k.get(namespace, name)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "ip", "netns", "exec", p.ns, self, "connect", "127.0.0.1:"+strconv.Itoa(int(port)))
	in, _ := cmd.StdinPipe()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = s, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _, _ = io.Copy(in, s); in.Close() }()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// GetStatsSummary tells nothing.
func (k *Kubelet) GetStatsSummary(context.Context) (*stats.Summary, error) {
	return &stats.Summary{}, nil
}

// GetMetricsResource tells nothing.
func (k *Kubelet) GetMetricsResource(context.Context) ([]*dto.MetricFamily, error) { return nil, nil }
