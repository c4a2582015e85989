package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"
	//lint:ignore SA1019 client-go still hands out connections of this package
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"

	"github.com/dlwb/dlwb/internal/job"
)

// Dir is where launch.sh starts the ranks.
func (r *replica) Dir() string { return cmp.Or(r.ref.Dir, dirWork+"/code") }

// Start starts a line of sh in the pod. The call ends with Close, and what it has
// started does not: the agent ends with its input.
func (r *replica) Start(ctx context.Context, line string) (job.Command, error) {
	d, pod, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	by, err := d.executor(pod.Name, &core.PodExecOptions{Container: r.kind().container, Command: []string{"sh", "-c", line}, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	// The call goes on when whoever has started it is done with starting.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &command{end: end}
	var input *io.PipeReader
	var output *io.PipeWriter
	input, c.in = io.Pipe()
	c.out, output = io.Pipe()
	go func() {
		defer end()
		err := by.StreamWithContext(life, remotecommand.StreamOptions{Stdin: input, Stdout: output, Stderr: &c.said})
		var code exec.CodeExitError
		if err == nil || errors.As(err, &code) {
			err = io.EOF
		} else {
			err = fmt.Errorf("run a command in pod %s: %w", pod.Name, d.explain(err))
		}
		_, _ = input.CloseWithError(err), output.CloseWithError(err)
	}()
	return c, nil
}

// command is a command that runs in a pod.
type command struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	said tail
	end  context.CancelFunc
}

func (c *command) Read(p []byte) (int, error)  { return c.out.Read(p) }
func (c *command) Write(p []byte) (int, error) { return c.in.Write(p) }
func (c *command) Said() string                { return c.said.String() }

// Close ends the call.
func (c *command) Close() error {
	c.end()
	return errors.Join(c.in.Close(), c.out.Close())
}

// executor runs a command in a pod: over a websocket, or as older clusters and
// proxies have it.
func (d *door) executor(pod string, o *core.PodExecOptions) (remotecommand.Executor, error) {
	url := d.api.ExecURL(d.Namespace, pod, o)
	ws, err := remotecommand.NewWebSocketExecutor(d.config, http.MethodGet, url.String())
	if err != nil {
		return nil, err
	}
	old, err := remotecommand.NewSPDYExecutor(d.config, http.MethodPost, url)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(ws, old, oldNeeded)
}

// oldNeeded reports that what is in between does not let websockets through.
func oldNeeded(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept string
}

// tailMost is how much of an error output is kept.
const tailMost = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept += string(p)
	t.kept = t.kept[max(0, len(t.kept)-tailMost):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(t.kept)
}
