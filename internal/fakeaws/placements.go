package fakeaws

import (
	"slices"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

type placementGroupXML struct {
	Name       string           `xml:"groupName"`
	State      string           `xml:"state"`
	Strategy   string           `xml:"strategy"`
	Partitions int              `xml:"partitionCount,omitempty"`
	ID         string           `xml:"groupId"`
	ARN        string           `xml:"groupArn"`
	Tags       wire.Set[tagXML] `xml:"tagSet"`
}

func (r *region) placementXML(p placement) placementGroupXML {
	return placementGroupXML{p.Name, "available", p.Strategy, p.Partitions, p.ID,
		"arn:aws:ec2:" + r.Name + ":" + r.s.opt.Account + ":placement-group/" + p.Name, p.Tags.xml()}
}

func createPlacementGroup(q *request) (any, error) {
	p := placement{Name: q.str("GroupName"), Strategy: q.str("Strategy"), Partitions: q.num("PartitionCount", 0)}
	orElse(&p.Strategy, "cluster")
	if p.Name == "" {
		return nil, bad("MissingParameter", "The request must contain the parameter groupName")
	}
	if !slices.Contains([]string{"cluster", "partition", "spread"}, p.Strategy) {
		return nil, bad("InvalidParameterValue", "Invalid placement group strategy: %s", p.Strategy)
	}
	if slices.ContainsFunc(q.region.placements.all(), func(o placement) bool { return o.Name == p.Name }) {
		return nil, bad("InvalidPlacementGroup.Duplicate", "The Placement Group '%s' already exists.", p.Name)
	}
	if err := q.onlyTags("placement-group"); err != nil {
		return nil, err
	}
	t, err := q.tagsFor("placement-group")
	if err != nil {
		return nil, err
	}
	p.common = common{wire.NewID("pg"), t}
	q.region.placements.put(p)
	return struct {
		Return bool              `xml:"return"`
		Group  placementGroupXML `xml:"placementGroup"`
	}{true, q.region.placementXML(p)}, nil
}

func describePlacementGroups(q *request) (any, error) {
	names, ids := q.list("GroupName"), q.list("GroupId")
	var found []placementGroupXML
	for _, p := range q.region.placements.listed() {
		ok, err := q.passes(p.Tags, fields{"group-name": one(p.Name), "strategy": one(p.Strategy), "state": one("available"),
			"group-arn": one(q.region.placementXML(p).ARN)})
		if err != nil {
			return nil, err
		}
		if ok && among(p.Name, names) && among(p.ID, ids) {
			found = append(found, q.region.placementXML(p))
		}
	}
	for _, name := range slices.Concat(names, ids) {
		has := func(p placementGroupXML) bool { return p.Name == name || p.ID == name }
		if !slices.ContainsFunc(found, has) && !q.has("Filter.1.Name") {
			return nil, bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
		}
	}
	return struct {
		Groups wire.Set[placementGroupXML] `xml:"placementGroupSet"`
	}{wire.SetOf(found)}, nil
}

func deletePlacementGroup(q *request) (any, error) {
	r, name, now := q.region, q.str("GroupName"), q.s.clock.Now()
	for _, p := range r.placements.listed() {
		if p.Name != name || !r.placements.exists(p.ID) {
			continue
		}
		if slices.ContainsFunc(r.instances.all(), func(i instance) bool { return i.Placement == name && i.state(now) != terminated }) {
			return nil, bad("InvalidPlacementGroup.InUse", "The placement group '%s' is in use and may not be deleted.", name)
		}
		r.placements.remove(p.ID)
		return done{true}, nil
	}
	return nil, bad("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", name)
}
