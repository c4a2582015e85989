package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dlwb/dlwb/cloud/kubernetes/podlog"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
)

// sinkError is an error of whoever takes a log: trying again does not mend it.
type sinkError struct{ error }

func (e sinkError) Unwrap() error { return e.error }

// FollowLog reads the log of the replica's pod, also of one that takes the place
// of another. The end of a connection says nothing: the pod is asked then.
func (r *replica) FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error {
	d, err := r.door()
	if err != nil {
		return err
	}
	at, err := podlog.Read(from)
	if err != nil {
		return err
	}
	f := &follower{replica: r, door: d, log: log, pick: r.pick(log), at: at, last: from, sink: sink}
	for {
		done, err := f.once(ctx)
		var failed sinkError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &failed):
			return failed.error
		case done:
			return err
		}
		if err := waits.Pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
}

// pick tells which lines of the container are of a log.
func (r *replica) pick(log string) func([]byte) ([]byte, bool) {
	if r.ofRay() {
		return rayLines(log)
	}
	return pack.Lines(log, r.ref.Tagged)
}

// follower reads one log.
type follower struct {
	*replica
	door *door
	log  string
	pick func([]byte) ([]byte, bool)
	at   podlog.Cursor
	last job.Cursor // as it was handed over
	sink func(job.Chunk) error
}

// once follows the pod that there is until the connection ends; done: nothing
// more comes, ever.
func (f *follower) once(ctx context.Context) (done bool, err error) {
	pod, err := f.podOfLog(ctx, f.door, f.log)
	if err != nil {
		return permanent(err), err
	}
	c := containerOf(pod, f.kind().container)
	if pod == nil || c == nil || !begun(pod, f.kind().container) {
		return f.nothing(ctx, pod)
	}
	if uid := string(pod.UID); f.at.Pod != uid {
		f.at = podlog.Cursor{Pod: uid}
	}
	over := ending(c) != nil
	if err := f.read(ctx, pod.Name, !over, over && c.State.Terminated == nil); err != nil {
		if apierrors.IsNotFound(err) {
			return f.nothing(ctx, nil)
		}
		return permanent(err), err
	}
	return over, nil
}

// nothing decides what it means that there is no log: that it has not begun, or
// that the pod is gone for good.
func (f *follower) nothing(ctx context.Context, pod *core.Pod) (done bool, err error) {
	if pod != nil {
		return pod.Status.Phase == core.PodFailed || pod.Status.Phase == core.PodSucceeded, nil
	}
	l, err := f.lookAt(ctx, f.door, nil)
	if err != nil {
		return false, err
	}
	return stateOf(f.ref, f.number, l).Phase == job.Over, nil
}

// read asks for the log from the cursor on. The answer to a question that goes on
// ends with the container, with the connection, or with the node's kubelet.
func (f *follower) read(ctx context.Context, pod string, follow, previous bool) error {
	o := &core.PodLogOptions{Container: f.kind().container, Follow: follow, Previous: previous, Timestamps: true}
	if at := f.at.Since(); at != nil {
		o.SinceTime = &meta.Time{Time: *at}
	}
	stream, err := f.door.api.Log(ctx, f.ref.Namespace, pod, o)
	if err != nil {
		return err
	}
	defer stream.Close()
	return f.drain(stream, !follow)
}

// pieceMost is how much of a line without an end is held before it is passed on.
const pieceMost = 256 << 10

// drain passes on what is new of a stream. A last line without an end is only
// believed where the container has ended: else it is read again.
func (f *follower) drain(stream io.Reader, last bool) error {
	in := bufio.NewReaderSize(stream, 64<<10)
	r := podlog.NewReader(f.at)
	var held []byte
	for {
		piece, err := in.ReadSlice('\n')
		held = append(held, piece...)
		whole := err == nil
		if !whole && !errors.Is(err, bufio.ErrBufferFull) && err != nil {
			if len(held) > 0 && last && errors.Is(err, io.EOF) {
				if passed := f.pass(r, held, true); passed != nil {
					return passed
				}
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if whole || len(held) > pieceMost && !f.ref.Tagged {
			if err := f.pass(r, held, whole); err != nil {
				return err
			}
		}
		if whole {
			held = held[:0]
		} else if len(held) > lineMost {
			return errors.New("a line of the log has no end")
		}
	}
}

// lineMost bounds a line: what is longer is no text.
const lineMost = 64 << 20

// pass hands over what is new of a line.
func (f *follower) pass(r *podlog.Reader, raw []byte, whole bool) error {
	l, ok := podlog.Split(raw)
	if !ok {
		return nil
	}
	take := r.Take
	if !whole {
		take = r.Part
	}
	news, gap := take(l)
	if len(news) == 0 {
		return nil
	}
	next := r.At
	text, mine := f.pick(news)
	if gap {
		text = append([]byte("[dlwb: the node has rotated this log before it was read: lines are missing here]\n"), text...)
		mine = true
	}
	if !mine {
		return nil
	}
	if err := f.sink(job.Chunk{From: f.last, Next: next.Job(), Data: text}); err != nil {
		return sinkError{err}
	}
	f.at, f.last = next, next.Job()
	return nil
}

// HasAll reads what the log of a pod that is over has behind the cursors.
func (r *replica) HasAll(ctx context.Context, logs map[string]job.Cursor) (bool, error) {
	d, err := r.door()
	if err != nil {
		return false, err
	}
	for log, from := range logs {
		if all, err := r.hasAll(ctx, d, log, from); err != nil || !all {
			return false, err
		}
	}
	return true, nil
}

func (r *replica) hasAll(ctx context.Context, d *door, log string, from job.Cursor) (bool, error) {
	pod, err := r.podOfLog(ctx, d, log)
	if err != nil {
		return false, err
	}
	c := containerOf(pod, r.kind().container)
	if ending(c) == nil {
		// There is none, and nothing comes of it; but what prints what a driver of Ray
		// did goes on for a moment when that has ended.
		return !r.ofRay() || log == rayLog || c == nil || c.State.Running == nil, nil
	}
	at, err := podlog.Read(from)
	if err != nil {
		return false, err
	}
	if at.Pod != string(pod.UID) {
		at = podlog.Cursor{Pod: string(pod.UID)}
	}
	more := errors.New("there is more")
	f := &follower{replica: r, door: d, log: log, pick: r.pick(log), at: at, sink: func(job.Chunk) error { return more }}
	err = f.read(ctx, pod.Name, false, c.State.Terminated == nil)
	switch {
	case errors.Is(err, more):
		return false, nil
	case err != nil && !apierrors.IsNotFound(err):
		return false, err
	}
	return true, nil
}
