package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

const listSource = "AWS Price List"

// candidate is an offer on its way to being ranked.
type candidate struct {
	cloud.Offer
	turn int    // of its region in the list asked for
	bar  string // why it cannot be had now; empty: it can, as far as is known
	odd  bool   // the usual images or wheels do not run on it
	// unsure: AWS did not say that the region has it.
	unsure bool
}

// candidates are the region's types that the query is about.
func (v *view) candidates(q cloud.Query) []candidate {
	var all []candidate
	for _, f := range v.facts() {
		if q.Instance != "" && f.Instance != q.Instance || q.Instance == "" && f.GPUs == 0 && !q.CPU {
			continue
		}
		all = append(all, v.candidate(f, q))
	}
	return all
}

func (v *view) candidate(f Facts, q cloud.Query) candidate {
	o := cloud.Offer{
		Provider: "ec2", Region: v.region, Instance: f.Instance, Arch: f.Arch,
		GPU: f.GPU, GPUs: f.GPUs, GPUShare: f.Share, GPUMemory: f.GPUMemory,
		VCPUs: f.VCPUs, Memory: f.Memory, Network: f.Network, EFA: f.EFA, NVMe: f.NVMe,
		OnDemand:  v.onDemand(f.Instance),
		Zones:     v.zones(f.Instance, q.Spot),
		Quota:     v.quota(f.Instance, f.VCPUs, false),
		SpotQuota: v.quota(f.Instance, f.VCPUs, true),
	}
	o.Spot = v.cheapest(o.Zones)
	c := candidate{Offer: o, bar: v.bar(f, o, q), unsure: !v.types.ok}
	c.Notes, c.odd = remarks(f)
	if c.bar != "" {
		c.Notes = append([]string{c.bar}, c.Notes...)
	}
	if !o.OnDemand.Known() && v.prices.err != nil {
		c.Notes = append(c.Notes, "no price: "+sentence(v.prices.err))
	}
	return c
}

func (v *view) onDemand(name string) cloud.Price {
	if price := v.prices.value[name]; price > 0 {
		return cloud.Price{PerHour: price, Source: listSource, At: v.prices.at}
	}
	return tablePrice(v.region, name)
}

// zones are those that offer a type; by name, or for spot the cheapest first.
// When AWS does not say which offer it, those with a spot price do.
func (v *view) zones(name string, spot bool) []cloud.Zone {
	names := v.offered.value[name]
	if !v.offered.ok {
		for zone := range v.spot.value[name] {
			names = append(names, zone)
		}
	}
	zones := []cloud.Zone{}
	for _, zone := range names {
		zones = append(zones, cloud.Zone{Name: zone, ID: v.zoneIDs.value[zone], Spot: v.spot.value[name][zone]})
	}
	slices.SortFunc(zones, func(a, b cloud.Zone) int {
		if spot && a.Spot != b.Spot {
			return cmp.Compare(orInf(a.Spot), orInf(b.Spot))
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return zones
}

func (v *view) cheapest(zones []cloud.Zone) cloud.Price {
	p := cloud.Price{}
	for _, z := range zones {
		if z.Spot > 0 && (p.PerHour == 0 || z.Spot < p.PerHour) {
			p = cloud.Price{PerHour: z.Spot, Source: "spot price history", At: v.spot.at}
		}
	}
	return p
}

// bar says why a type cannot be had in the market asked for.
func (v *view) bar(f Facts, o cloud.Offer, q cloud.Query) string {
	market, quota := "on-demand", o.Quota
	if q.Spot {
		market, quota = "spot", o.SpotQuota
	}
	wanted := max(1, q.Count)
	r, inTable := rows()[f.Instance]
	switch {
	case len(f.Usage) == 1 && f.Usage[0] == "capacity-block":
		return "sold only as Capacity Blocks, which dlwb does not buy"
	case len(f.Usage) > 0 && !slices.Contains(f.Usage, market):
		return "not sold as " + market
	case v.offered.ok && len(o.Zones) == 0:
		return "no zone of " + v.region + " offers it"
	case !v.types.ok && inTable && r.zones == 0 && v.region == tableRegion:
		return "no zone of " + v.region + " offered it on 2026-08-02"
	case q.Spot && v.spot.ok && !o.Spot.Known():
		return "no spot price in " + v.region + ": there is no spot market for it now"
	case quota.Known && quota.Limit == 0:
		return fmt.Sprintf("the quota \"%s\" (%s) is 0 vCPUs in %s", quota.Name, quota.Code, v.region)
	case quota.Known && quota.Left < wanted:
		return fmt.Sprintf("the quota \"%s\" (%s) has %d of %d vCPUs in use: room for %d, wanted %d",
			quota.Name, quota.Code, quota.Used, quota.Limit, quota.Left, wanted)
	}
	return ""
}

// remarks are what a person should know of a type before choosing it, and
// whether the usual images and wheels do not run on it.
func remarks(f Facts) (notes []string, odd bool) {
	notes = []string{}
	add := func(text string, isOdd bool) {
		notes = append(notes, text)
		odd = odd || isOdd
	}
	if f.Arch == "arm64" {
		add("needs arm64 wheels", true)
	}
	if f.GPUs > 0 && f.Vendor != "" && f.Vendor != "NVIDIA" {
		add(f.Vendor+" GPU: CUDA programs do not run on it", true)
	}
	if strings.HasPrefix(f.Instance, "p3") || strings.HasPrefix(f.Instance, "p2") {
		add("not supported by the open driver of the Deep Learning AMI", true)
	}
	if f.GPUs > 0 && f.Share < 1 {
		add(fmt.Sprintf("has %s of a GPU", fraction(f.Share)), false)
	}
	if len(f.Usage) > 1 && slices.Contains(f.Usage, "capacity-block") {
		add("can also be reserved as a Capacity Block, which dlwb does not buy", false)
	}
	if f.Remark != "" {
		add(f.Remark, false)
	}
	return notes, odd
}

func fraction(share float64) string {
	if parts := 1 / share; parts == float64(int(parts)) {
		return fmt.Sprintf("1/%d", int(parts))
	}
	return fmt.Sprintf("%.2g", share)
}

func plain(list []candidate) []cloud.Offer {
	offers := make([]cloud.Offer, len(list))
	for i, c := range list {
		offers[i] = c.Offer
	}
	return offers
}

// summary is the answer but for its offers: whether AWS told, how old the
// oldest part of it is, and what is missing.
func summary(views []view, now time.Time) cloud.Offers {
	o := cloud.Offers{Offers: []cloud.Offer{}, Live: true, At: now.UTC(), Notes: []string{}}
	for i := range views {
		v := &views[i]
		o.Live = o.Live && v.types.ok
		for _, p := range v.parts() {
			if p.ok && p.at.Before(o.At) {
				o.At = p.at
			}
		}
		if !v.types.ok && tableDate.Before(o.At) {
			o.At = tableDate
		}
		for _, note := range v.notes(now) {
			if !slices.Contains(o.Notes, note) {
				o.Notes = append(o.Notes, note)
			}
		}
	}
	return o
}

// partOf is what a note says of one part of the market.
type partOf struct {
	what    string
	instead string // what there is when there is no answer at all
	at      time.Time
	ok      bool
	err     error
}

func (v *view) parts() []partOf {
	const unknown, table = "are not known", "are those of " + tableSource
	prices := unknown
	if v.region == tableRegion {
		prices = table
	}
	return []partOf{
		{"instance types", table, v.types.at, v.types.ok, v.types.err},
		{"zones", unknown, v.offered.at, v.offered.ok, v.offered.err},
		{"zone ids", unknown, v.zoneIDs.at, v.zoneIDs.ok, v.zoneIDs.err},
		{"prices on demand", prices, v.prices.at, v.prices.ok, v.prices.err},
		{"spot prices", unknown, v.spot.at, v.spot.ok, v.spot.err},
		{"quotas", unknown, v.quotas.at, v.quotas.ok, v.quotas.err},
	}
}

// notes say which parts are old or missing, and why: one sentence for all that
// are so for the same reason.
func (v *view) notes(now time.Time) []string {
	if v.dead() {
		prices := "whose prices are for " + tableRegion + " only"
		if v.region == tableRegion {
			prices = "with its prices"
		}
		return []string{fmt.Sprintf("AWS could not be asked about %s (%s): this is %s, %s", v.region, sentence(v.types.err), tableSource, prices)}
	}
	var order []string
	whats := map[string][]string{}
	for _, p := range v.parts() {
		if p.err == nil {
			continue
		}
		how := p.instead
		if p.ok {
			how = "are " + units.Coarse(now.Sub(p.at)) + " old"
		}
		how += ": " + sentence(p.err)
		if whats[how] == nil {
			order = append(order, how)
		}
		whats[how] = append(whats[how], p.what)
	}
	notes := make([]string, len(order))
	for i, how := range order {
		notes[i] = fmt.Sprintf("%s: %s %s", v.region, strings.Join(whats[how], ", "), how)
	}
	return notes
}

// dead reports whether AWS said nothing at all about the region.
func (v *view) dead() bool {
	return !slices.ContainsFunc(v.parts(), func(p partOf) bool { return p.ok || p.err == nil })
}

// sentence is an error as part of a sentence: one line, no full stop.
func sentence(err error) string {
	line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimRight(line, ". ")
}
