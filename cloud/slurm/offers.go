package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// clockLine is the cluster's clock, as sbatch --test-only writes times.
const clockLine = `date +%Y-%m-%dT%H:%M:%S`

// estimates is of how many kinds of nodes it is asked when a job would begin: the
// scheduler tries each.
const estimates = 24

// Offers are the kinds of nodes that the partitions have: what is free of each, the
// limits there, and when the scheduler expects a job to begin.
func (p *Provider) Offers(ctx context.Context, q cloud.Query) (cloud.Offers, error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	m, node, err := p.machine(ctx, q.Login, nil)
	if err != nil {
		return cloud.Offers{}, err
	}
	c, problem := survey(ctx, m)
	if problem != nil {
		return cloud.Offers{}, &refused{what: "ask the Slurm of " + node.Name, why: problem.Text, next: problem.Next}
	}
	out := cloud.Offers{Offers: []cloud.Offer{}, Live: true, At: time.Now()}
	kinds, hidden := c.kinds(q)
	if err := c.estimate(ctx, m, q, kinds); err != nil {
		out.Notes = append(out.Notes, "when jobs would begin is not known: "+err.Error())
	}
	for _, k := range kinds {
		out.Offers = append(out.Offers, c.offer(k))
	}
	slices.SortStableFunc(out.Offers, soonest)
	if hidden > 0 {
		out.Notes = append(out.Notes, units.Count(hidden, "kind")+" of nodes have no GPU and are left out: --cpu shows them")
	}
	if len(out.Offers) == 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("no partition of %s has such nodes; it has %s", c.config["ClusterName"], strings.Join(c.names(), ", ")))
	}
	return out, nil
}

// refused is why a cluster can't be asked.
type refused struct{ what, why, next string }

func (r *refused) Error() string { return r.what + ": " + r.why }

// Next is what to do about it.
func (r *refused) Next() string { return r.next }

// kind are the nodes of a partition that are alike.
type kind struct {
	part  partition
	gpu   string // as GRES has it; empty: any, or none
	gpus  int
	cpus  int
	nodes []machine

	begins time.Duration
	known  bool
	why    string // it is not
}

func (k kind) free() (gpus int) {
	for _, m := range k.nodes {
		gpus += m.free(k.gpu)
	}
	return gpus
}

// kinds are those that a query asks for; hidden counts those without a GPU.
func (c *cluster) kinds(q cloud.Query) (all []*kind, hidden int) {
	byKey := map[string]*kind{}
	for _, p := range c.partitions {
		for _, m := range c.in(p) {
			types := keys(m.gpus)
			if len(types) == 0 {
				types = []string{""}
			}
			for _, gpu := range types {
				key := fmt.Sprint(p.name, "/", gpu, "/", m.has(gpu), "/", m.cpus, "/", m.memory)
				if byKey[key] == nil {
					byKey[key] = &kind{part: p, gpu: gpu, gpus: m.has(gpu), cpus: m.cpus}
					switch {
					case m.has(gpu) == 0 && !q.CPU:
						hidden++
					case wanted(byKey[key], q):
						all = append(all, byKey[key])
					}
				}
				byKey[key].nodes = append(byKey[key].nodes, m)
			}
		}
	}
	return all, hidden
}

// wanted holds a kind against a query.
func wanted(k *kind, q cloud.Query) bool {
	model := len(q.Need.GPU) == 0 || slices.ContainsFunc(q.Need.GPU, func(name string) bool { return strings.EqualFold(name, k.gpu) })
	return model && k.gpus >= q.Need.GPUs && (q.Instance == "" || q.Instance == k.part.name)
}

func (c *cluster) names() (all []string) {
	for _, p := range c.partitions {
		all = append(all, p.name)
	}
	return all
}

// estimate asks the scheduler when a job would begin that has what the query asks for
// of a kind: as many nodes, and of each so many GPUs, or all.
func (c *cluster) estimate(ctx context.Context, m cloud.Machine, q cloud.Query, kinds []*kind) error {
	asked := []question{{"clock", clockLine}}
	for i, k := range kinds[:min(len(kinds), estimates)] {
		o := order{run: "offers", life: "offers", nodes: max(q.Count, 1)}
		o.Partition, o.GPUType, o.GPUs = k.part.name, k.gpu, cmp.Or(q.Need.GPUs, k.gpus)
		asked = append(asked, question{fmt.Sprint(i), testOnly(o)})
	}
	all, err := ask(ctx, m, asked...)
	if err != nil {
		return err
	}
	now, err := time.Parse(stampForm, strings.TrimSpace(all["clock"].out))
	if err != nil {
		return fmt.Errorf("the cluster's clock shows %q", strings.TrimSpace(all["clock"].out))
	}
	for i, k := range kinds {
		a, is := all[fmt.Sprint(i)]
		if !is {
			k.why = "not asked"
			continue
		}
		if err := a.failed(); err != nil {
			k.why = strings.TrimPrefix(err.Error(), "allocation failure: ")
			continue
		}
		at, err := time.Parse(stampForm, startOf(a))
		if k.known = err == nil; k.known {
			k.begins = max(at.Sub(now), 0)
		}
	}
	return nil
}

// offer is a kind as the table of machines has it.
func (c *cluster) offer(k *kind) cloud.Offer {
	first := k.nodes[0]
	o := cloud.Offer{Provider: (*Provider)(nil).Kind(), Region: c.config["ClusterName"], Instance: k.part.name, GPUs: k.gpus, VCPUs: k.cpus, Memory: first.memory << 20,
		Zones: []cloud.Zone{}, Notes: []string{}}
	if k.gpus > 0 {
		o.GPU, o.GPUShare = cmp.Or(k.gpu, "GPU"), 1
	}
	queue := &cloud.Queue{Nodes: len(k.nodes), GPUs: k.gpus * len(k.nodes), FreeGPUs: k.free(), TimeLimit: k.part.most.Seconds(), UsualTime: k.part.usual.Seconds(),
		NodesPerJob: k.part.maxNodes}
	for _, m := range k.nodes {
		if m.able() {
			queue.Up++
			if m.idle() {
				queue.FreeNodes++
			}
		}
	}
	queue.Accounts, queue.QOS = c.rights(k.part)
	if k.known {
		seconds := k.begins.Seconds()
		queue.BeginsIn = &seconds
	}
	o.Queue, o.Notes = queue, append(o.Notes, c.notes(k)...)
	return o
}

// notes are what a person should know of a kind before choosing it.
func (c *cluster) notes(k *kind) (all []string) {
	if !k.part.up {
		all = append(all, "the partition is not up")
	}
	if k.why != "" {
		all = append(all, "Slurm would not take a job: "+k.why)
	}
	if features := k.nodes[0].features; len(features) > 0 {
		all = append(all, "features "+strings.Join(features, ", "))
	}
	if k.part.isDefault {
		all = append(all, "the default partition")
	}
	return all
}

// rights are the accounts and the QOS that the user has and a partition takes; nil
// where this Slurm keeps none.
func (c *cluster) rights(p partition) (accounts, qos []string) {
	a, q := map[string]bool{}, map[string]bool{}
	for _, row := range c.accounts {
		if row[1] != "" && row[1] != p.name || p.accounts != nil && !slices.Contains(p.accounts, row[0]) {
			continue
		}
		a[row[0]] = true
		for _, name := range strings.Split(row[2], ",") {
			q[name] = q[name] || p.qos == nil || slices.Contains(p.qos, name)
		}
	}
	for name, takes := range q {
		if !takes {
			delete(q, name)
		}
	}
	return keys(a), keys(q)
}

// soonest orders offers: those that begin soonest first, then those with more free.
func soonest(a, b cloud.Offer) int {
	when := func(o cloud.Offer) float64 {
		if o.Queue.BeginsIn == nil {
			return 1e18
		}
		return *o.Queue.BeginsIn
	}
	return cmp.Or(cmp.Compare(when(a), when(b)), cmp.Compare(b.Queue.FreeGPUs, a.Queue.FreeGPUs), cmp.Compare(b.Queue.FreeNodes, a.Queue.FreeNodes))
}
