package fakeaws

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/image"
	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// image finds an image by id, or by "resolve:ssm:" and a parameter's name.
func (r *region) image(id string) (image.AMI, error) {
	if name, ok := strings.CutPrefix(id, "resolve:ssm:"); ok {
		i := slices.IndexFunc(r.images, func(i image.AMI) bool { return i.Parameter == name })
		if i < 0 {
			return image.AMI{}, bad("InvalidParameterValue", "The parameter '%s' does not exist", name)
		}
		return r.images[i], nil
	}
	if !wire.WellFormedID("ami", id) {
		return image.AMI{}, bad("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
	}
	i := slices.IndexFunc(r.images, func(i image.AMI) bool { return i.ID == id })
	if i < 0 {
		return image.AMI{}, bad("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	return r.images[i], nil
}

func describeImages(q *request) (any, error) {
	ids, owners := q.list("ImageId"), q.list("Owner")
	for _, id := range ids {
		if _, err := q.region.image(id); err != nil {
			return nil, err
		}
	}
	var found []image.AMI
	for _, i := range q.region.images {
		ok, err := q.passes(nil, fields{"image-id": one(i.ID), "name": one(i.Name), "architecture": one(i.Arch), "state": one("available"),
			"owner-id": one(i.Owner), "owner-alias": one(i.Alias), "is-public": one("true"), "root-device-type": one("ebs"),
			"root-device-name": one(i.Root), "virtualization-type": one("hvm"), "description": one(i.Description), "image-type": one("machine")})
		if err != nil {
			return nil, err
		}
		owned := len(owners) == 0 || slices.Contains(owners, i.Owner) || i.Alias != "" && slices.Contains(owners, i.Alias)
		listed := !i.Deprecated || q.is("IncludeDeprecated") || slices.Contains(ids, i.ID)
		if ok && owned && listed && among(i.ID, ids) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b image.AMI) int { return strings.Compare(a.ID, b.ID) })
	found, next, err := page(q, found, 1000, func(i image.AMI) string { return i.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		Images wire.Set[image.XML] `xml:"imagesSet"`
		listing
	}{wire.SetOf(each(found, image.AMI.XML)), listing{next}}, nil
}

// each makes one list of another.
func each[T, X any](items []T, of func(T) X) []X {
	out := make([]X, 0, len(items))
	for _, v := range items {
		out = append(out, of(v))
	}
	return out
}

// sortable is a number that sorts as text.
func sortable(n int) string { return fmt.Sprintf("%09d", n) }
