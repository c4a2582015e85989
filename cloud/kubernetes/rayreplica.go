package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dlwb/dlwb/internal/waits"
)

// ofRay reports whether the replica is one of a RayJob.
func (r *replica) ofRay() bool { return r.kind() == rayJob }

// place is the pod in which a replica works: that of its log, but for a driver of Ray,
// which runs in the head.
func (r *replica) place(ctx context.Context, d *door) (*core.Pod, error) {
	if !r.ofRay() || r.number > 0 {
		return r.pod(ctx, d)
	}
	pods, err := d.podsOf(ctx, rayPart(r.ref.Name, partHead))
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	return &pods[len(pods)-1], nil
}

// podOfLog is the pod that has a log.
func (r *replica) podOfLog(ctx context.Context, d *door, log string) (*core.Pod, error) {
	if r.ofRay() && log == rayLog {
		return r.place(ctx, d)
	}
	return r.pod(ctx, d)
}

// rayWorker is the pod of a worker, by the order in which they were made: those that are
// being replaced come behind those that live.
func rayWorker(pods []core.Pod, number int) *core.Pod {
	slices.SortStableFunc(pods, func(a, b core.Pod) int {
		if x, y := leaving(&a), leaving(&b); x != y {
			return x - y
		}
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	if number-1 < len(pods) {
		return &pods[number-1]
	}
	return nil
}

func leaving(pod *core.Pod) int {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == core.PodFailed {
		return 1
	}
	return 0
}

// lookAtRay adds to a look what a RayJob's other pods tell.
func (r *replica) lookAtRay(ctx context.Context, d *door, l *look) error {
	l.object = r.keptEnd(l.object)
	pods, err := d.podsOf(ctx, r.kind().selector(r.ref.Name))
	if err != nil {
		return err
	}
	l.lost = r.lossesOf(pods)
	if r.number == 0 {
		for i := range pods {
			if pods[i].Labels[labelPart] == partHead {
				r.noteIn(r.headFile(), &pods[i])
			}
		}
	}
	return nil
}

// headFile has how the head was, as file has it of the replica.
func (r *replica) headFile() string { return strings.TrimSuffix(r.file(), ".pod.json") + ".head.json" }

// awaitRay returns when a pod of the job has changed, or after a while. A pod that was
// lost may be there for a moment only, so no change between two calls is missed: since is
// the version behind which the next one begins.
func (r *replica) awaitRay(ctx context.Context, d *door, since *string) error {
	wait, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	ask := meta.ListOptions{LabelSelector: r.kind().selector(r.ref.Name), ResourceVersion: *since}
	if *since == "" {
		list, err := d.api.Pods(d.Namespace).List(wait, ask)
		if err != nil {
			return waits.Pause(ctx, time.Second)
		}
		r.lossesOf(list.Items)
		ask.ResourceVersion = list.ResourceVersion
	}
	w, err := d.api.Pods(d.Namespace).Watch(wait, ask)
	if err != nil {
		*since = ""
		return waits.Pause(ctx, time.Second)
	}
	defer w.Stop()
	*since = ask.ResourceVersion
	for {
		select {
		case e, more := <-w.ResultChan():
			pod, is := e.Object.(*core.Pod)
			if !more || !is { // the version is too old, or the connection is over
				if more {
					*since = ""
				}
				return cmpErr(ctx.Err(), waits.Pause(ctx, 100*time.Millisecond))
			}
			*since = pod.ResourceVersion
			r.lossesOf([]core.Pod{*pod})
			return waits.Pause(ctx, 100*time.Millisecond)
		case <-wait.Done():
			return ctx.Err()
		}
	}
}

// stopRay ends a RayJob: the driver by a signal, as Ray's own way to stop gives it little
// time, and where it can't be reached or does not end, the job by its deadline. The
// operator then removes the cluster.
func (r *replica) stopRay(ctx context.Context, d *door, grace time.Duration, why string) (left int, err error) {
	asked, held, forced, force := false, false, false, time.Now().Add(grace)
	for {
		object, err := d.objectOf(ctx, r.ref)
		if err != nil {
			return 1, err
		}
		if object == nil || rayStatusOf(object).over() {
			return 0, nil
		}
		if _, stopped := stopOf(object); !stopped && !asked && r.driverHolds(ctx, d) {
			asked = true // it has come to its own end, and Ray is about to say so
		} else if !stopped {
			if err := d.annotate(ctx, r.kind(), r.ref.Name, stopNote{Why: why}); err != nil {
				return 1, err
			}
		}
		if !asked && r.endDriver(ctx, d) != nil {
			force = time.Now()
		}
		asked = true
		switch {
		case time.Now().Before(force):
		case !held && r.driverHolds(ctx, d):
			held, force = true, time.Now().Add(graceToHold*time.Second)
		case !forced:
			if err := d.deadlineNow(ctx, r); err != nil {
				return 1, err
			}
			forced, force = true, time.Now().Add(time.Minute)
		default: // nobody acts on it
			return 1, nil
		}
		if err := waits.Pause(ctx, 300*time.Millisecond); err != nil {
			return 1, err
		}
	}
}

// driverHolds reports whether the driver has ended, and what it wrote is being brought
// home.
func (r *replica) driverHolds(ctx context.Context, d *door) bool {
	head, err := r.driver().place(ctx, d)
	if c := containerOf(head, r.kind().container); err != nil || c == nil || c.State.Running == nil {
		return false
	}
	return r.holds(ctx, d, head)
}

// deadlineNow has the operator end a job.
func (d *door) deadlineNow(ctx context.Context, r *replica) error {
	ctx, cancel := call(ctx)
	defer cancel()
	_, err := d.objects(r.kind()).Patch(ctx, r.ref.Name, types.MergePatchType, []byte(r.kind().stop), meta.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return d.explain(err)
}

// driver is replica 0 of the same job.
func (r *replica) driver() *replica { return &replica{p: r.p, life: r.life, ref: r.ref} }

// endDriver asks the driver to end, once.
func (r *replica) endDriver(ctx context.Context, d *door) error {
	head, err := r.driver().place(ctx, d)
	if err != nil {
		return err
	}
	if c := containerOf(head, r.kind().container); c == nil || c.State.Running == nil {
		return fmt.Errorf("the head of job %s does not run", r.ref.Name)
	}
	ask, cancel := call(ctx)
	defer cancel()
	asked, err := r.says(ask, d, head, "cd "+dirWork+" && [ -e driver.pid ] || exit 0; [ -e asked ] || { : >asked; kill -TERM $(cat driver.pid); }; echo yes")
	if err == nil && !asked {
		err = fmt.Errorf("the driver of job %s has not begun", r.ref.Name)
	}
	return err
}

// bringOthers brings once more what the workers have written: the driver has ended, and
// the cluster goes when it is released.
func (r *replica) bringOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rayLinger*time.Second)
	defer cancel()
	var every sync.WaitGroup
	for i := 1; i < len(r.ref.Ranks); i++ {
		every.Go(func() {
			other := &replica{p: r.p, life: r.life, ref: r.ref, number: i}
			if d, pod, err := other.running(ctx); err == nil && other.round(ctx, d, pod) == nil {
				_ = other.release(ctx, d, pod)
			}
		})
	}
	every.Wait()
}
