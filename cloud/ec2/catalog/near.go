package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/nearword"
)

// UnknownType says that a region does not have an instance type.
type UnknownType struct {
	Instance string
	Region   string
	// Elsewhere says that the type exists, but not in this region.
	Elsewhere bool
	// Unasked is why AWS could not be asked; dlwb's own table does not have
	// the type, which proves nothing.
	Unasked error
	Nearest []string // types that are there and have a similar name
}

func (e *UnknownType) Error() string {
	text := fmt.Sprintf("there is no instance type %q in %s", e.Instance, e.Region)
	switch {
	case e.Unasked != nil:
		text = fmt.Sprintf("dlwb's own table of GPU types has no %q, and AWS could not be asked: %s", e.Instance, sentence(e.Unasked))
	case e.Elsewhere:
		text = fmt.Sprintf("%s is not offered in %s", e.Instance, e.Region)
	}
	if len(e.Nearest) == 0 {
		return text
	}
	return text + "; near it: " + strings.Join(e.Nearest, ", ")
}

// unknown says why a view does not have a type.
func (m *Market) unknown(ctx context.Context, v *view, name string) error {
	e := &UnknownType{Instance: name, Region: v.region}
	_, e.Elsewhere = rows()[name]
	if !v.types.ok {
		e.Unasked = v.types.err
	}
	e.Nearest = nearword.Several(name, m.typeNames(ctx, v), 3)
	return e
}

// typeNames are all names that the region has, as far as is known.
func (m *Market) typeNames(ctx context.Context, v *view) []string {
	if s, err := m.shelf(ctx, v.region, false); err == nil && v.types.ok {
		l := live{api: m.api, region: v.region}
		if all := ask(ctx, s, part{name: "names"}, youngFacts, l.names); all.ok && len(all.value) > 0 {
			return all.value
		}
	}
	var names []string
	for _, f := range v.facts() {
		names = append(names, f.Instance)
	}
	return names
}
