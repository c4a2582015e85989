package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-client/pkg/logs"
)

// criLog is a container's log in the CRI's format ("TIME stdout F line"), rotated by rename:
// what containerd writes and the kubelet rotates. It is read by the kubelet's own reader.
type criLog struct {
	mu   sync.Mutex
	path string
	f    *os.File
	n    int64
	max  int64
}

func openLog(path string, max int64) (*criLog, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &criLog{path: path, f: f, max: max}, nil
}

func (l *criLog) Close() error { l.mu.Lock(); defer l.mu.Unlock(); return l.f.Close() }

func (l *criLog) line(stream, tag string, b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.max > 0 && l.n >= l.max {
		l.f.Close()
		os.Rename(l.path, l.path+"."+time.Now().Format("20060102-150405"))
		if f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err == nil {
			l.f, l.n = f, 0
		}
	}
	n, _ := fmt.Fprintf(l.f, "%s %s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), stream, tag, b)
	l.n += int64(n)
}

const maxLine = 16 << 10 // containerd's max_container_log_line_size

type criStream struct {
	l    *criLog
	name string
	buf  []byte
}

func (l *criLog) stream(name string) *criStream { return &criStream{l: l, name: name} }

func (s *criStream) Write(b []byte) (int, error) {
	s.buf = append(s.buf, b...)
	for {
		i := bytes.IndexByte(s.buf, '\n')
		switch {
		case i >= 0 && i <= maxLine:
			s.l.line(s.name, "F", s.buf[:i])
			s.buf = s.buf[i+1:]
		case len(s.buf) > maxLine:
			s.l.line(s.name, "P", s.buf[:maxLine])
			s.buf = s.buf[maxLine:]
		default:
			return len(b), nil
		}
	}
}

func (s *criStream) flush() {
	if len(s.buf) > 0 {
		s.l.line(s.name, "P", s.buf)
		s.buf = nil
	}
}

type runtimeStub struct {
	internalapi.RuntimeService
	running func() bool
}

func (r runtimeStub) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	st := runtimeapi.ContainerState_CONTAINER_EXITED
	if r.running() {
		st = runtimeapi.ContainerState_CONTAINER_RUNNING
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{State: st}}, nil
}

// readLogs answers with the real kubelet's log reader: sinceTime, tail, limitBytes, timestamps, follow over rotation.
func readLogs(ctx context.Context, path string, o api.ContainerLogOpts, running func() bool) io.ReadCloser {
	a := &v1.PodLogOptions{Follow: o.Follow, Timestamps: o.Timestamps}
	if o.Tail > 0 {
		n := int64(o.Tail)
		a.TailLines = &n
	}
	if o.LimitBytes > 0 {
		n := int64(o.LimitBytes)
		a.LimitBytes = &n
	}
	if o.SinceSeconds > 0 {
		n := int64(o.SinceSeconds)
		a.SinceSeconds = &n
	}
	if !o.SinceTime.IsZero() {
		a.SinceTime = &metav1.Time{Time: o.SinceTime}
	}
	ctx, cancel := context.WithCancel(ctx)
	r, w := io.Pipe()
	go func() {
		err := logs.ReadLogs(ctx, nil, path, "", logs.NewLogOptions(a, time.Now()), runtimeStub{running: running}, w, w)
		if ctx.Err() != nil {
			err = nil
		}
		w.CloseWithError(err)
	}()
	return pipe{r, cancel}
}

type pipe struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (p pipe) Close() error { p.cancel(); return p.PipeReader.Close() }
