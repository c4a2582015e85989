package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// replica is a pod of a job, whichever it is at the time.
type replica struct {
	p      *Provider
	life   cloud.Life
	ref    ref
	number int
}

var _ interface {
	job.Replica
	job.Entrance
} = (*replica)(nil)

func (r *replica) kind() *kind { return kindNamed(r.ref.Kind) }

func (r *replica) door() (*door, error) { return r.p.open(r.ref.place) }

func (r *replica) selector() string { return r.kind().replica(r.ref, r.number) }

// pod is the newest one; nil: there is none.
func (r *replica) pod(ctx context.Context, d *door) (*core.Pod, error) {
	pods, err := d.podsOf(ctx, r.selector())
	if err != nil || len(pods) == 0 {
		return nil, err
	}
	if r.ofRay() && r.number > 0 {
		return rayWorker(pods, r.number), nil
	}
	return &pods[len(pods)-1], nil
}

// look looks at the pod and at the job. Of a pod that is gone it knows what was
// noted of it.
func (r *replica) look(ctx context.Context) (look, error) {
	d, err := r.door()
	if err != nil {
		return look{}, err
	}
	pod, err := r.pod(ctx, d)
	if err != nil {
		return look{}, err
	}
	return r.lookAt(ctx, d, pod)
}

// lookAt is a look at a pod that was just seen; the job is asked after it: who
// deletes a pod has said why before.
func (r *replica) lookAt(ctx context.Context, d *door, pod *core.Pod) (look, error) {
	object, err := d.objectOf(ctx, r.ref)
	if err != nil {
		return look{}, err
	}
	l := look{object: object, pod: pod}
	if r.ofRay() {
		if err := r.lookAtRay(ctx, d, &l); err != nil {
			return look{}, err
		}
		object = l.object
	}
	if pod != nil {
		r.note(pod)
	} else if l.pod = r.noted(); l.pod != nil || object == nil {
		l.gone = true
	} else if _, over := finished(object); over {
		l.gone = true
	}
	if _, stopped := stopOf(object); stopped && pod == nil {
		l.gone = true
	}
	if suspended(object) && l.gone {
		l.evict = d.evicted(ctx, object)
	}
	return l, nil
}

func (r *replica) file() string {
	return filepath.Join(r.life.Dir, fmt.Sprintf("%s-%d.pod.json", r.ref.Name, r.number))
}

// note keeps how a pod was, once it has begun: it may be deleted any time, and
// nobody else knows its exit code then.
func (r *replica) note(pod *core.Pod) { r.noteIn(r.file(), pod) }

func (r *replica) noteIn(file string, pod *core.Pod) {
	if !begun(pod, r.kind().container) {
		return
	}
	kept := core.Pod{Status: core.PodStatus{Phase: pod.Status.Phase, Reason: pod.Status.Reason, Message: pod.Status.Message,
		Conditions: pod.Status.Conditions, ContainerStatuses: pod.Status.ContainerStatuses}}
	kept.Name, kept.UID, kept.DeletionTimestamp = pod.Name, pod.UID, pod.DeletionTimestamp
	text, err := json.Marshal(kept)
	if err != nil {
		return
	}
	if have, err := os.ReadFile(file); err == nil && string(have) == string(text) {
		return
	}
	_ = wholefile.Write(file, text, 0o600)
}

// noted is what note has kept; nil: nothing.
func (r *replica) noted() *core.Pod { return notedIn(r.file()) }

func notedIn(file string) *core.Pod {
	text, err := os.ReadFile(file)
	pod := &core.Pod{}
	if err != nil || json.Unmarshal(text, pod) != nil {
		return nil
	}
	return pod
}

// State looks once.
func (r *replica) State(ctx context.Context) (job.State, error) {
	l, err := r.look(ctx)
	if err != nil {
		return job.State{Phase: job.Unknown}, err
	}
	return stateOf(r.ref, r.number, l), nil
}

// lookEvery is how often the job is asked for besides what a watch tells.
const lookEvery = 3 * time.Second

// WatchStatus tells the story as it becomes known: at each change of the pod, and
// by looking at the job now and then.
func (r *replica) WatchStatus(ctx context.Context, sink func(job.Status) error, looked func(job.State)) error {
	d, err := r.door()
	if err != nil {
		return err
	}
	if r.ref.Hold {
		keep, enough := context.WithCancel(ctx)
		var kept sync.WaitGroup
		kept.Go(func() { r.keepHome(keep) })
		defer kept.Wait()
		defer enough()
	}
	var told []job.Status
	since := ""
	for {
		over, err := r.tell(ctx, d, &told, sink, looked)
		if over || ctx.Err() != nil {
			return cmpErr(ctx.Err(), err)
		}
		if err != nil && permanent(err) {
			return err
		}
		if err := r.await(ctx, d, &since); err != nil {
			return err
		}
	}
}

func cmpErr(first, second error) error {
	if second != nil {
		return second
	}
	return first
}

// tell tells what is new of the story; over: it is at its end, or sink has failed.
func (r *replica) tell(ctx context.Context, d *door, told *[]job.Status, sink func(job.Status) error, looked func(job.State)) (over bool, err error) {
	pod, err := r.pod(ctx, d)
	if err != nil {
		return false, err
	}
	l, err := r.lookAt(ctx, d, pod)
	if err != nil {
		return false, err
	}
	looked(stateOf(r.ref, r.number, l))
	for _, s := range unheard(*told, storyOf(r.ref, r.number, l)) {
		*told = append(*told, s)
		if err := sink(s); err != nil {
			return true, err
		}
		if s.Kind == job.Ended {
			return true, nil
		}
	}
	return false, nil
}

// unheard is what of a story was not told yet. A replica that waits once more may
// begin again.
func unheard(told, story []job.Status) (news []job.Status) {
	since := 0 // where the present attempt begins in what was told
	for i, s := range told {
		if s.Kind == job.Waiting {
			since = i
		}
	}
	for _, s := range story {
		same := func(t job.Status) bool { return t.Kind == s.Kind && t.Rank == s.Rank }
		if !slices.ContainsFunc(told[since:], same) && (s.Kind != job.Started || !startedAt(told, s.Time)) {
			news = append(news, s)
		}
	}
	return news
}

func startedAt(told []job.Status, at time.Time) bool {
	return slices.ContainsFunc(told, func(t job.Status) bool { return t.Kind == job.Started && t.Time.Equal(at) })
}

// await returns when a pod of the replica has changed, or after a while. since is for the
// calls of one watch: where that of a RayJob goes on.
func (r *replica) await(ctx context.Context, d *door, since *string) error {
	if r.ofRay() {
		return r.awaitRay(ctx, d, since)
	}
	wait, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	w, err := d.api.Pods(d.Namespace).Watch(wait, meta.ListOptions{LabelSelector: r.selector()})
	if err != nil {
		return waits.Pause(ctx, time.Second)
	}
	defer w.Stop()
	first := true
	for {
		select {
		case e, more := <-w.ResultChan():
			if !more {
				return cmpErr(ctx.Err(), waits.Pause(ctx, 100*time.Millisecond))
			}
			if pod, is := e.Object.(*core.Pod); is {
				r.note(pod)
				if first && e.Type == watch.Added { // as it is
					first = false
					continue
				}
				return nil
			}
		case <-wait.Done():
			return ctx.Err()
		}
	}
}

// Stop ends the whole job, whichever of its replicas is asked, and notes why. The
// object stays, so that whoever comes later reads the same verdict. What has come
// to its own end is left as it is.
func (r *replica) Stop(ctx context.Context, grace time.Duration, why string) (int, error) {
	d, err := r.door()
	if err != nil {
		return 0, err
	}
	object, err := d.objectOf(ctx, r.ref)
	if err != nil {
		return 0, err
	}
	await, keeps := func() (int, error) { return r.awaitEnd(ctx, d, grace) }, r
	if r.ofRay() {
		keeps = r.driver() // which waits for that
		await = func() (int, error) { return r.stopRay(ctx, d, grace, why) }
	} else if object != nil {
		if err := r.end(ctx, d, why); err != nil {
			return 0, err
		}
	}
	if !r.ref.Hold {
		return await()
	}
	keep, enough := context.WithCancel(ctx)
	var kept sync.WaitGroup
	kept.Go(func() { keeps.keepHome(keep) })
	left, err := await()
	enough()
	kept.Wait()
	return left, err
}

// end notes why the job ends, and ends it, if it has not ended.
func (r *replica) end(ctx context.Context, d *door, why string) error {
	pods, err := d.podsOf(ctx, r.kind().selector(r.ref.Name))
	if err != nil {
		return err
	}
	object, err := d.objectOf(ctx, r.ref)
	if err != nil || object == nil {
		return err
	}
	if _, over := finished(object); over {
		return nil
	}
	if _, stopped := stopOf(object); !stopped {
		n := stopNote{Why: why, Ended: r.endedOf(pods)}
		if len(n.Ended) == len(r.ref.Ranks) {
			return nil // all of them have come to their ends; the controller is about to see it
		}
		if err := d.annotate(ctx, r.kind(), r.ref.Name, n); err != nil {
			return err
		}
	}
	ask, cancel := call(ctx)
	defer cancel()
	_, err = d.objects(r.kind()).Patch(ask, r.ref.Name, types.MergePatchType, []byte(r.kind().stop), meta.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return d.explain(err)
}

// endedOf are the replicas whose pods have ended.
func (r *replica) endedOf(pods []core.Pod) (ended []int) {
	for i := range r.ref.Ranks {
		other := &replica{p: r.p, life: r.life, ref: r.ref, number: i}
		selector, err := meta.ParseToLabelSelector(other.selector())
		if err != nil {
			continue
		}
		for j := range pods {
			if has(pods[j].Labels, selector.MatchLabels) && ending(containerOf(&pods[j], r.kind().container)) != nil && pods[j].DeletionTimestamp == nil {
				ended = append(ended, i)
				break
			}
		}
	}
	return ended
}

func has(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// annotate puts the note of a stop on the job.
func (d *door) annotate(ctx context.Context, k *kind, name string, n stopNote) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{noteWhy: string(text)}}})
	if err != nil {
		return err
	}
	ctx, cancel := call(ctx)
	defer cancel()
	_, err = d.objects(k).Patch(ctx, name, types.MergePatchType, patch, meta.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return d.explain(err)
}

// awaitEnd waits until the pod of this replica has ended; after the grace it is
// ended by force.
func (r *replica) awaitEnd(ctx context.Context, d *door, grace time.Duration) (left int, err error) {
	force, held := time.Now().Add(grace), false
	for {
		pod, err := r.pod(ctx, d)
		if err != nil {
			return 1, err
		}
		if pod == nil || pod.Status.Phase == core.PodSucceeded || pod.Status.Phase == core.PodFailed {
			return 0, nil
		}
		if time.Now().After(force) && !held && r.holds(ctx, d, pod) {
			held, force = true, time.Now().Add(graceToHold*time.Second)
		}
		if time.Now().After(force) {
			now := int64(1)
			ask, cancel := call(ctx)
			err := d.api.Pods(d.Namespace).Delete(ask, pod.Name, meta.DeleteOptions{GracePeriodSeconds: &now})
			cancel()
			if err != nil && !apierrors.IsNotFound(err) {
				return 1, d.explain(err)
			}
			force = time.Now().Add(10 * time.Second)
		}
		if err := waits.Pause(ctx, 200*time.Millisecond); err != nil {
			return 1, err
		}
	}
}

// holds reports whether the ranks of a pod have ended, and what they wrote is being
// brought home.
func (r *replica) holds(ctx context.Context, d *door, pod *core.Pod) bool {
	if !r.ref.Hold {
		return false
	}
	ctx, cancel := call(ctx)
	defer cancel()
	ended, err := r.hasEnded(ctx, d, pod)
	return err == nil && ended
}

// Reach asks the API server now and then whether it is there.
func (r *replica) Reach(ctx context.Context, news func(connected bool, why string)) {
	job.Reach(ctx, func(ctx context.Context) error {
		d, err := r.door()
		if err == nil {
			ask, cancel := call(ctx)
			defer cancel()
			err = d.api.Version(ask)
		}
		if apierrors.IsForbidden(err) { // somebody has answered
			return nil
		}
		return err
	}, news)
}
