package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/kubernetes/helpers"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// Submit makes what the job needs and then its object, each under a name that the
// run's id gives: what a call before has made is found, and made no second time.
func (p *Provider) Submit(ctx context.Context, life cloud.Life, j cloud.Job, enter func(step, text string), progress cloud.Progress) (cloud.Submitted, error) {
	m := ownOf(j.Spec)
	r, known, err := knownRef(life, j.Run)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if !known {
		if r.place, err = locate(m); err != nil {
			return cloud.Submitted{}, err
		}
	}
	d, err := p.open(r.place)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if !known {
		r.Cluster = clusterOf(d.config)
		if d, err = p.open(r.place); err != nil {
			return cloud.Submitted{}, err
		}
		tasks := tasksOf(j)
		n := needOf(j.Spec, tasks)
		n.mpi, n.helps = byMPI(j.Engine), helpers.Needed(j)
		n.ray = byRay(j.Engine) && !n.helps
		k, err := d.choose(ctx, m.Kind, n)
		if err != nil {
			return cloud.Submitted{}, err
		}
		if r.Kind, r.Name = k.name, nameOf(j.Run); k == tfJob {
			r.Tasks = tasks
		}
		r.Hold = m.HoldFor() > 0 && d.enterable(ctx)
		r.Ranks, r.Tagged = pack.Ranks(j)
		r.Tagged = r.Tagged || k == rayJob
		r.Bare = len(j.Env) == 0
		r.Dir = m.Workdir
		if m.GPUs > 0 {
			r.GPU = string(gpuOf(m))
		}
		if err := noteRef(life, j.Run, r); err != nil {
			return cloud.Submitted{}, err
		}
	}
	s := submission{door: d, life: life, job: j, ref: r, kind: kindNamed(r.Kind)}
	enter(stepUpload, fmt.Sprintf("%s %s in %s", s.kind.object, r.Name, r.place))
	if err := s.make(ctx, progress); err != nil {
		return cloud.Submitted{}, err
	}
	for _, text := range d.warned.take() {
		progress(-1, "the cluster warns: "+text)
	}
	return cloud.Submitted{Ref: r.String(), Lacks: d.lacks(ctx)}, nil
}

// hosts are the names by which the replicas reach each other.
func (s submission) hosts() []string {
	hosts := make([]string, s.job.Replicas)
	for i := range hosts {
		hosts[i] = s.kind.host(s.ref, i)
	}
	return hosts
}

// nodes is what each replica runs.
func (s submission) nodes() []pack.Node {
	switch {
	case s.kind == mpiJob:
		return mpiNodes(s.job, s.hosts())
	case helpers.Needed(s.job):
		return nil
	}
	place := job.Placing(s.hosts(), headPort).Replace
	if s.kind == rayJob {
		return rayNodes(s.job, place)
	}
	return pack.Nodes(s.job, dirWork, place)
}

// headPort is where the ranks meet: each pod has all ports of an address for
// itself.
const headPort = 29500

// submission makes the objects of one job.
type submission struct {
	*door
	life cloud.Life
	job  cloud.Job
	ref  ref
	kind *kind
}

func (s submission) meta() meta.ObjectMeta {
	return meta.ObjectMeta{Name: s.ref.Name, Namespace: s.Namespace, Labels: labelsOf(s.life, s.job.Run),
		Annotations: map[string]string{noteName: s.life.Name}}
}

// make makes what is not there yet; the job last, so that its pods find the rest.
// Then the rest is made the job's, and goes where the job goes.
func (s submission) make(ctx context.Context, progress cloud.Progress) error {
	given, secret, err := s.given()
	if err != nil {
		return err
	}
	object, err := s.object(ctx)
	if err != nil {
		return err
	}
	if err := made(ctx, s, "config map", s.api.ConfigMaps(s.Namespace), given); err != nil {
		return err
	}
	if secret != nil {
		if err := made(ctx, s, "secret", s.api.Secrets(s.Namespace), secret); err != nil {
			return err
		}
	}
	if s.kind.service {
		if err := made(ctx, s, "service", s.api.Services(s.Namespace), s.headless()); err != nil {
			return err
		}
	}
	// An interruption does not cut the call: a job that nobody has heard of would run.
	making, cancel := call(context.WithoutCancel(ctx))
	defer cancel()
	asked := s.ref
	asked.Asked = time.Now()
	if err := noteRef(s.life, s.job.Run, asked); err != nil {
		return err
	}
	if err = s.create(making, s.kind, object, meta.CreateOptions{FieldValidation: "Strict"}); err != nil && apierrors.ReasonForError(err) == meta.StatusReasonUnknown {
		if there, _ := s.await(ctx, asked, progress); there {
			err = nil // its answer was lost
		} else {
			return s.explain(fmt.Errorf("make the %s: %w", s.kind.object, err))
		}
	}
	if noted := noteRef(s.life, s.job.Run, s.ref); noted != nil {
		return noted
	}
	if err != nil && !apierrors.IsAlreadyExists(err) { // whose one is that is there, adopt looks at
		return s.explain(fmt.Errorf("make the %s: %w", s.kind.object, err))
	}
	return s.adopt(ctx)
}

// create makes an object of a kind, without what an older version of the kind does not
// know and can do without.
func (d *door) create(ctx context.Context, k *kind, o *unstructured.Unstructured, options meta.CreateOptions) error {
	_, err := d.objects(k).Create(ctx, o, options)
	if err == nil || !strings.Contains(err.Error(), "unknown field") {
		return err
	}
	less, changed := o.DeepCopy(), false
	for _, field := range k.optional {
		if strings.Contains(err.Error(), `"spec.`+field+`"`) {
			unstructured.RemoveNestedField(less.Object, "spec", field)
			changed = true
		}
	}
	if changed {
		_, err = d.objects(k).Create(ctx, less, options)
	}
	return err
}

// makes is what makes and reads the objects of one kind.
type makes[T any] interface {
	Create(ctx context.Context, one *T, options meta.CreateOptions) (*T, error)
	Get(ctx context.Context, name string, options meta.GetOptions) (*T, error)
}

// made makes an object; that it is there already is as good, if it is of this run.
func made[T any, O interface {
	*T
	meta.Object
}](ctx context.Context, s submission, what string, of makes[T], one *T) error {
	ctx, cancel := call(ctx)
	defer cancel()
	_, err := of.Create(ctx, one, meta.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return s.explain(fmt.Errorf("make the %s: %w", what, err))
	}
	there, err := of.Get(ctx, s.ref.Name, meta.GetOptions{})
	if err != nil {
		return s.explain(fmt.Errorf("look at the %s that is there already: %w", what, err))
	}
	return s.ours(what, O(there))
}

// ours says what is wrong with an object of the run's name that another one has.
func (s submission) ours(what string, o meta.Object) error {
	if owns(o.GetLabels(), s.life.ID) && o.GetLabels()[labelRun] == nameOf(s.job.Run) {
		return nil
	}
	return &apiError{fmt.Sprintf("there is a %s %s in %s that is not of this run", what, s.ref.Name, s.place),
		fmt.Sprintf("kubectl --context %s -n %s get %s %s -o yaml shows whose it is; run again: the next run has another name", s.Context, s.Namespace, strings.ReplaceAll(strings.ToLower(what), " ", ""), s.ref.Name), nil}
}

// owns reports whether labels say that something was made for a life.
func owns(labels map[string]string, life string) bool {
	return labels[labelOwner] == owner && labels[labelLife] == life
}

// given is what the pods are given: the launcher with the code, and the secret of
// the variables; nil where there are none.
func (s submission) given() (*core.ConfigMap, *core.Secret, error) {
	m := ownOf(s.job.Spec)
	var helped []helpers.Node
	if helpers.Needed(s.job) {
		helped = helpers.Nodes(s.job, dirWork, s.hosts(), headPort)
	}
	packed, err := payload(s.job.Code, m.Workdir == "", s.nodes(), s.job.Keep, helped...)
	if err != nil {
		return nil, nil, err
	}
	given := &core.ConfigMap{ObjectMeta: s.meta(), Data: map[string]string{"launch.sh": launchSh},
		BinaryData: map[string][]byte{"payload.tar.gz": packed}}
	if s.kind == rayJob {
		given.Data["submit.py"] = rayPy
	}
	if len(s.job.Env) == 0 {
		return given, nil, nil
	}
	secret := &core.Secret{ObjectMeta: s.meta(), Type: core.SecretTypeOpaque, Data: map[string][]byte{}}
	size := 0
	for _, pair := range s.job.Env {
		key, value, _ := strings.Cut(pair, "=")
		secret.Data[key] = []byte(value)
		size += len(pair)
	}
	if size > mostPayload {
		return nil, nil, fmt.Errorf("run.env has %s, and a Secret takes %s", units.Bytes(int64(size)), units.Bytes(mostPayload))
	}
	return given, secret, nil
}

// headless makes the replicas of an indexed Job known by name, before they are
// ready: that is when they look for each other.
func (s submission) headless() *core.Service {
	return &core.Service{ObjectMeta: s.meta(), Spec: core.ServiceSpec{
		ClusterIP: core.ClusterIPNone, PublishNotReadyAddresses: true,
		Selector: map[string]string{labelBatch + "job-name": s.ref.Name},
		Ports:    []core.ServicePort{{Name: "ranks", Port: headPort, TargetPort: intstr.FromInt32(headPort)}},
	}}
}

// object is the job's own.
func (s submission) object(ctx context.Context) (*unstructured.Unstructured, error) {
	pod, err := s.podOf(ctx, s.kind, s.ref.Name, s.job.Spec, labelsOf(s.life, s.job.Run), s.job.Env, s.ref.Hold)
	if err != nil {
		return nil, err
	}
	return objectOf(s.kind, s.meta(), s.job.Spec, work{pod: pod, replicas: s.job.Replicas, tasks: s.ref.Tasks, procs: len(s.ref.Ranks[0])})
}

// objectOf is the object of a kind around a pod.
func objectOf(k *kind, about meta.ObjectMeta, spec cloud.Spec, w work) (*unstructured.Unstructured, error) {
	m := ownOf(spec)
	w.name, w.deadline, w.runtime, w.gpus, w.gpu = about.Name, int64(spec.Lifetime.Seconds()), m.Runtime, m.GPUs, gpuOf(m)
	content, err := k.spec(w)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	o.SetAPIVersion(k.resource.GroupVersion().String())
	o.SetKind(k.object)
	o.SetName(about.Name)
	o.SetNamespace(about.Namespace)
	labels := map[string]string{}
	for key, value := range about.Labels {
		labels[key] = value
	}
	if m.Queue != "" {
		labels[labelQueue] = m.Queue
	}
	o.SetLabels(labels)
	o.SetAnnotations(about.Annotations)
	return o, nil
}

// ownOf are the options of a profile, with what all providers have put where it is
// meant here: a type of machine is a label of its nodes.
func ownOf(spec cloud.Spec) options.Machines {
	m := about.Own[options.Machines](spec.Own)
	if m.GPUs == 0 {
		m.GPUs = spec.Need.GPUs
	}
	if spec.Instance != "" {
		m.NodeSelector = maps.Clone(m.NodeSelector)
		if m.NodeSelector == nil {
			m.NodeSelector = map[string]string{}
		}
		m.NodeSelector["node.kubernetes.io/instance-type"] = spec.Instance
	}
	return m
}

// adopt makes the job the owner of what was made for it.
func (s submission) adopt(ctx context.Context) error {
	ctx, cancel := call(ctx)
	defer cancel()
	o, err := s.objects(s.kind).Get(ctx, s.ref.Name, meta.GetOptions{})
	if err != nil {
		return s.explain(fmt.Errorf("look at the job that was made: %w", err))
	}
	if err := s.ours(s.kind.object, o); err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`,
		o.GetAPIVersion(), o.GetKind(), o.GetName(), string(o.GetUID()))
	// Down finds them by their labels too: where this is forbidden, nothing is lost.
	_, _ = s.api.ConfigMaps(s.Namespace).Patch(ctx, s.ref.Name, types.MergePatchType, patch, meta.PatchOptions{})
	if len(s.job.Env) > 0 {
		_, _ = s.api.Secrets(s.Namespace).Patch(ctx, s.ref.Name, types.MergePatchType, patch, meta.PatchOptions{})
	}
	if s.kind.service {
		_, _ = s.api.Services(s.Namespace).Patch(ctx, s.ref.Name, types.MergePatchType, patch, meta.PatchOptions{})
	}
	return nil
}

// Find looks for the object of a run's job.
func (p *Provider) Find(ctx context.Context, life cloud.Life, run string, progress cloud.Progress) (cloud.Submitted, error) {
	r, known, err := knownRef(life, run)
	if err != nil || !known {
		return cloud.Submitted{}, err
	}
	d, err := p.open(r.place)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if there, err := d.await(ctx, r, progress); err != nil || !there {
		return cloud.Submitted{}, err
	}
	r.Asked = time.Time{}
	return cloud.Submitted{Ref: r.String(), Lacks: d.lacks(ctx)}, nil
}

// await reports whether there is a job, or what it has left, once none can come any more.
func (d *door) await(ctx context.Context, r ref, progress cloud.Progress) (bool, error) {
	for told := false; ; told = true {
		may := r.mayCome()
		ask, cancel := call(ctx)
		_, err := d.objects(kindNamed(r.Kind)).Get(ask, r.Name, meta.GetOptions{})
		cancel()
		switch {
		case err == nil:
			return true, nil
		case !apierrors.IsNotFound(err):
			return false, d.explain(err)
		}
		if pods, err := d.podsOf(ctx, kindNamed(r.Kind).selector(r.Name)); err != nil || len(pods) > 0 || !may {
			return len(pods) > 0, err
		}
		if !told {
			progress(-1, r.comes())
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return false, err
		}
	}
}
