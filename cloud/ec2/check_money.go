package ec2

import (
	"fmt"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/internal/units"
)

// quotas says whether the account may run the machines: as the spec asks for
// them, and on demand where the spec falls back to that.
func (c *preflight) quotas() (asked, fallback cloud.Finding) {
	o := c.offers[0]
	missing := wanted(c.spec)
	if c.reserve != nil && c.reserve.Block {
		return found("quota", "a capacity block needs none of the quota for machines on demand"), cloud.Finding{}
	}
	if !c.spec.Spot {
		return quotaFinding("quota", o, o.Quota, missing, false), cloud.Finding{}
	}
	asked = quotaFinding("spot quota", o, o.SpotQuota, missing, true)
	if own(c.spec).SpotFallback {
		fallback = quotaFinding("on-demand quota", o, o.Quota, missing, false)
		// One of the two ways is enough: the other stands in nobody's way.
		if asked.OK && !fallback.OK {
			fallback = cloud.Warning(fallback.What, fallback.Text, fallback.Next)
		} else if fallback.OK && !asked.OK {
			asked = cloud.Warning(asked.What, asked.Text, asked.Next)
		}
	}
	return asked, fallback
}

// quotaFinding tells a quota of 0 from one that is too small and from one that
// nobody knows.
func quotaFinding(what string, o cloud.Offer, q cloud.Quota, count int, spot bool) cloud.Finding {
	if count == 0 {
		return found(what, "the machines are there already")
	}
	return quotaFor(what, o, q, fmt.Sprintf("%d × %s", count, o.Instance), count*o.VCPUs, spot)
}

// quotaFor is the finding of a quota for machines that need so many vCPUs together.
func quotaFor(what string, o cloud.Offer, q cloud.Quota, machines string, need int, spot bool) cloud.Finding {
	if q.Code == "" {
		q.Name, q.Code = catalog.QuotaName(o.Instance, spot)
	}
	name := fmt.Sprintf("%q", q.Name)
	if q.Code != "" {
		name += " (" + q.Code + ")"
	}
	left := max(0, q.Limit-q.Used)
	raise := awsapi.RaiseQuota(o.Region, q.Code, q.Used+need, spot)
	switch {
	case !q.Known:
		text := fmt.Sprintf("not checked: %s in %s", name, o.Region)
		if q.Why != "" {
			text += ": " + q.Why
		}
		return cloud.Unchecked(what, fmt.Sprintf("%s; %d vCPUs are needed", text, need), "")
	case q.Limit == 0:
		return missing(what, fmt.Sprintf("this account may run no %s in %s: the quota %s is 0 vCPUs, as in every new account; %d are needed",
			o.Instance, o.Region, name, need), raise)
	case need > left:
		return missing(what, fmt.Sprintf("the quota %s in %s is too small: %s need %d vCPUs, and %d of %d are left",
			name, o.Region, machines, need, left, q.Limit), raise)
	}
	return found(what, fmt.Sprintf("%d vCPUs are needed, and %d of %d are left of %s in %s", need, left, q.Limit, name, o.Region))
}

// launch is what would be launched first, as far as its price goes; false when
// there is nothing to launch.
func (c *preflight) launch() (launch, bool) {
	if len(c.offers) == 0 || c.spec.Count < 1 {
		return launch{}, false
	}
	o := c.offers[0]
	l := launch{
		Region: o.Region, Instance: o.Instance, Spot: c.spec.Spot, VCPUs: o.VCPUs, Nodes: make([]int, c.spec.Count),
		Image: c.image.ID, Device: c.image.Device, Profile: own(c.spec).InstanceProfile,
		Disk: c.disk, Address: catalog.AddressPrice(),
	}
	l.GiB, _ = c.image.DiskGiB(c.spec.Disk) // a disk that is too small has its own finding
	var zone cloud.Zone
	if usable := c.usable(); len(usable) > 0 {
		zone = usable[0]
	}
	l.settle(own(c.spec), c.net)
	c.reserve.reserve(&l)
	l.Machine = l.price(o, zone)
	return l, true
}

// lead is the head beside a launch; nil: there is none, or nobody knows its type.
func (c *preflight) lead(l launch) *launch {
	if c.head == nil {
		return nil
	}
	h := l.lead(*c.head)
	return &h
}

// price works out what it costs, and what it can cost at most.
func (c *preflight) price(out *cloud.Preflight, all *[seen]cloud.Finding) {
	o := c.offers[0]
	out.Offer, out.Choices = &o, c.offers
	l, ok := c.launch()
	if !ok {
		return
	}
	h := c.lead(l)
	if (l.Machine.Known() || l.Block) && (h == nil || h.Machine.Known()) {
		all := []launch{l}
		if h != nil {
			all = append(all, *h)
		}
		out.Costs = costs(all)
		out.PricePerHour = sum(out.Costs)
		out.MostPerHour = c.most(l, out.PricePerHour)
	}
	all[seePrice] = c.priceFinding(l, out.PricePerHour)
	all[seeLimits] = c.limits(l, out.MostPerHour)
	if c.spec.Spot {
		all[seeSpot] = spotFinding(o, l)
	}
}

// most is the price of the dearest choice that the launch may come to: a spot
// machine never costs more than the same one on demand.
func (c *preflight) most(l launch, perHour float64) float64 {
	for _, o := range c.offers {
		q := o.Quota
		if c.spec.Spot && !own(c.spec).SpotFallback {
			q = o.SpotQuota
		}
		if q.Known && q.Left < wanted(c.spec) && o.Instance != l.Instance {
			continue // AWS refuses it
		}
		l.Machine = o.OnDemand
		all := float64(len(l.Nodes)) * l.perNode()
		if h := c.lead(l); h != nil {
			all += h.perNode()
		}
		perHour = max(perHour, all)
	}
	return perHour
}

func (c *preflight) priceFinding(l launch, perHour float64) cloud.Finding {
	const what = "price"
	h := c.lead(l)
	if h != nil && !h.Machine.Known() {
		l = *h
	}
	if !l.Machine.Known() && !l.Block {
		text := fmt.Sprintf("nobody says what %s costs in %s", l.Instance, l.Region)
		next := "https://aws.amazon.com/ec2/pricing/on-demand/"
		if c.spec.Budget > 0 {
			return missing(what, text+", so limits.budget can't be kept", next+"; or leave out limits.budget: limits.lifetime still ends it")
		}
		return cloud.Unchecked(what, text+"; limits.lifetime ends it all the same", next)
	}
	each := fmt.Sprintf("%s for each machine (%s)", units.PerHour(l.Machine.PerHour), priceSource(l.Machine))
	if h != nil {
		each += fmt.Sprintf(", %s for the head", units.PerHour(h.Machine.PerHour))
	}
	return found(what, fmt.Sprintf("%s; with disks and addresses %s in all", each, units.PerHour(perHour)))
}

// spotFinding says what a spot machine saves, and what it asks of a run.
func spotFinding(o cloud.Offer, l launch) cloud.Finding {
	text := "AWS may take the machines back at any time, with two minutes' notice: a run should write checkpoints"
	if saving := 1 - l.Machine.PerHour/max(o.OnDemand.PerHour, 1e-9); o.Spot.Known() && o.OnDemand.Known() && saving > 0 {
		text = fmt.Sprintf("%.0f%% below the price on demand (%s); %s", 100*saving, units.PerHour(o.OnDemand.PerHour), text)
	}
	return found("spot", text)
}

// limits says what it can cost at most.
func (c *preflight) limits(l launch, mostPerHour float64) cloud.Finding {
	const what = "limits"
	b := cloud.LatestEnd(c.spec.Budget, c.spec.Lifetime, mostPerHour)
	switch {
	case b.Limit == "" && c.spec.Budget == 0:
		return missing(what, "nothing limits what this costs", "set limits.lifetime or limits.budget in the profile")
	case mostPerHour == 0:
		return cloud.Unchecked(what, "the machines shut themselves down after "+units.Duration(c.spec.Lifetime)+"; what that costs is not known", "")
	}
	text := fmt.Sprintf("it can cost %s at most: limits.%s shuts the machines down, after %s at the highest price (%s)",
		units.USD(b.Cost), b.Limit, units.Duration(b.After), units.PerHour(mostPerHour))
	if b.Limit == "lifetime" {
		text += c.priceless()
	}
	return found(what, text)
}

// priceless names the choices that may cost more than the rest, for all that
// is known.
func (c *preflight) priceless() string {
	for _, o := range c.offers {
		if !o.OnDemand.Known() {
			return fmt.Sprintf("; not counted is %s in %s, of which nobody says the price", o.Instance, o.Region)
		}
	}
	return ""
}
