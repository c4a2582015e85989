package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/waits"
)

// downLimit bounds the wait for what was deleted to be gone: pods have their
// grace.
var downLimit = 2 * time.Minute

// thing is a kind of object that a life may have.
type thing struct {
	name     string
	resource schema.GroupVersionResource
}

// everywhere reports whether each API server has such a kind: one that does not is none.
func (t thing) everywhere() bool {
	return t.resource.Group == "" || t.resource.Group == batchJob.resource.Group
}

// things are what is looked for, in the order of removal: first what makes
// others.
var things = []thing{
	{"pytorchjob", pytorchJob.resource},
	{"tfjob", tfJob.resource},
	{"mpijob", mpiJob.resource},
	{"rayjob", rayJob.resource},
	{"raycluster", schema.GroupVersionResource{Group: groupRay, Version: "v1", Resource: "rayclusters"}},
	{"trainjob", trainJob.resource},
	{"jobset", schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}},
	{"job", batchJob.resource},
	{"pod", schema.GroupVersionResource{Version: "v1", Resource: "pods"}},
	{"podgroup", schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}},
	{"podgroup", schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}},
	{"service", schema.GroupVersionResource{Version: "v1", Resource: "services"}},
	{"configmap", schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
	{"secret", schema.GroupVersionResource{Version: "v1", Resource: "secrets"}},
}

// Down deletes all jobs of a life with what was made for them, in each place that
// the life has used, and looks until nothing of it is there.
func (p *Provider) Down(ctx context.Context, life cloud.Life, progress cloud.Progress) (cloud.Receipt, error) {
	r := cloud.Receipt{Cluster: life.Name, Provider: p.Kind(), Lived: cloud.Lived(life.Began, time.Now())}
	refs, err := knownRefs(life)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, fmt.Errorf("read what was made: %w", err)
	}
	var all error
	for _, at := range placesOf(refs) {
		d, err := p.open(at)
		if err == nil {
			err = d.remove(ctx, life, refs, progress, &r)
		}
		if err != nil {
			all = errors.Join(all, d.explainIn(at, err))
			r.Resources = append(r.Resources, cloud.Resource{Kind: "namespace", ID: at.String(), State: cloud.Unknown, Proof: err.Error(), Lived: r.Lived})
		}
	}
	return r, all
}

func (d *door) explainIn(at place, err error) error {
	if d != nil {
		err = d.explain(err)
	}
	return fmt.Errorf("in %s: %w", at, err)
}

func placesOf(refs []ref) (all []place) {
	for _, r := range refs {
		if !slices.Contains(all, r.place) {
			all = append(all, r.place)
		}
	}
	return all
}

// remove deletes what a life has in one place, and tells what became of each
// thing. While it waits it looks for the kinds that are still there; in the end it
// looks for all once more.
func (d *door) remove(ctx context.Context, life cloud.Life, refs []ref, progress cloud.Progress, r *cloud.Receipt) error {
	seen := map[string]cloud.Resource{}
	var order []string
	until := time.Now().Add(downLimit)
	all, err := d.served(ctx)
	if err != nil {
		return err
	}
	clean := 0
	for _, r := range refs {
		if r.mayCome() {
			progress(-1, r.comes())
		}
	}
	for kinds := all; ; {
		coming := slices.ContainsFunc(refs, func(r ref) bool { // asked for, and never seen
			_, came := seen[r.left().key()]
			return !came && r.mayCome()
		})
		found, err := d.all(ctx, life, refs, kinds)
		if err != nil {
			return err
		}
		whole := len(kinds) == len(all)
		kinds = nil
		for i := range found {
			f := &found[i]
			if _, known := seen[f.key()]; !known {
				order = append(order, f.key())
				progress(-1, "deleting "+f.key())
			}
			seen[f.key()] = cloud.Resource{Kind: f.thing.name, ID: d.Namespace + "/" + f.name, State: cloud.Alive, Proof: f.state(), Lived: cloud.Lived(f.made, time.Now())}
			if err := d.delete(ctx, f); err != nil {
				return err
			}
			if !slices.Contains(kinds, f.thing) {
				kinds = append(kinds, f.thing)
			}
		}
		if len(found) == 0 && !whole {
			kinds = all
			continue
		}
		if whole {
			settle(seen, found)
		}
		if clean++; len(found) > 0 {
			clean = 0
		}
		late := time.Now().After(until)
		if clean > looksAfter(refs) && !coming || late && whole {
			break
		}
		if clean > 0 || late { // what is left holds up what is said of it alone
			kinds = all
		}
		pause := 300 * time.Millisecond
		if clean > 0 && coming {
			pause = 2 * time.Second
		}
		if err := waits.Pause(ctx, pause); err != nil {
			return err
		}
	}
	for _, key := range order {
		if seen[key].State != cloud.Gone && seen[key].Kind == "pod" {
			r.ProcessesLeft++
		}
		r.Resources = append(r.Resources, seen[key])
	}
	return nil
}

// looksAfter is how often an empty place is looked at once more. The operator of a
// TrainJob makes its job set anew, when that is deleted before it has seen that the
// TrainJob is; that of a RayJob may be just about to make its cluster.
func looksAfter(refs []ref) int {
	if slices.ContainsFunc(refs, func(r ref) bool { return r.Kind == trainJob.name || r.Kind == rayJob.name }) {
		return 3
	}
	return 0
}

// settle notes as gone what a whole look has not found.
func settle(seen map[string]cloud.Resource, found []left) {
	for key, res := range seen {
		if !slices.ContainsFunc(found, func(f left) bool { return f.key() == key }) {
			res.State, res.Proof = cloud.Gone, "the API server has it no more"
			seen[key] = res
		}
	}
}

// left is an object that is there.
type left struct {
	thing thing
	name  string
	made  time.Time
	going []string // its finalizers, where it is being deleted
	is    bool     // being deleted
}

// left is the object of a job itself.
func (r ref) left() left {
	of := kindNamed(r.Kind).resource
	return left{thing: things[slices.IndexFunc(things, func(t thing) bool { return t.resource == of })], name: r.Name}
}

func (f left) key() string { return f.thing.name + " " + f.name }

func (f left) state() string {
	switch {
	case f.is && len(f.going) > 0:
		return fmt.Sprintf("it is being deleted and waits for %v: does the operator run?", f.going)
	case f.is:
		return "it is being deleted"
	}
	return "the API server has it"
}

// all lists what is there of a life: by its labels, and of a job also by the
// labels of its controller, which makes things without ours.
func (d *door) all(ctx context.Context, life cloud.Life, refs []ref, kinds []thing) (all []left, err error) {
	selectors, of := []string{labelOwner + "=" + owner + "," + labelLife + "=" + life.ID}, []string{""}
	for _, r := range refs {
		if r.place != d.place {
			continue
		}
		if others, err := d.foreign(ctx, life, r); err != nil {
			return nil, err
		} else if !others {
			selectors, of = append(selectors, kindNamed(r.Kind).selector(r.Name)), append(of, "")
			if r.Kind == rayJob.name {
				selectors, of = append(selectors, labelRayFrom+"="+r.Name, labelRay), append(of, "", r.Name)
			}
		}
	}
	for _, t := range kinds {
		names := map[string]bool{}
		for i, selector := range selectors {
			list, err := d.list(ctx, t, selector)
			if apierrors.IsNotFound(err) && !t.everywhere() || apierrors.IsForbidden(err) && !d.ownMade(t, refs) {
				continue
			}
			if err != nil {
				return all, fmt.Errorf("look for what is left (%s): %w", t.resource.Resource, err)
			}
			for _, o := range list {
				if !names[o.GetName()] && (of[i] == "" || ofCluster(of[i], o.GetLabels()[labelRay])) {
					names[o.GetName()] = true
					all = append(all, left{t, o.GetName(), o.GetCreationTimestamp().Time, o.GetFinalizers(), o.GetDeletionTimestamp() != nil})
				}
			}
		}
	}
	return all, nil
}

// ownMade reports whether dlwb itself makes such things for jobs: who may not look for the
// others has not made one either, and what a controller has made goes with its owner.
func (d *door) ownMade(t thing, refs []ref) bool {
	return slices.ContainsFunc(refs, func(r ref) bool {
		switch {
		case r.place != d.place:
			return false
		case t.name == "secret":
			return !r.Bare
		case t.name == "service":
			return kindNamed(r.Kind).service
		}
		return t.resource.Group == "" || r.Kind == t.name
	})
}

// foreign reports whether another one has an object of the name that a job of a life
// was to get: what its controller makes is not the life's.
func (d *door) foreign(ctx context.Context, life cloud.Life, r ref) (bool, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	o, err := d.objects(kindNamed(r.Kind)).Get(ctx, r.Name, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look whose %s %s is: %w", kindNamed(r.Kind).object, r.Name, err)
	}
	return !owns(o.GetLabels(), life.ID), nil
}

func (d *door) list(ctx context.Context, t thing, selector string) ([]unstructured.Unstructured, error) {
	ctx, cancel := call(ctx)
	defer cancel()
	list, err := d.dyn.Resource(t.resource).Namespace(d.Namespace).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// served are the things that the API server has kinds of.
func (d *door) served(ctx context.Context) (kinds []thing, err error) {
	for _, t := range things {
		is := t.everywhere()
		if !is {
			if is, err = d.has(ctx, &kind{resource: t.resource}); err != nil {
				return nil, err
			}
		}
		if is {
			kinds = append(kinds, t)
		}
	}
	return kinds, nil
}

// delete deletes an object, and what it made with it: without a policy, deleting
// a Job leaves its pods running.
func (d *door) delete(ctx context.Context, f *left) error {
	if f.is {
		return nil
	}
	ctx, cancel := call(ctx)
	defer cancel()
	policy := meta.DeletePropagationForeground
	if f.thing.name == "pod" {
		policy = meta.DeletePropagationBackground
	}
	err := d.dyn.Resource(f.thing.resource).Namespace(d.Namespace).Delete(ctx, f.name, meta.DeleteOptions{PropagationPolicy: &policy})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", f.thing.name, f.name, err)
	}
	return nil
}
