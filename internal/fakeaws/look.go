package fakeaws

import (
	"slices"

	"github.com/dlwb/dlwb/internal/fakeaws/machinetype"
)

// Zones lists the zones of all regions.
func (s *Server) Zones() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.regions {
		out = append(out, r.zones()...)
	}
	return out
}

// RegionOf is the region that has a zone; empty when none has.
func (s *Server) RegionOf(zone string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.regions {
		if slices.Contains(r.zones(), zone) {
			return r.Name
		}
	}
	return ""
}

// HasType reports whether there is an instance type.
func (s *Server) HasType(name string) bool {
	return slices.ContainsFunc(s.types, func(t machinetype.Type) bool { return t.Name == name })
}

// Seen is an instance as a person sees it.
type Seen struct {
	Region, Zone, ID, Type, State string
	Spot                          bool
}

// Running lists the instances that calls have launched and that still run.
func (s *Server) Running() []Seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var out []Seen
	for _, r := range s.regions {
		for _, i := range r.instances.all() {
			state := i.state(s.clock.Now())
			if !r.instances.rows[i.ID].planted && state != terminated {
				out = append(out, Seen{r.Name, i.Zone, i.ID, i.Type, state, i.Spot != ""})
			}
		}
	}
	return out
}
