package ecs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/cloud/rayjobs"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// Submit makes the Ray cluster of the life, or takes the one that is there, waits
// until it has all nodes, and hands the job in. What a call before has made is found
// by its name, and made no second time.
func (p *Provider) Submit(ctx context.Context, life cloud.Life, j cloud.Job, enter func(step, text string), progress cloud.Progress) (cloud.Submitted, error) {
	if own(j.Spec).Cluster != "" {
		return p.submitThere(ctx, life, j, enter, progress)
	}
	built, err := p.build(ctx, j, enter, progress)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if built != nil {
		j.Spec.Image = built.Name()
	}
	m, err := p.maker(ctx, life, j.Spec, progress)
	if err != nil {
		return cloud.Submitted{}, err
	}
	r := m.ref(j)
	name, body, err := packed(j, r.Output, m.place.facts[worker].gpus)
	if err != nil {
		return cloud.Submitted{}, err
	}
	g, err := m.rayCluster(ctx, p, enter)
	if err != nil {
		return cloud.Submitted{}, err
	}
	r.Built = built
	enter(stepUpload, uploadText(j, body))
	return m.give(ctx, g, r, name, body)
}

// uploadText says what goes to Ray.
func uploadText(j cloud.Job, body []byte) string {
	return fmt.Sprintf("%s, %s packed, to the head of Ray", units.Count(len(j.Code.Paths), "file"), units.Bytes(int64(len(body))))
}

// give uploads the code of a job to Ray and hands the job in.
func (m *maker) give(ctx context.Context, g *gate, r ref, name string, body []byte) (cloud.Submitted, error) {
	uri, err := g.Upload(ctx, name, body)
	if err != nil {
		return cloud.Submitted{}, fmt.Errorf("upload the code: %w", err)
	}
	if err := m.handIn(ctx, g, r, uri); err != nil {
		return cloud.Submitted{}, err
	}
	return r.submitted(), nil
}

// ref is what a job is found by.
func (m *maker) ref(j cloud.Job) ref {
	r := ref{Region: m.region, Account: m.account, Cluster: clusterName(m.life), Name: jobName(j.Run), Reach: m.own.Reach, PerHour: m.perHour(), Output: outputOf(j.Spec, m.life, j.Run)}
	r.Ranks, _ = pack.Ranks(j)
	return r
}

// submitted is what is told of a job.
func (r ref) submitted() cloud.Submitted {
	s := cloud.Submitted{Ref: r.String(), Lacks: lacks(r), PricePerHour: r.PerHour}
	if r.PerHour > 0 {
		s.Costs = []cloud.Cost{{What: "the machines of the Ray cluster, with its head's", PerHour: r.PerHour, Source: priceSource}}
	}
	return s
}

// maker finds out all that is needed and makes nothing.
func (p *Provider) maker(ctx context.Context, life cloud.Life, spec cloud.Spec, progress cloud.Progress) (*maker, error) {
	d, err := p.doors.Open(ctx, regionOf(spec))
	if err != nil {
		return nil, err
	}
	m := &maker{door: d, life: life, spec: spec, own: own(spec), progress: progress, prices: map[string]float64{}}
	if m.account, err = d.account(ctx); err != nil {
		return nil, err
	}
	if m.place, err = d.place(ctx, spec, m.own); err != nil {
		return nil, err
	}
	for _, part := range []string{head, worker} {
		m.prices[part] = d.price(ctx, m.instance(part))
	}
	made, err := m.sameAs()
	if err != nil {
		return nil, err
	}
	if made != nil {
		m.ends = made.Ends
		return m, nil
	}
	limit, err := cloud.PaidFor(spec, m.perHour(), 0, longest)
	m.ends = time.Now().Add(limit).Truncate(time.Second)
	return m, err
}

// perHour is what all machines cost; 0: it is not known.
func (m *maker) perHour() float64 { return total(m.prices, m.spec.Count) }

func total(prices map[string]float64, workers int) float64 {
	if prices[head] == 0 || prices[worker] == 0 {
		return 0
	}
	return prices[head] + prices[worker]*float64(workers)
}

// sameAs is what the ledger has of the machines of this life, which all its runs have
// in common; nil: there are none yet.
func (m *maker) sameAs() (*detail, error) {
	all, err := m.life.Ledger.Entries()
	if err != nil {
		return nil, err
	}
	e := entry(all, kindScaling, partName(m.life, worker))
	if e == nil {
		e = entry(all, kindScaling, partName(m.life, head))
	}
	if e == nil {
		return nil, nil
	}
	d, err := detailOf(e)
	switch {
	case err != nil:
		return nil, err
	case d.Region != m.region || d.Account != m.account:
		return nil, &plainError{fmt.Sprintf("the machines of %s are in %s of account %s", m.life.Name, d.Region, d.Account), "dlwb down " + m.life.Name + ", or the region and credentials that it has"}
	case time.Now().After(d.Ends):
		return nil, &cloud.Unpaid{Err: &plainError{"the time of the machines of " + m.life.Name + " was over at " + d.Ends.Local().Format("2006-01-02 15:04"), "dlwb down " + m.life.Name + ", then run it again"}}
	}
	return &d, m.fits(&d)
}

// longest is how long machines may be there at most.
const longest = 28 * 24 * time.Hour

// rayCluster makes all of the cluster, in the order in which each part needs those
// before it, and waits until Ray is whole.
func (m *maker) rayCluster(ctx context.Context, p *Provider, enter func(step, text string)) (*gate, error) {
	name := clusterName(m.life)
	enter(stepCluster, fmt.Sprintf("ECS cluster %s in %s, on %d × %s and %s", name, m.place.zone, m.spec.Count, m.spec.Instance, m.own.Head))
	if err := m.leaving(ctx); err != nil {
		return nil, err
	}
	capacity, err := m.frame(ctx)
	if err != nil {
		return nil, err
	}
	enter(stepMachines, fmt.Sprintf("%d × %s and %s; usually 2 to 4 minutes; they end at %s", m.spec.Count, m.spec.Instance, m.own.Head, m.ends.Local().Format("15:04 on 2 January")))
	if err := m.scale(ctx); err != nil {
		return nil, err
	}
	for _, part := range []string{head, worker} {
		if err := m.start(ctx, part); err != nil {
			return nil, err
		}
	}
	if err := m.machinesUp(ctx); err != nil {
		return nil, err
	}
	enter(stepHead, "a container of "+m.spec.Image+" with Ray's head")
	at, err := m.headUp(ctx, capacity[head])
	if err != nil {
		return nil, err
	}
	enter(stepWorkers, units.Count(m.spec.Count, "container")+" with Ray's workers")
	if _, err := m.partUp(ctx, worker, at.ip, capacity[worker]); err != nil {
		return nil, err
	}
	enter(stepRay, "until Ray shows every node and GPU")
	g := p.gate(m.door, m.life, name, m.own.Reach)
	return g, m.rayUp(ctx, g)
}

// frame makes what costs nothing yet, and the groups that are still empty. It gives
// the capacity provider of each part.
func (m *maker) frame(ctx context.Context) (map[string]string, error) {
	group, err := m.group(ctx)
	if err != nil {
		return nil, err
	}
	near, err := m.placement(ctx)
	if err != nil {
		return nil, err
	}
	if err := m.logGroup(ctx); err != nil {
		return nil, err
	}
	if err := m.cluster(ctx); err != nil {
		return nil, err
	}
	capacity := map[string]string{}
	for _, part := range []string{head, worker} {
		template, err := m.template(ctx, part, group, near)
		if err != nil {
			return nil, err
		}
		arn, err := m.scaling(ctx, part, template)
		if err != nil {
			return nil, err
		}
		if capacity[part], err = m.capacity(ctx, part, arn); err != nil {
			return nil, err
		}
	}
	return capacity, m.associate(ctx, []string{capacity[head], capacity[worker]})
}

// headUp starts the head and says where it is. Its address stands in the task
// definition of the workers: in place of service discovery, which needs a network of
// its own for each container.
func (m *maker) headUp(ctx context.Context, capacity string) (machine, error) {
	where, err := m.partUp(ctx, head, "", capacity)
	for _, at := range where {
		return at, err // it has one
	}
	return machine{}, err
}

// partUp starts the service of a part and waits for its containers. It gives their
// machines.
func (m *maker) partUp(ctx context.Context, part, headIP, capacity string) (map[string]machine, error) {
	task, err := m.task(ctx, part, headIP)
	if err != nil {
		return nil, err
	}
	if err := m.service(ctx, part, task, capacity); err != nil {
		return nil, err
	}
	return m.tasksUp(ctx, part)
}

// handIn submits the job, once: its id is the run's, and Ray takes each id once.
func (m *maker) handIn(ctx context.Context, g *gate, r ref, uri string) error {
	all, err := m.life.Ledger.Entries()
	if err != nil {
		return err
	}
	if entry(all, kindJob, r.Name) == nil {
		if err := m.life.Ledger.Intend(kindJob, token(kindJob, r.Name), detail{Region: r.Region, Account: r.Account, Name: r.Name, Job: &r}); err != nil {
			return err
		}
	}
	there, err := g.Look(ctx, r.Name)
	if err != nil {
		return err
	}
	if there == nil {
		err = g.Submit(ctx, rayjobs.Order{Entrypoint: entrypoint, ID: r.Name, Metadata: map[string]string{"dlwb_life": m.life.ID},
			RuntimeEnv: rayjobs.RuntimeEnv{WorkingDir: uri, EnvVars: map[string]string{"RAY_JOB_STOP_WAIT_TIME_S": "30"}}})
	}
	if err != nil {
		if there, look := g.Look(context.WithoutCancel(ctx), r.Name); look != nil || there == nil {
			return fmt.Errorf("submit the job: %w", err)
		}
	}
	return m.life.Ledger.Resolve(token(kindJob, r.Name), r.Name)
}

// Find looks for the job of a run by its id. Of one that was never asked for the
// ledger has nothing.
func (p *Provider) Find(ctx context.Context, life cloud.Life, run string, progress cloud.Progress) (cloud.Submitted, error) {
	all, err := life.Ledger.Entries()
	if err != nil {
		return cloud.Submitted{}, err
	}
	e := entry(all, kindJob, jobName(run))
	if e == nil || !e.Open() {
		return cloud.Submitted{}, nil
	}
	r, err := jobOf(e)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if e.ID != "" {
		return r.submitted(), nil
	}
	g, err := p.gateOf(ctx, life, r)
	if err != nil {
		return cloud.Submitted{}, err
	}
	if there, err := g.await(ctx, r.Name, e.IntentAt, progress); err != nil || !there {
		return cloud.Submitted{}, err
	}
	return r.submitted(), life.Ledger.Resolve(e.Token, r.Name)
}

// comesLimit is how long after it was asked for a job may come to be: Ray's dashboard
// goes on with a request whose client is gone.
const comesLimit = time.Minute

// await reports whether there is a job that was asked for, once none can come any more.
func (g *gate) await(ctx context.Context, name string, asked time.Time, progress cloud.Progress) (bool, error) {
	for told := false; ; told = true {
		may := time.Since(asked) < min(awsapi.Settle(), comesLimit)
		there, err := g.Look(ctx, name)
		if err != nil || there != nil || !may {
			return there != nil, err
		}
		if !told {
			progress(-1, "job "+name+" was asked for, and the answer is not known: it may still come")
		}
		if err := waits.Pause(ctx, time.Second); err != nil {
			return false, err
		}
	}
}

// jobOf is the job of an entry.
func jobOf(e *cloud.Entry) (ref, error) {
	d, err := detailOf(e)
	if err == nil && d.Job == nil {
		err = fmt.Errorf("what the ledger has of %s can't be read", e.Token)
	}
	if err != nil {
		return ref{}, err
	}
	return *d.Job, nil
}

// gateOf is the way to the cluster of a job.
func (p *Provider) gateOf(ctx context.Context, life cloud.Life, r ref) (*gate, error) {
	d, err := p.enter(ctx, r.Region, r.Account)
	if err != nil {
		return nil, err
	}
	if r.There {
		return p.gateThere(d, life, r), nil
	}
	return p.gate(d, life, r.Cluster, r.Reach), nil
}

// Await waits until the driver of a job runs, or has ended.
func (p *Provider) Await(ctx context.Context, life cloud.Life, text string, enter func(step, text string), progress cloud.Progress) error {
	r, err := readRef(text)
	if err != nil {
		return err
	}
	g, err := p.gateOf(ctx, life, r)
	if err != nil {
		return err
	}
	enter(stepQueue, "until Ray has made the job's directory and started its driver")
	said := ""
	for wait := firstLook; ; wait = min(wait*2, lookEvery) {
		j, err := g.see(ctx, r.Name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && permanent(err):
			return err
		case err != nil:
			j, said = nil, tell(progress, said, gateError(err).Error())
		case j == nil:
			return &plainError{"Ray has no job " + r.Name + ": its head was started again, or the cluster is gone", "dlwb down, and run it again"}
		case j.Status != rayjobs.Pending:
			return nil
		default:
			said = tell(progress, said, j.Message)
		}
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

func tell(progress cloud.Progress, said, text string) string {
	if text != said && text != "" {
		progress(-1, text)
	}
	return text
}

// leaving says that the removal of the life has begun, where it has: nothing of it
// may be used again, and nothing be made beside what goes. A down that broke off has
// closed entries, or has its services end their containers.
func (m *maker) leaving(ctx context.Context) error {
	over := &plainError{"the removal of cluster " + m.life.Name + " has begun and is not through", "dlwb down " + m.life.Name + ", then run it again"}
	all, err := m.life.Ledger.Entries()
	if err != nil {
		return err
	}
	for i := range all {
		if e := &all[i]; e.Kind != kindJob && e.Kind != kindInstance && !e.Open() {
			return over
		}
	}
	for _, part := range []string{head, worker} {
		name := partName(m.life, part)
		if e := entry(all, kindService, name); e == nil || e.ID == "" {
			continue
		}
		s, err := m.serviceNamed(ctx, name)
		if err != nil {
			return m.explain(err)
		}
		if s == nil || aws.ToString(s.Status) != "ACTIVE" || s.DesiredCount == 0 {
			return over
		}
	}
	return nil
}
