package fakeaws

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/machinetype"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// offeredIn reports whether a zone of a region has the type. Which zones have
// a rare type follows from its name, so that it is not always the first.
func (r *region) offeredIn(t machinetype.Type, zone string) bool {
	zones := r.zones()
	n := len(zones)
	if t.ZoneCount*n >= 4*n { // four of six are everywhere
		return true
	}
	if t.ZoneCount == 0 {
		return false
	}
	first := int(t.Name[1]) + len(t.Name)
	for i := range min(t.ZoneCount, n) {
		if zones[(first+i)%n] == zone {
			return true
		}
	}
	return false
}

// price is that of an hour, in US dollars: in us-east-1 as in the table, a
// little more elsewhere; a spot instance is 30 to 40 per cent, by zone.
func (r *region) price(t machinetype.Type, zone string, spot bool) float64 {
	p := t.PriceUSD
	if r.Name != "us-east-1" && r.Name != "us-east-2" && r.Name != "us-west-2" {
		p *= 1.25
	}
	if spot {
		p *= 0.3 + 0.02*float64(zone[len(zone)-1]-'a')
	}
	return p
}

// offered reports whether any zone has the type.
func (r *region) offered(t machinetype.Type) bool {
	return slices.ContainsFunc(r.zones(), func(z string) bool { return r.offeredIn(t, z) })
}

// typesPage is the most types that are on one page.
const typesPage = 100

func describeInstanceTypes(q *request) (any, error) {
	names := q.list("InstanceType")
	for _, name := range names {
		if t, ok := q.s.byName[name]; !ok || !q.region.offered(t) {
			return nil, bad("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	var found []machinetype.Type
	for _, t := range q.s.types {
		ok, err := q.passes(nil, t.Fields())
		if err != nil {
			return nil, err
		}
		if ok && among(t.Name, names) && q.region.offered(t) {
			found = append(found, t)
		}
	}
	found, next, err := page(q, found, typesPage, func(t machinetype.Type) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return struct {
		Types wire.Set[machinetype.Text] `xml:"instanceTypeSet"`
		listing
	}{wire.SetOf(each(found, machinetype.Type.Written)), listing{next}}, nil
}

type offeringXML struct {
	Type     string `xml:"instanceType"`
	Kind     string `xml:"locationType"`
	Location string `xml:"location"`
}

func (o offeringXML) key() string { return o.Type + " " + o.Location }

func describeInstanceTypeOfferings(q *request) (any, error) {
	kind := q.str("LocationType")
	orElse(&kind, "region")
	var found []offeringXML
	for _, t := range q.s.types {
		for _, sub := range q.region.subnets {
			o := offeringXML{t.Name, kind, map[string]string{"region": q.region.Name, "availability-zone": sub.Zone, "availability-zone-id": sub.ZoneID}[kind]}
			if o.Location == "" {
				return nil, bad("InvalidParameterValue", "Value (%s) for parameter locationType is invalid.", kind)
			}
			ok, err := q.passes(nil, fields{"instance-type": one(o.Type), "location": one(o.Location)})
			if err != nil {
				return nil, err
			}
			if ok && q.region.offeredIn(t, sub.Zone) && !slices.Contains(found, o) {
				found = append(found, o)
			}
		}
	}
	slices.SortFunc(found, func(a, b offeringXML) int { return strings.Compare(a.key(), b.key()) })
	found, next, err := page(q, found, 1000, offeringXML.key)
	if err != nil {
		return nil, err
	}
	return struct {
		Offerings wire.Set[offeringXML] `xml:"instanceTypeOfferingSet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}
