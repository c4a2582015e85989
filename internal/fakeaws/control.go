package fakeaws

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// SetCapacity says how many instances of a type, of this account, a zone has
// room for on demand; below 0: no end of it. An empty zone means all of the
// region.
func (s *Server) SetCapacity(region, zone, instanceType string, n int) {
	s.setCapacity(region, zone, instanceType, n, false)
}

// SetSpotCapacity is SetCapacity for spot instances.
func (s *Server) SetSpotCapacity(region, zone, instanceType string, n int) {
	s.setCapacity(region, zone, instanceType, n, true)
}

func (s *Server) setCapacity(region, zone, kind string, n int, spot bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.must(region)
	for _, z := range r.zones() {
		switch {
		case zone != "" && z != zone:
		case n < 0:
			delete(r.capacity, place{z, kind, spot})
		default:
			r.capacity[place{z, kind, spot}] = n
		}
	}
}

// SetQuota gives a quota, in vCPUs; below 0 it is one that was never changed:
// only the default is known.
func (s *Server) SetQuota(region, code string, vcpus float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if vcpus < 0 {
		delete(s.must(region).quotas, code)
		return
	}
	s.must(region).quotas[code] = vcpus
}

// must finds a region; a test that names another one is wrong.
func (s *Server) must(name string) *region {
	for _, r := range s.regions {
		if r.Name == name {
			return r
		}
	}
	panic("fakeaws: no region " + name)
}

// find is the instance of an id, in whatever region.
func (s *Server) find(id string) (*region, instance, bool) {
	for _, r := range s.regions {
		if i, ok := r.instances.get(id); ok {
			return r, i, true
		}
	}
	return nil, instance{}, false
}

// GuestShutdown is the machine's own power-off. It terminates or stops the
// instance, as its shutdown behaviour says.
func (s *Server) GuestShutdown(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i, ok := s.find(id)
	if !ok || i.Want != running {
		return
	}
	const code, why = "Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
	s.happen(func() {
		if i.Behaviour == "terminate" {
			r.end(i, code, why, "")
			return
		}
		r.rest(i, code, why, "")
	})
}

// Reclaim takes a spot instance back: its machine is told, if the Booter can
// tell it, and after the notice it is terminated.
func (s *Server) Reclaim(id string, notice time.Duration) {
	at := s.clock.Now().Add(notice)
	if n, ok := s.opt.Boot.(Noticer); ok {
		n.Notice(id, "terminate", at)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, i, ok := s.find(id); ok {
		r.mark(i.Spot, "marked-for-termination", "Your Spot Instance is marked for termination.")
	}
	s.spawn(func() {
		if s.clock.Wait(at, s.done) {
			s.reclaim(id)
		}
	})
}

func (s *Server) reclaim(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, i, ok := s.find(id)
	if !ok {
		return
	}
	s.happen(func() {
		r.end(i, "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination",
			"Server.SpotInstanceTermination")
	})
}

// Crash ends an instance as when its host fails.
func (s *Server) Crash(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, i, ok := s.find(id); ok {
		s.happen(func() {
			r.end(i, "Server.InternalError", "Server.InternalError: Internal error", "Server.InternalError")
		})
	}
}

// Instances lists "region id state" of all that calls have launched and that
// are not forgotten yet.
func (s *Server) Instances() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var out []string
	for _, r := range s.regions {
		for _, i := range r.instances.all() {
			if now := s.clock.Now(); !r.instances.rows[i.ID].planted && !r.forgotten(i, now) {
				out = append(out, fmt.Sprintf("%s %s %s", r.Name, i.ID, i.state(now)))
			}
		}
	}
	return out
}

// Launched is how many instances calls have ever made.
func (s *Server) Launched() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.regions {
		for _, row := range r.instances.rows {
			if !row.planted {
				n++
			}
		}
	}
	return n
}

// Spent is what the instances have cost until now, in US dollars.
func (s *Server) Spent() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum float64
	for _, r := range s.regions {
		for _, row := range r.instances.rows {
			if !row.planted && row.value != nil {
				sum += row.value.spent(s.clock.Now())
			}
		}
	}
	return sum
}

// Left lists what calls have made and what still exists, as "region kind id":
// instances that are not terminated, spot requests that may launch one, and
// all that has to be deleted.
func (s *Server) Left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var out []string
	for _, r := range s.regions {
		for kind, t := range r.tables() {
			for _, id := range t.made() {
				if !r.over(id) {
					out = append(out, strings.Join([]string{r.Name, kind, id}, " "))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// over reports whether an instance or a spot request is only history.
func (r *region) over(id string) bool {
	if i, ok := r.instances.get(id); ok {
		return i.state(r.s.clock.Now()) == terminated
	}
	if q, ok := r.spots.get(id); ok {
		return !q.live()
	}
	return false
}

// Exists reports whether there is such a thing, whatever a caller sees. A
// terminated instance does not exist.
func (s *Server) Exists(region, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	r := s.must(region)
	for _, t := range r.tables() {
		if t.exists(id) {
			return !r.over(id)
		}
	}
	return false
}

// Tag puts a tag on a thing as a service of AWS does, whose keys may begin with aws:.
func (s *Server) Tag(region, id, key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.must(region).tables() {
		t.retag(id, func(old tags) tags { return old.with(tags{key: value}) })
	}
}

// Touched lists the planted things that any call has changed or ended.
func (s *Server) Touched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.regions {
		for _, t := range r.tables() {
			out = append(out, t.touched()...)
		}
	}
	slices.Sort(out)
	return out
}

// SetARN makes the caller somebody else of the same account.
func (s *Server) SetARN(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.ARN = arn
}

// Subnet is the id of a zone's subnet; empty: there is none.
func (s *Server) Subnet(region, zone string) string {
	for _, r := range s.regions {
		if found, ok := r.subnetOf(zone); ok && r.Name == region {
			return found.ID
		}
	}
	return ""
}
