package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/waits"
)

// Await looks at the job and its pods until all of them have begun.
func (p *Provider) Await(ctx context.Context, life cloud.Life, text string, enter func(step, text string), progress cloud.Progress) error {
	r, err := readRef(text)
	if err != nil {
		return err
	}
	d, err := p.open(r.place)
	if err != nil {
		return err
	}
	a := awaiter{door: d, ref: r, enter: enter, progress: progress, since: time.Now()}
	for {
		at, err := a.look(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err != nil:
			at = standing{step: a.step, text: "the cluster can't be asked: " + err.Error()}
		}
		a.tell(at)
		if at.begun || at.never != nil {
			return at.never
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// awaiter tells what a job waits for, each thing once.
type awaiter struct {
	*door
	ref      ref
	enter    func(step, text string)
	progress cloud.Progress
	step     string
	said     string
	since    time.Time // when it began to wait
	pulling  time.Time // since when an image can't be pulled
}

// look looks at all that tells.
func (a *awaiter) look(ctx context.Context) (standing, error) {
	s := scene{ref: a.ref, waited: time.Since(a.since)}
	var err error
	if s.pods, err = a.podsOf(ctx, kindNamed(a.ref.Kind).selector(a.ref.Name)); err != nil {
		return standing{}, err
	}
	if s.object, err = a.objectOf(ctx, a.ref); err != nil {
		return standing{}, err
	}
	if s.object != nil {
		s.workload = a.workloadOf(ctx, s.object)
		s.events = a.eventsOf(ctx, s.object.GetName())
		if cluster := rayStatusOf(s.object).Cluster; cluster != "" {
			s.events = append(s.events, a.eventsOf(ctx, cluster)...)
		}
	}
	at := s.stand()
	if at.image == "" {
		a.pulling = time.Time{}
	} else if a.pulling.IsZero() {
		a.pulling = time.Now()
	} else if time.Since(a.pulling) > pullLimit {
		at.never = &apiError{text: at.text, next: at.image}
	}
	return at, nil
}

// pullLimit is how long an image may fail to be pulled: what a registry refuses
// for a moment, it gives at the next try.
const pullLimit = 2 * time.Minute

// tell tells a standing where it is another than before.
func (a *awaiter) tell(at standing) {
	if at.step != a.step && at.step != "" {
		a.step, a.said = at.step, at.text
		a.enter(at.step, at.text)
		return
	}
	if at.text != a.said && at.text != "" {
		a.said = at.text
		a.progress(-1, at.text)
	}
}

// eventsOf are the warnings about an object, as far as they may be read.
func (d *door) eventsOf(ctx context.Context, name string) []core.Event {
	ctx, cancel := call(ctx)
	defer cancel()
	list, err := d.api.Events(d.Namespace).List(ctx, meta.ListOptions{FieldSelector: "involvedObject.name=" + name + ",type=Warning"})
	if err != nil {
		return nil
	}
	return list.Items
}

// scene is all that was seen of a job that has not begun.
type scene struct {
	ref      ref
	object   *unstructured.Unstructured
	workload *unstructured.Unstructured // Kueue's; nil: none, or not to be seen
	pods     []core.Pod
	events   []core.Event
	waited   time.Duration
}

// standing is where a job stands.
type standing struct {
	step, text string
	begun      bool
	never      error  // it can never begin
	image      string // what to do about one that can't be pulled
}

// stand says where a job stands. It is pure.
func (s scene) stand() standing {
	k := kindNamed(s.ref.Kind)
	if s.object == nil && len(s.pods) == 0 {
		return standing{never: errors.New("the job is gone from the cluster")}
	}
	if k == rayJob {
		return s.rayStand()
	}
	live := map[string]*core.Pod{} // the newest of each replica
	for i := range s.pods {
		live[replicaKey(&s.pods[i], k)] = &s.pods[i]
	}
	started := 0
	for _, pod := range live {
		if begun(pod, k.container) {
			started++
		}
		if c := containerOf(pod, k.container); ending(c) != nil {
			return standing{step: stepStart, begun: true}
		}
	}
	if c, over := finished(s.object); over {
		if started > 0 {
			return standing{step: stepStart, begun: true}
		}
		return standing{never: &cloud.NeverBegan{Err: fmt.Errorf("the job ended before any pod had started: %s", sentence(c.Reason, c.Message))}}
	}
	switch {
	case started >= len(s.ref.Ranks):
		return standing{step: stepStart, begun: true}
	case len(s.pods) == 0:
		return s.withoutPods()
	}
	return s.withPods(k, live, started)
}

// replicaKey tells the replicas of a job apart.
func replicaKey(pod *core.Pod, k *kind) string {
	return pod.Labels[labelKubeflow+"replica-type"] + "-" + pod.Labels[k.indexLabel]
}

// withoutPods is a job in a queue, one whose pods are refused, or one that nobody
// acts on.
func (s scene) withoutPods() standing {
	if s.workload != nil {
		return queued(s.workload)
	}
	for _, e := range s.events {
		if refuses(e) {
			return standing{step: stepQueue, text: "its pods are refused: " + e.Message}
		}
	}
	if suspended(s.object) {
		return standing{step: stepQueue, text: "it is suspended: a queue, or somebody, has to let it go"}
	}
	if k := kindNamed(s.ref.Kind); s.waited > unheededAfter && len(conditionsOf(s.object)) == 0 && rayStatusOf(s.object).Deployment == "" && k.controller != "" {
		return standing{step: stepQueue, text: fmt.Sprintf("nobody acts on the %s: does its operator (%s) run?", k.object, k.controller)}
	}
	return standing{step: stepQueue, text: "its pods are being made"}
}

// refusals are the reasons of events by which controllers say that they could not make a
// pod.
var refusals = []string{"FailedCreate", "FailedCreatePod", "FailedToCreateHeadPod", "FailedToCreateWorkerPod", "FailedToCreateRayCluster", "FailedToCreateRayJobSubmitter"}

func refuses(e core.Event) bool { return slices.Contains(refusals, e.Reason) }

// unheededAfter is when an operator should have said something.
const unheededAfter = 10 * time.Second

// withPods is a job of which some pods are there and not all have begun. A pod
// that holds the others up for good is told first.
func (s scene) withPods(k *kind, live map[string]*core.Pod, started int) standing {
	waiting := standing{step: stepStart}
	for _, pod := range live {
		if at := pulls(pod); at.text != "" {
			return at
		}
		if why := unschedulable(pod); why != "" {
			waiting = standing{step: stepQueue, text: why}
		}
	}
	of := fmt.Sprintf("%d of %d pods run", started, len(s.ref.Ranks))
	switch {
	case waiting.text != "" && started > 0:
		waiting.text = of + " and hold what they have; " + waiting.text
	case waiting.text == "":
		waiting.text = of + s.doing(live, k)
	}
	for _, e := range s.events {
		if len(live) < len(s.ref.Ranks) && refuses(e) {
			return standing{step: stepQueue, text: of + "; others are refused: " + e.Message}
		}
	}
	return waiting
}

// doing tells what the containers wait for.
func (s scene) doing(live map[string]*core.Pod, k *kind) string {
	for _, pod := range live {
		c := containerOf(pod, k.container)
		if c != nil && c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			return "; " + pod.Name + ": " + sentence(c.State.Waiting.Reason, c.State.Waiting.Message)
		}
	}
	return ""
}

// unschedulable is why no node takes a pod; empty: one does, or nobody has tried.
func unschedulable(pod *core.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == core.PodScheduled && c.Status == core.ConditionFalse {
			return "no node takes " + pod.Name + ": " + c.Message + hintOf(c.Message)
		}
	}
	return ""
}

// hintOf says what a scheduler's words ask for.
func hintOf(said string) string {
	if _, taint, found := strings.Cut(said, "untolerated taint {"); found {
		taint, _, _ = strings.Cut(taint, "}")
		key, value, _ := strings.Cut(taint, ": ")
		if value != "" {
			key += "=" + value
		}
		return fmt.Sprintf(" (machines.tolerations: ['%s'])", key)
	}
	return ""
}

// pulls is what is wrong with an image of a pod, init containers first: nothing
// starts before them.
func pulls(pod *core.Pod) standing {
	for _, c := range append(pod.Status.InitContainerStatuses[:len(pod.Status.InitContainerStatuses):len(pod.Status.InitContainerStatuses)], pod.Status.ContainerStatuses...) {
		w := c.State.Waiting
		if w == nil {
			continue
		}
		text := fmt.Sprintf("%s: the image %s of container %s can't be pulled: %s", pod.Name, c.Image, c.Name, sentence(w.Reason, w.Message))
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable":
			return standing{step: stepStart, text: text, image: pullHint(w.Message)}
		case "InvalidImageName":
			return standing{step: stepStart, text: text, never: &apiError{text: text, next: "machines.image is registry/name:tag"}}
		case "CreateContainerConfigError", "CreateContainerError":
			return standing{step: stepStart, text: fmt.Sprintf("%s: container %s can't be made: %s", pod.Name, c.Name, sentence(w.Reason, w.Message)),
				image: "look at what it names: kubectl describe pod " + pod.Name}
		}
	}
	return standing{}
}

// pullHint says what a registry's refusal usually means.
func pullHint(said string) string {
	low := strings.ToLower(said)
	switch {
	case strings.Contains(low, "unauthorized"), strings.Contains(low, "403"), strings.Contains(low, "401"), strings.Contains(low, "denied"):
		return "the registry wants a login: a secret of type dockerconfigjson, named in machines.pull_secrets; or the name is wrong"
	case strings.Contains(low, "toomanyrequests"), strings.Contains(low, "rate limit"):
		return "the registry gives no more for now: log in with a pull secret, or use a mirror"
	case strings.Contains(low, "not found"), strings.Contains(low, "manifest unknown"):
		return "there is no such image or tag: look at machines.image"
	}
	return "look at machines.image, and at whether the nodes reach the registry"
}
