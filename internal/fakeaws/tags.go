package fakeaws

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

func createTags(q *request) (any, error) {
	t, err := readTags(q.params)
	if err != nil {
		return nil, err
	}
	return q.retag(func(old tags) tags { return old.with(t) })
}

func deleteTags(q *request) (any, error) {
	return q.retag(func(old tags) tags {
		old = old.with(nil)
		for _, tag := range q.each("Tag") {
			if k := tag.str("Key"); !tag.has("Value") || old[k] == tag.str("Value") {
				delete(old, k)
			}
		}
		return old
	})
}

// retag changes the tags of all things of the call, or of none.
func (q *request) retag(change func(tags) tags) (any, error) {
	for _, id := range q.list("ResourceId") {
		found := false
		for _, t := range q.region.tables() {
			found = found || t.retag(id, change)
		}
		if !found {
			return nil, missing(id)
		}
	}
	return done{true}, nil
}

// missing is what AWS says of an id that is not there: each kind has its own.
func missing(id string) error {
	kind, _, _ := strings.Cut(id, "-")
	codes := map[string]string{"i": "InvalidInstanceID.NotFound", "sg": "InvalidGroup.NotFound", "vol": "InvalidVolume.NotFound",
		"eni": "InvalidNetworkInterfaceID.NotFound", "key": "InvalidKeyPair.NotFound", "eipalloc": "InvalidAllocationID.NotFound",
		"sir": "InvalidSpotInstanceRequestID.NotFound", "pg": "InvalidPlacementGroup.Unknown"}
	code := codes[kind]
	orElse(&code, "InvalidID")
	return bad(code, "The ID '%s' is not valid", id)
}

type describedTag struct {
	ID    string `xml:"resourceId"`
	Kind  string `xml:"resourceType"`
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func (d describedTag) key() string { return d.ID + " " + d.Key }

func describeTags(q *request) (any, error) {
	var found []describedTag
	for kind, t := range q.region.tables() {
		for _, id := range t.ids() {
			all, _ := t.tagsOf(id)
			for k, v := range all {
				ok, err := q.passes(tags{k: v}, fields{"key": one(k), "value": one(v), "resource-id": one(id), "resource-type": one(kind)})
				if err != nil {
					return nil, err
				}
				if ok {
					found = append(found, describedTag{id, kind, k, v})
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b describedTag) int { return strings.Compare(a.key(), b.key()) })
	found, next, err := page(q, found, 1000, describedTag.key)
	if err != nil {
		return nil, err
	}
	return struct {
		Tags wire.Set[describedTag] `xml:"tagSet"`
		listing
	}{wire.SetOf(found), listing{next}}, nil
}
