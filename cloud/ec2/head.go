package ec2

import (
	"context"
	"fmt"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// headed reports whether a spec asks for a machine more, which is node 0 and leads
// the others.
func headed(spec cloud.Spec) bool { return own(spec).Head != "" }

// nodesOf is how many machines a spec asks for, with the head.
func nodesOf(spec cloud.Spec) int { return spec.Count + heads(spec) }

func heads(spec cloud.Spec) int {
	if headed(spec) {
		return 1
	}
	return 0
}

// wanted is how many machines but the head are still to be made.
func wanted(spec cloud.Spec) int {
	return max(0, spec.Count-max(0, spec.Have-heads(spec)))
}

// headWanted reports whether the head is still to be made.
func headWanted(spec cloud.Spec) bool { return headed(spec) && spec.Have == 0 }

// headOffer is the head's type in a region, as one of the cluster: its machines
// run the same environment, and so are of one architecture.
func headOffer(ctx context.Context, lookup func(context.Context, string, string) (cloud.Offer, error), spec cloud.Spec, region, arch string) (cloud.Offer, error) {
	o, err := lookup(ctx, region, own(spec).Head)
	if err == nil && o.Arch != arch {
		err = fmt.Errorf("machines.head_instance %s is %s, and the other machines are %s: all of a cluster run the same image and environment; choose a head of the same architecture",
			o.Instance, o.Arch, arch)
	}
	return o, err
}

// head is the offer of the head beside machines of an offer; nil: there is none.
// Where there can be none, another offer may do.
func (u *up) head(ctx context.Context, beside cloud.Offer) (*cloud.Offer, error) {
	if !headed(u.spec) {
		return nil, nil
	}
	o, err := headOffer(ctx, u.lookup, u.spec, beside.Region, beside.Arch)
	if err != nil && ctx.Err() == nil {
		err = elsewhere{err}
	}
	return &o, err
}

// lead is the launch of the head beside that of the other machines: the same image
// in the same subnet, paid on demand, with its root disk alone.
func (l launch) lead(o cloud.Offer) launch {
	h := l
	h.Head, h.Nodes = true, []int{0}
	h.Instance, h.VCPUs, h.Machine = o.Instance, o.VCPUs, o.OnDemand
	h.Spot, h.MaxPrice, h.Reservation, h.Block = false, 0, "", false
	h.Placement, h.EFA, h.Fabric = "", false, nil
	h.Data, h.IOPS, h.Throughput = nil, 0, 0
	return h
}

// beside are the zones of a list that have the head's type, too; all where that is
// not known, or there is no head.
func beside(all []cloud.Zone, head *cloud.Offer) []cloud.Zone {
	if head == nil || len(head.Zones) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(z cloud.Zone) bool {
		return !slices.ContainsFunc(head.Zones, func(h cloud.Zone) bool { return h.Name == z.Name })
	})
}

// fill launches machines for the nodes that have none: the head last, where the
// others have found room. It returns the crew as it is then.
func (u *up) fill(ctx context.Context, c crew, missing []int) (crew, error) {
	var err error
	others := missing
	if headed(u.spec) && missing[0] == 0 {
		others = missing[1:]
	}
	switch {
	case len(others) == 0:
	case len(others) == u.spec.Count && c[0] == nil:
		err = u.walk(ctx, others)
	default:
		err = u.replace(ctx, c, others)
	}
	if err == nil && len(others) > 0 {
		c, err = u.crew(ctx)
	}
	if err != nil || len(others) == len(missing) || c.worker() == nil {
		return c, err
	}
	if err := u.launchHead(ctx, c); err != nil {
		return c, err
	}
	return u.crew(ctx)
}

// launchHead makes the head where the others are.
func (u *up) launchHead(ctx context.Context, c crew) error {
	l := c.worker().launch
	h, err := u.leader(ctx, c, l)
	if err != nil {
		return err
	}
	h.Tags = u.tags
	terms, err := u.terms(l, h, c.began())
	if err != nil {
		return err
	}
	u.say(-1, "launching "+h.what()+" in "+h.Zone)
	refused, err := u.start(ctx, *h, terms)
	if err == nil && refused != nil {
		err = fmt.Errorf("the head can't be had in %s, where the other machines are: %w; name another type in machines.head_instance and bring the cluster up again, or take it down", h.Zone, refused)
	}
	return err
}

// leader is the launch of the head beside machines of a launch: the one that lives, else
// as it will be made; nil: there is none.
func (u *up) leader(ctx context.Context, c crew, l launch) (*launch, error) {
	if m := c[0]; m != nil && m.launch.Head {
		return &m.launch, nil
	}
	if !headed(u.spec) {
		return nil, nil
	}
	o, err := u.lookup(ctx, l.Region, own(u.spec).Head)
	h := l.lead(o)
	return &h, err
}

// worker is a machine that is not the head; nil when there is none.
func (c crew) worker() *member {
	for _, m := range c.sorted() {
		if !m.launch.Head {
			return m
		}
	}
	return nil
}

// pattern is the launch by which machines in place of others are made: that of one
// that lives, else the last of which there is a record.
func (u *up) pattern(c crew) (launch, error) {
	if m := c.worker(); m != nil {
		return m.launch, nil
	}
	entries, err := u.life.Ledger.Entries()
	if err != nil {
		return launch{}, err
	}
	for _, e := range slices.Backward(entries) {
		if e.Kind != kindInstances {
			continue
		}
		if l, err := launchOf(e); err != nil || !l.Head {
			return l, err
		}
	}
	return launch{}, fmt.Errorf("nothing is on record of the machines beside the head: %w", errLost)
}

// sameHead holds a crew that there is against what is asked for now.
func (u *up) sameHead(c crew) error {
	if m := c[0]; m != nil && m.launch.Head != headed(u.spec) {
		has := "without a head"
		if m.launch.Head {
			has = "with the head " + m.launch.Instance
		}
		return fmt.Errorf("this cluster was begun %s, and machines.head_instance says otherwise now: take it down first", has)
	}
	return nil
}

// headFinding says what the head is, and whether it can be had: its quota is that
// of its own family.
func (c *preflight) headFinding() cloud.Finding {
	const what = "head"
	switch {
	case !headed(c.spec) || len(c.offers) == 0:
		return cloud.Finding{}
	case c.headErr != nil:
		return failed(what, c.headErr, "machines.head_instance: a type without GPUs, such as m5.xlarge")
	}
	o := *c.head
	text := fmt.Sprintf("%s with %s and %s, on demand, in the same subnet; no rank trains there", o.Instance, units.Count(o.VCPUs, "vCPU"), units.Bytes(o.Memory))
	if !headWanted(c.spec) {
		return found(what, text)
	}
	need := o.VCPUs
	if first := c.offers[0]; !c.spec.Spot && c.reserve == nil && first.Quota.Code == o.Quota.Code {
		need += wanted(c.spec) * first.VCPUs
	}
	q := quotaFor(what, o, o.Quota, "1 × "+o.Instance, need, false)
	if q.OK {
		q.Text = text + "; " + q.Text
	}
	return q
}
