package ecs

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/rayjobs"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// A cluster that is there, as the blueprint's Terraform makes one: its services run
// Ray's head and workers, which have all of the machines. dlwb hands its job to that Ray
// and makes nothing in the cluster.

// theirs is such a cluster.
type theirs struct {
	name, head string // of the cluster, and of the service of the head
	workers    int    // how many containers the services of workers are to have
	gpus       int    // of each
	image      string // of the workers
	role       string // of the workers' containers; empty: they have what their machines have
}

// theirs looks what runs Ray in a cluster. The services are known by their commands:
// their names are whatever somebody called them.
func (d *door) theirs(ctx context.Context, name string) (t theirs, err error) {
	t.name = name
	out, err := d.ecs.DescribeClusters(ctx, &awsecs.DescribeClustersInput{Clusters: []string{name}})
	if err != nil && !absent(err) {
		return t, d.explain(err)
	}
	next := "aws ecs list-clusters --region " + d.region + "; machines.cluster names one, and without it dlwb makes one"
	if err != nil || len(out.Clusters) == 0 || aws.ToString(out.Clusters[0].Status) != "ACTIVE" {
		return t, &plainError{"there is no active ECS cluster " + name + " in " + d.region, next}
	}
	services, err := d.servicesOf(ctx, name)
	if err != nil {
		return t, d.explain(err)
	}
	var heads []string
	for _, s := range services {
		def, err := d.ecs.DescribeTaskDefinition(ctx, &awsecs.DescribeTaskDefinitionInput{TaskDefinition: s.TaskDefinition})
		if err != nil {
			return t, d.explain(err)
		}
		if def.TaskDefinition == nil {
			return t, fmt.Errorf("AWS's answer has no task definition of service %s", aws.ToString(s.ServiceName))
		}
		for _, c := range def.TaskDefinition.ContainerDefinitions {
			switch said := strings.Join(slices.Concat(c.EntryPoint, c.Command), " "); {
			case !strings.Contains(said, "ray start"):
			case strings.Contains(said, "--head"):
				heads = append(heads, aws.ToString(s.ServiceName))
			default:
				t.workers += int(s.DesiredCount)
				t.gpus, t.image, t.role = gpusOf(c), aws.ToString(c.Image), aws.ToString(def.TaskDefinition.TaskRoleArn)
			}
		}
	}
	if len(heads) != 1 {
		return t, &plainError{fmt.Sprintf("ECS cluster %s has %s whose command is ray start --head, and one is needed", name, units.Count(len(heads), "service")), "look at its services, or name another cluster in machines.cluster"}
	}
	t.head = heads[0]
	return t, nil
}

func gpusOf(c ecstypes.ContainerDefinition) (n int) {
	for _, r := range c.ResourceRequirements {
		if r.Type == ecstypes.ResourceTypeGpu {
			n, _ = strconv.Atoi(aws.ToString(r.Value))
		}
	}
	return n
}

// servicesOf are the active services of a cluster.
func (d *door) servicesOf(ctx context.Context, cluster string) (all []ecstypes.Service, err error) {
	pages := awsecs.NewListServicesPaginator(d.ecs, &awsecs.ListServicesInput{Cluster: &cluster, MaxResults: aws.Int32(10)}) // as many as may be described at once
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if len(page.ServiceArns) == 0 {
			continue
		}
		out, err := d.ecs.DescribeServices(ctx, &awsecs.DescribeServicesInput{Cluster: &cluster, Services: page.ServiceArns})
		if err != nil {
			return nil, err
		}
		for _, s := range out.Services {
			if aws.ToString(s.Status) == "ACTIVE" {
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// headThere is where the head of such a cluster is now: by the address of its container,
// which has one of its own with awsvpc. The name that Cloud Map gives it leads there
// too, and is known within its VPC alone.
func (d *door) headThere(ctx context.Context, cluster string) (machine, error) {
	t, err := d.theirs(ctx, cluster)
	if err != nil {
		return machine{}, err
	}
	all, err := d.tasksOfService(ctx, cluster, t.head)
	if err != nil {
		return machine{}, d.explain(err)
	}
	for _, s := range all {
		if s.status != "RUNNING" || s.stopped {
			continue
		}
		found, err := d.machines(ctx, cluster, []string{s.machine})
		at, is := found[s.machine]
		if err != nil {
			return machine{}, err
		}
		if is {
			at.own, at.ip = s.ip != "" && s.ip != at.ip, cmp.Or(s.ip, at.ip)
			return at, nil
		}
	}
	return machine{}, fmt.Errorf("service %s of ECS cluster %s has no container that runs", t.head, cluster)
}

// gateThere is the way to the Ray of a cluster that is there. That asks for no token of
// dlwb's, and why dlwb has stopped a job is kept here: the cluster gets no tag.
func (p *Provider) gateThere(d *door, life cloud.Life, r ref) *gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := keyThere(life) + r.Cluster
	if g := p.rays[name]; g != nil {
		return g
	}
	g := &gate{door: d, cluster: r.Cluster, reach: r.Reach, seen: map[string]look{}, notes: filepath.Join(life.Dir, "why-"),
		find: func(ctx context.Context) (machine, error) { return d.headThere(ctx, r.Cluster) }}
	g.Client = rayjobs.New(g.dial, func() (string, error) { return "", nil })
	p.rays[name] = g
	return g
}

// keyThere is what the ways of a life to clusters that are there begin with among all.
// A name of an ECS cluster has no space in it.
func keyThere(life cloud.Life) string { return "there " + life.ID + " " }

// forgetThere closes what leads to clusters that are there, and the log of a job.
func (p *Provider) forgetThere(life cloud.Life, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, g := range p.rays {
		if strings.HasPrefix(key, keyThere(life)) {
			g.Close()
			delete(p.rays, key)
		}
	}
	if s := p.logs[name]; s != nil {
		s.close()
		delete(p.logs, name)
	}
}

// refuseThere says why a run can't be a job of a Ray that is there: of its workers
// nothing is known by which dlwb could tell them apart and place ranks.
func refuseThere(engine string) error {
	if engine == "ray" {
		return nil
	}
	return &plainError{"the Ray of a cluster that is there takes run.engine: ray, and the run has " + cmp.Or(engine, "no engine"), "engine: ray, whose script is the driver; or leave machines.cluster out, and dlwb makes a cluster for it"}
}

// submitThere hands a job to the Ray of a cluster that is there.
func (p *Provider) submitThere(ctx context.Context, life cloud.Life, j cloud.Job, enter func(step, text string), progress cloud.Progress) (cloud.Submitted, error) {
	if err := refuseThere(j.Engine); err != nil {
		return cloud.Submitted{}, err
	}
	d, err := p.doors.Open(ctx, regionOf(j.Spec))
	if err != nil {
		return cloud.Submitted{}, err
	}
	m := &maker{door: d, life: life, spec: j.Spec, own: own(j.Spec), progress: progress, prices: map[string]float64{}}
	if m.account, err = d.account(ctx); err != nil {
		return cloud.Submitted{}, err
	}
	if err := m.noneMade(); err != nil {
		return cloud.Submitted{}, err
	}
	enter(stepCluster, "ECS cluster "+m.own.Cluster+", which is there: dlwb makes nothing in it")
	t, err := d.theirs(ctx, m.own.Cluster)
	if err != nil {
		return cloud.Submitted{}, err
	}
	r := m.ref(j)
	r.Cluster, r.There = m.own.Cluster, true
	name, body, err := packed(j, r.Output, t.gpus)
	if err != nil {
		return cloud.Submitted{}, err
	}
	g := p.gateThere(d, life, r)
	enter(stepRay, "until its Ray shows every worker and GPU")
	if err := m.rayThere(ctx, g, t); err != nil {
		return cloud.Submitted{}, err
	}
	enter(stepUpload, uploadText(j, body))
	return m.give(ctx, g, r, name, body)
}

// noneMade refuses a cluster that is there where the life has one of its own, whose
// machines would cost on without a run.
func (m *maker) noneMade() error {
	all, err := m.life.Ledger.Entries()
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].Kind != kindJob && all[i].Open() {
			return &plainError{m.life.Name + " has a cluster that dlwb has made, and machines.cluster names another", "dlwb down " + m.life.Name + ", then run it again"}
		}
	}
	return nil
}

// rayThere waits until the Ray that is there has as many workers as the run asks for.
func (m *maker) rayThere(ctx context.Context, g *gate, t theirs) error {
	return m.until(ctx, rayLimit, "Ray", func() (bool, string, error) {
		nodes, err := g.Nodes(ctx)
		if err != nil {
			return false, "", gateError(err)
		}
		workers, gpus := 0, 0
		for _, n := range nodes {
			if !n.Head {
				workers++
			}
			gpus += int(n.Resources["GPU"])
		}
		return workers >= m.spec.Count && gpus >= m.spec.Count*t.gpus, fmt.Sprintf("Ray shows %d of %d workers and %d of %d GPUs", workers, m.spec.Count, gpus, m.spec.Count*t.gpus), nil
	})
}

// there checks what a job needs of a cluster that is there.
func (c *check) there(ctx context.Context, out *cloud.Preflight) {
	add := func(f ...cloud.Finding) { out.Findings = append(out.Findings, f...) }
	out.Costs = []cloud.Cost{}
	if err := refuseThere(c.spec.Engine); err != nil {
		add(cloud.FromError("engine", err, ""))
	}
	if c.own.Repository != "" {
		add(cloud.Finding{What: "image", Text: "machines.repository is of no use with machines.cluster: its workers have an image already", Next: "leave one of them out"})
	}
	t, err := c.theirs(ctx, c.own.Cluster)
	if err != nil {
		add(cloud.FromError("cluster", err, ""))
		return
	}
	has := fmt.Sprintf("ECS cluster %s, which dlwb leaves as it is: service %s has Ray's head, and its workers are %d with %s each", t.name, t.head, t.workers, units.Count(t.gpus, "GPU"))
	if t.workers < c.spec.Count {
		add(cloud.Finding{What: "cluster", Text: fmt.Sprintf("%s; the run asks for %d", has, c.spec.Count), Next: fmt.Sprintf("machines.count: %d, or more workers there", t.workers)})
	} else {
		add(cloud.Passed("cluster", has))
	}
	if at, err := c.headThere(ctx, t.name); err != nil {
		add(cloud.FromError("head", err, "look at service "+t.head))
	} else {
		add(cloud.Passed("head", "Ray's head is at "+at.ip+", on "+at.instance))
	}
	if t.image != c.spec.Image {
		add(cloud.Warning("machine image", "the workers have "+t.image+", and not machines.image "+c.spec.Image, "machines.image: "+t.image))
	}
	add(cloud.Passed("price", "the machines are not dlwb's, and cost whoever made them: nothing is counted here"))
	add(cloud.Warning("limits", "limits.lifetime and limits.budget are not acted on: dlwb ends no machine of a cluster that it has not made, and a run there goes on until it ends or is stopped", ""))
	c.own.TaskRole = cmp.Or(t.role, c.own.TaskRole)
	add(c.checkOutput(ctx)...)
	if c.spec.Drain.S3 != "" {
		out.Script = "# the least policy for results.s3, of " + c.writer() + "\n" + policyOf(c.rights()) + "\n"
	}
	out.Script += "# the job, by the jobs API of the Ray in ECS cluster " + t.name + "\n" + entrypoint
}

// closeThere ends a job in a Ray that is there and proves its end by that Ray. The
// cluster stays.
func (t *teardown) closeThere(ctx context.Context) error {
	if !t.e.Open() {
		t.tell(cloud.Gone, t.e.Proof)
		return nil
	}
	defer t.p.forgetThere(t.life, t.d.Job.Name)
	proof, err := t.endThere(ctx, t.p.gateThere(t.door, t.life, *t.d.Job))
	if err != nil {
		if _, none := t.theirs(ctx, t.d.Job.Cluster); none == nil || !permanent(none) {
			t.tell(cloud.Unknown, err.Error())
			return gateError(err)
		}
		proof = "the Ray of ECS cluster " + t.d.Job.Cluster + " is no more"
	}
	proof += "; ECS cluster " + t.d.Job.Cluster + ", its services and machines stay: dlwb has not made them"
	if t.d.Job.Output != "" {
		proof += "; what the job has written to S3 stays in " + t.d.Job.Output
	}
	t.tell(cloud.Gone, proof)
	return t.life.Ledger.Close(t.e.Token, proof)
}

// endThere stops a job and waits until Ray says that it has ended. One that Ray does not
// have may be too new, whether its answer was heard or not.
func (t *teardown) endThere(ctx context.Context, g *gate) (proof string, err error) {
	asked := false
	for until := time.Now().Add(stopLimit); ; {
		j, err := g.Look(ctx, t.d.Job.Name)
		switch {
		case err != nil && permanent(err):
			return "", err
		case err != nil:
		case j == nil && (t.e.ID != "" || time.Since(t.e.IntentAt) > awsapi.Settle()):
			return "Ray has no such job", nil
		case j == nil:
		case j.Over():
			return fmt.Sprintf("Ray says that it has ended: %s", j.Status), nil
		case !asked:
			err = g.Stop(ctx, t.d.Job.Name)
			asked = err == nil
		}
		if time.Now().After(until) {
			return "", cmp.Or(err, error(&plainError{"job " + t.d.Job.Name + " has not ended within " + units.Duration(stopLimit), "dlwb down tries again"}))
		}
		if err := waits.Pause(ctx, time.Second/2); err != nil {
			return "", err
		}
	}
}
