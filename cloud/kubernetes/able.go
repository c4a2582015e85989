package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	//lint:ignore SA1019 client-go still hands out connections of this package
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/client-go/util/exec"

	"github.com/dlwb/dlwb/internal/job"
)

// right is what somebody may do, as an access review is asked.
type right struct{ verb, group, resource, sub string }

func (r right) String() string {
	name := r.resource
	if r.sub != "" {
		name += "/" + r.sub
	}
	if r.group != "" {
		name += "." + r.group
	}
	return r.verb + " " + name
}

// may asks the cluster whether the caller has a right in the namespace.
func (d *door) may(ctx context.Context, r right) (bool, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	review, err := d.auth.SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorization.ResourceAttributes{Namespace: d.Namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.sub},
	}}, meta.CreateOptions{})
	if err != nil {
		return false, d.explain(err)
	}
	return review.Status.Allowed, nil
}

// The rights behind what a replica can do besides.
var (
	rightExec    = right{verb: "create", resource: "pods", sub: "exec"}
	rightForward = right{verb: "create", resource: "pods", sub: "portforward"}
)

// lacks are what the replicas can't do here, by the rights of the caller. Where
// that can't be asked, nothing is said to lack: the call itself will tell.
func (d *door) lacks(ctx context.Context) []job.Lack {
	all := []job.Lack{
		{Capability: job.Files, Why: "nothing is brought home from pods: what a run writes lies in them, or on its volumes",
			Next: "write results to a volume (machines.volumes)"},
		{Capability: job.Suspend, Why: "pods can't be suspended", Next: "stop the run and run it again from its checkpoint"},
	}
	// Its replicas can do these, where the caller may; the keys for them reach nodes
	// alone so far.
	for _, c := range []struct {
		what  []job.Capability
		right right
		cant  string
		by    string
	}{
		{[]job.Capability{job.Exec, job.Telemetry}, rightExec, "run commands in pods", "exec -it POD -- sh"},
		{[]job.Capability{job.Dial}, rightForward, "forward ports of pods", "port-forward POD PORT"},
	} {
		why, next := "dlwb does not "+c.cant+" by its keys yet", "kubectl -n "+d.Namespace+" "+c.by
		if yes, err := d.may(ctx, c.right); err == nil && !yes {
			why, next = "you may not "+c.cant+" of "+d.place.String(), fmt.Sprintf("ask for the right: kubectl auth can-i %s %s/%s -n %s", c.right.verb, c.right.resource, c.right.sub, d.Namespace)
		}
		for _, what := range c.what {
			all = append(all, job.Lack{Capability: what, Why: why, Next: next})
		}
	}
	return all
}

// running is the pod whose container runs now.
func (r *replica) running(ctx context.Context) (*door, *core.Pod, error) {
	d, err := r.door()
	if err != nil {
		return nil, nil, err
	}
	pod, err := r.pod(ctx, d)
	if err != nil {
		return nil, nil, err
	}
	if c := containerOf(pod, r.kind().container); c == nil || c.State.Running == nil {
		return nil, nil, fmt.Errorf("replica %d of job %s does not run", r.number, r.ref.Name)
	}
	return d, pod, nil
}

// mostOutput is how much of a command's output is kept.
const mostOutput = 8 << 20

// Output runs a line of sh in the pod.
func (r *replica) Output(ctx context.Context, line string) ([]byte, error) {
	var out, said limited
	err := r.exec(ctx, []string{"sh", "-c", line}, &out, &said)
	var code exec.CodeExitError
	if err != nil && !errors.As(err, &code) {
		return nil, err
	}
	return out.Bytes(), nil
}

// limited is a buffer that takes so much and drops the rest.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	_, _ = l.Buffer.Write(p[:min(len(p), max(mostOutput-l.Len(), 0))])
	return len(p), nil
}

// exec runs a command in the pod. When ctx ends the call ends, and the command
// does not: what may hang bounds itself.
func (r *replica) exec(ctx context.Context, argv []string, out, said io.Writer) error {
	d, pod, err := r.running(ctx)
	if err != nil {
		return err
	}
	url := d.core.RESTClient().Post().Resource("pods").Namespace(d.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&core.PodExecOptions{Container: r.kind().container, Command: argv, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	ws, err := remotecommand.NewWebSocketExecutor(d.config, http.MethodGet, url.String())
	if err != nil {
		return err
	}
	old, err := remotecommand.NewSPDYExecutor(d.config, http.MethodPost, url)
	if err != nil {
		return err
	}
	both, err := remotecommand.NewFallbackExecutor(ws, old, oldNeeded)
	if err != nil {
		return err
	}
	return d.explain(both.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: out, Stderr: said}))
}

// oldNeeded reports that what is in between does not let websockets through.
func oldNeeded(err error) bool {
	return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
}

// DialContext reaches a port of the pod: each connection has a forward of its
// own, so that one that is refused ends no other.
func (r *replica) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	d, pod, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := d.forward(ctx, pod.Name)
	if err != nil {
		return nil, d.explain(err)
	}
	c, err := openPort(conn, port, pod.Name)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// forward opens a connection on which ports of a pod are reached.
func (d *door) forward(ctx context.Context, pod string) (httpstream.Connection, error) {
	url := d.core.RESTClient().Post().Resource("pods").Namespace(d.Namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(d.config)
	if err != nil {
		return nil, err
	}
	ws, err := portforward.NewSPDYOverWebsocketDialer(url, d.config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialer(ws, spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url), oldNeeded)
	type answer struct {
		conn httpstream.Connection
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		got <- answer{conn, err}
	}()
	select {
	case a := <-got:
		return a.conn, a.err
	case <-ctx.Done():
		go func() {
			if a := <-got; a.err == nil {
				_ = a.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// openPort makes the two streams of one connection to a port.
func openPort(conn httpstream.Connection, port, pod string) (net.Conn, error) {
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("%q is no port", port)
	}
	headers := http.Header{}
	headers.Set(core.StreamType, core.StreamTypeError)
	headers.Set(core.PortHeader, port)
	headers.Set(core.PortForwardRequestIDHeader, "0")
	failures, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("forward port %s of pod %s: %w", port, pod, err)
	}
	_ = failures.Close() // nothing is written to it
	headers.Set(core.StreamType, core.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("forward port %s of pod %s: %w", port, pod, err)
	}
	c := &portConn{conn: conn, data: data, local: portAddr("dlwb"), remote: portAddr("pod " + pod + ":" + port), failed: make(chan struct{})}
	go c.hear(failures)
	return c, nil
}

// portConn is a connection to a port of a pod.
type portConn struct {
	conn          httpstream.Connection
	data          httpstream.Stream
	local, remote portAddr
	once          sync.Once
	failed        chan struct{} // closed when the stream of failures has ended
	failure       error
}

type portAddr string

// Network is "pod".
func (portAddr) Network() string  { return "pod" }
func (a portAddr) String() string { return string(a) }

// hear waits for what the node says of the connection.
func (c *portConn) hear(failures httpstream.Stream) {
	said, _ := io.ReadAll(io.LimitReader(failures, 4096))
	if len(said) > 0 {
		c.failure = fmt.Errorf("%s: %s", c.remote, bytes.TrimSpace(said))
	}
	close(c.failed)
	if len(said) > 0 {
		_ = c.Close()
	}
}

func (c *portConn) Read(p []byte) (int, error) {
	n, err := c.data.Read(p)
	if err != nil && n == 0 {
		select { // the reason comes on the other stream
		case <-c.failed:
			if c.failure != nil {
				return 0, c.failure
			}
		case <-time.After(time.Second):
		}
	}
	return n, err
}

func (c *portConn) Write(p []byte) (int, error) { return c.data.Write(p) }

// CloseWrite says that nothing more is written.
func (c *portConn) CloseWrite() error { return c.data.Close() }

// Close ends the connection.
func (c *portConn) Close() (err error) {
	c.once.Do(func() { err = c.conn.Close() })
	return err
}

func (c *portConn) LocalAddr() net.Addr  { return c.local }
func (c *portConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline ends the connection at a time: streams know no other way.
func (c *portConn) SetDeadline(t time.Time) error {
	if !t.IsZero() && !t.After(time.Now()) {
		_ = c.Close()
	}
	return nil
}

// SetReadDeadline is SetDeadline.
func (c *portConn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }

// SetWriteDeadline is SetDeadline.
func (c *portConn) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }
