package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/internal/wholefile"
)

var _ cloud.Keeper = (*Provider)(nil)

// What a run writes lies in its pods, and is gone with them. So whoever watches a
// replica brings it home: every minute, and once more when the ranks have ended, for
// which the container waits (launch.sh). It lies in the directory of the life until it
// is put where results go.

// keepEvery is the pause between two looks while the ranks run.
var keepEvery = time.Minute

const (
	// keepSilent is for how long nothing may come of what is being brought.
	keepSilent = 2 * time.Minute
	// keptList and keptOwn are names in the archives of keep.py.
	keptList = ".dlwb-list"
	keptOwn  = ".dlwb-node"
)

// Bring writes what came home of a job into a directory, after one more look at pods
// that are there.
func (p *Provider) Bring(ctx context.Context, life cloud.Life, text string, into *os.Root) (left []string, err error) {
	r, err := readRef(text)
	if err != nil {
		return nil, err
	}
	if !r.Hold {
		return nil, &apiError{text: "nothing is brought home from the pods of job " + r.Name, next: "it needs the right " + rightExec.String() + ", and machines.hold above 0s; a volume keeps what is written to it"}
	}
	for _, one := range p.Open(life, text) {
		said, err := one.(*replica).bring(ctx, into)
		if left = append(left, said...); err != nil {
			return left, err
		}
	}
	return left, nil
}

// bring brings what one replica has written.
func (r *replica) bring(ctx context.Context, into *os.Root) (left []string, err error) {
	lost := ""
	if d, pod, err := r.running(ctx); err == nil && !r.done(pod) {
		ended, err := r.hasEnded(ctx, d, pod)
		if err == nil {
			err = r.round(ctx, d, pod)
		}
		if err == nil && ended {
			err = r.release(ctx, d, pod)
		}
		if err != nil {
			lost = "the newest of it did not come: " + err.Error()
		}
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		lost = r.lost()
	}
	if lost != "" {
		left = append(left, fmt.Sprintf("replica %d: %s", r.number, lost))
	}
	if _, err := os.Stat(filepath.Dir(r.stage())); errors.Is(err, fs.ErrNotExist) {
		return left, nil // nothing ever came
	}
	err = r.alone(ctx, func() error {
		skipped, err := copyTree(r.stage(), into)
		for _, text := range skipped {
			left = append(left, fmt.Sprintf("replica %d: %s", r.number, text))
		}
		return err
	})
	return left, err
}

// lost says that what a replica has written may have gone with its pod; empty: it had
// nothing, or all is here.
func (r *replica) lost() string {
	pod := r.noted()
	if r.ofRay() && r.number == 0 {
		pod = notedIn(r.headFile())
	}
	end := ending(containerOf(pod, r.kind().container))
	switch {
	case pod == nil || r.done(pod):
		return ""
	case end != nil && strings.Contains(end.Message, "launcher: not brought home"):
		return "what it wrote last went with its pod: no dlwb brought it home in time after its end (machines.hold)"
	case end == nil || end.ExitCode == 128+9 || end.Reason == "OOMKilled":
		return "what it wrote in the last minute before its end, if anything, went with its pod"
	}
	return ""
}

// doneMark is behind the name of a stage of which all is home, and has the pod's UID.
const doneMark = ".done"

// done reports whether all that a pod has written is home.
func (r *replica) done(pod *core.Pod) bool {
	text, err := os.ReadFile(r.stage() + doneMark)
	return err == nil && string(text) == string(pod.UID)
}

// stage is the directory here that has what came of a replica.
func (r *replica) stage() string {
	return filepath.Join(r.life.Dir, "kept", r.ref.Name, strconv.Itoa(r.number))
}

// keepHome brings home what the replica writes until ctx ends.
func (r *replica) keepHome(ctx context.Context) {
	for pause := time.Second; ctx.Err() == nil; {
		err := r.keepOnce(ctx)
		if err == nil {
			pause = time.Second
		} else if pause *= 2; pause > 10*time.Second {
			pause = 10 * time.Second
		}
		if waits.Pause(ctx, pause) != nil {
			return
		}
	}
}

// keepOnce waits until the ranks have ended, or for a while, and brings what is new.
func (r *replica) keepOnce(ctx context.Context) error {
	d, pod, err := r.running(ctx)
	if err != nil {
		return err
	}
	if r.done(pod) {
		return r.released(ctx, d, pod)
	}
	ended, err := r.awaitLast(ctx, d, pod)
	if err == nil {
		err = r.round(ctx, d, pod)
	}
	if err == nil && ended {
		if r.ofRay() {
			r.bringOthers(ctx)
		}
		err = r.release(ctx, d, pod)
	}
	return err
}

// awaitLast waits in the pod until its ranks have ended, keepEvery at most.
func (r *replica) awaitLast(ctx context.Context, d *door, pod *core.Pod) (ended bool, err error) {
	return r.says(ctx, d, pod, fmt.Sprintf("cd %s; n=0; while [ ! -e ended ] && [ $n -lt %d ]; do sleep 1; n=$((n+1)); done; [ ! -e ended ] || echo yes", dirWork, int(keepEvery.Seconds())))
}

// hasEnded reports whether the ranks of a pod have ended, and it waits.
func (r *replica) hasEnded(ctx context.Context, d *door, pod *core.Pod) (bool, error) {
	return r.says(ctx, d, pod, "[ ! -e "+dirWork+"/ended ] || echo yes")
}

// release lets the container end.
func (r *replica) release(ctx context.Context, d *door, pod *core.Pod) error {
	if err := wholefile.Write(r.stage()+doneMark, []byte(pod.UID), 0o600); err != nil {
		return err
	}
	return r.released(ctx, d, pod)
}

// released tells the container that nobody needs it any more.
func (r *replica) released(ctx context.Context, d *door, pod *core.Pod) error {
	_, err := r.says(ctx, d, pod, ": >"+dirWork+"/brought")
	return err
}

// says runs a line of sh in a pod and reports whether it says yes.
func (r *replica) says(ctx context.Context, d *door, pod *core.Pod, line string) (bool, error) {
	var b limited
	err := r.pour(ctx, d, pod, []string{"sh", "-c", line}, &b)
	return strings.TrimSpace(b.String()) == "yes", err
}

// limited keeps the beginning of what a pod says.
type limited struct{ strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if room := 1000 - l.Len(); room > 0 {
		_, _ = l.Builder.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// pour runs a command in a pod and writes what it prints to a writer. It is an error
// that the command does not end well, or prints nothing for long.
func (r *replica) pour(ctx context.Context, d *door, pod *core.Pod, argv []string, to io.Writer) error {
	by, err := d.executor(pod.Name, &core.PodExecOptions{Container: r.kind().container, Command: argv, Stdout: true, Stderr: true})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(keepSilent, func() { cancel(fmt.Errorf("nothing came for %s", units.Duration(keepSilent))) })
	defer late.Stop()
	var said tail
	err = by.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: awake{to, late}, Stderr: &said})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case said.String() != "":
		return fmt.Errorf("read from pod %s: %w: %s", pod.Name, d.explain(err), said.String())
	}
	return fmt.Errorf("read from pod %s: %w", pod.Name, d.explain(err))
}

// awake puts the end of the patience off with each piece that comes.
type awake struct {
	to   io.Writer
	late *time.Timer
}

func (a awake) Write(p []byte) (int, error) {
	a.late.Reset(keepSilent)
	return a.to.Write(p)
}

// alone does something with what is here of a replica, as the only one of all dlwbs: a
// look of before must not take the place of a later one. No replica waits for another:
// a pod that is being ended has little time.
func (r *replica) alone(ctx context.Context, do func() error) error {
	l := flock.New(r.stage()+".lock", flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return err
	}
	defer l.Close()
	return do()
}

// round brings what is new of a replica. What is here is always as it was in the pod at
// one time: a round that breaks off changes nothing.
func (r *replica) round(ctx context.Context, d *door, pod *core.Pod) error {
	if err := os.MkdirAll(filepath.Dir(r.stage()), 0o700); err != nil {
		return err
	}
	return r.alone(ctx, func() error { return r.roundAlone(ctx, d, pod) })
}

func (r *replica) roundAlone(ctx context.Context, d *door, pod *core.Pod) error {
	s, err := newStaging(r.stage())
	if err != nil {
		return err
	}
	defer s.close()
	before, err := s.list(s.old)
	if err != nil || before.Pod != string(pod.UID) {
		before = listing{}
	}
	from, to := io.Pipe()
	go func() {
		err := r.pour(ctx, d, pod, []string{"sh", dirWork + "/keep.sh", strconv.Itoa(r.number), r.Dir(), strconv.FormatInt(before.At, 10)}, to)
		_ = to.CloseWithError(err)
	}()
	skipped, err := s.fill(from)
	_ = from.CloseWithError(errors.Join(err, io.ErrClosedPipe))
	if err != nil {
		return err
	}
	return s.settle(string(pod.UID), skipped)
}
