package hosts

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/hostclaim"
)

// giving gives hosts back.
type giving struct {
	p        *Provider
	calls    *caller
	life     cloud.Life
	machines []machine
	ends     []ending
	now      []*machine // those that are reached by another way than on record
}

// group gives hosts back that share a directory, or one that shares none. What they
// share goes only when none of them runs anything of this life any more: so all are
// emptied first, and where one can't be looked at the directory stays as it is.
func (g giving) group(ctx context.Context, group []int) {
	contacts := make([]*contact, len(g.machines))
	var all sync.WaitGroup
	for _, i := range group {
		all.Go(func() {
			c, away := g.p.reachAgain(ctx, g.calls, g.machines[i], g.life)
			if away != nil {
				g.ends[i] = *away
				return
			}
			contacts[i] = c
			r := lifeRequest(hostclaim.Remove, g.life)
			r.Keep = len(group) > 1
			r.KeepCode = sharesCode(g.machines, i)
			e, had := g.remove(ctx, c, r)
			switch before := g.machines[i]; {
			case !before.moved(c.machine):
			case had:
				g.now[i] = &c.machine
			case e.state == cloud.Gone:
				e = ending{state: cloud.Unknown, proof: elsewhere(before, c.machine, g.life) + fmt.Sprintf("; the one that was taken may still run processes, and hold ~/dlwb/%s and ~/.dlwb", g.life.Name)}
			}
			g.ends[i] = e
		})
	}
	all.Wait()
	if len(group) == 1 {
		return
	}
	var missing []string
	for _, i := range group {
		if g.ends[i].state != cloud.Gone {
			missing = append(missing, g.machines[i].Entry)
		}
	}
	if len(missing) > 0 {
		for _, i := range group {
			if g.ends[i].state == cloud.Gone {
				g.ends[i].proof += fmt.Sprintf(", and ~/dlwb/%s and ~/.dlwb stay for %s, which shares them", g.life.Name, strings.Join(missing, ", "))
			}
		}
		return
	}
	g.empty(ctx, group, contacts)
}

// empty removes what hosts share, by the first one of each home, and has each of the
// others look for itself.
func (g giving) empty(ctx context.Context, group []int, contacts []*contact) {
	for _, i := range group {
		if g.machines[i].HomeOf == 0 {
			g.ends[i], _ = g.remove(ctx, contacts[i], lifeRequest(hostclaim.Remove, g.life))
		}
	}
	var all sync.WaitGroup
	for _, i := range group {
		of := g.machines[i].HomeOf
		if of == 0 {
			continue
		}
		all.Go(func() {
			e, _ := g.remove(ctx, contacts[i], lifeRequest(hostclaim.Remove, g.life))
			if e.state == cloud.Gone {
				e.proof = fmt.Sprintf("given back: no process carries DLWB_RUN_DIR; its home is that of %s, and nothing of this life is in it any more", g.machines[of-1].Entry)
			}
			g.ends[i] = e
		})
	}
	all.Wait()
}

// remove asks a host to give back what it has of the life, and reports whether the life
// had it.
func (g giving) remove(ctx context.Context, c *contact, r hostclaim.Request) (e ending, had bool) {
	a, err := c.ask(ctx, r, removeLimit)
	had = err == nil && a.Claim.Life == g.life.ID
	switch {
	case err != nil:
		return ending{state: cloud.Unknown, proof: "what is left there is not known: " + err.Error()}, false
	case r.Keep && had && a.Left.None():
		return ending{state: cloud.Gone, proof: "no process carries DLWB_RUN_DIR"}, had
	}
	return endingOf(a, g.life), had
}
