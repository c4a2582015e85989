package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/hostclaim"
)

// A name of the ssh configuration can mean another machine tomorrow: a laboratory gives
// it to its next one, a laptop is in another network. What a life has put on the machine
// that it took is still there, and nowhere else.

// sameWay reports whether two machines are reached by the same addresses.
func (m machine) sameWay(other machine) bool {
	same := func(x, y machine) bool { return x.addr() == y.addr() && x.Command == y.Command }
	return same(m, other) && slices.EqualFunc(m.Jumps, other.Jumps, same)
}

// moved reports whether a machine is reached by other addresses than when it was taken.
// What the user's own ssh makes of a name is not known here.
func (m machine) moved(now machine) bool { return !m.Own && !now.Own && !m.sameWay(now) }

// movedTo is the machine with the way that leads to it now.
func (m machine) movedTo(now machine) machine {
	now.Vouched, now.Option, now.Modules = m.Vouched, m.Option, m.Modules
	now.HomeOf, now.CodeOf, now.Beside, now.Met = m.HomeOf, m.CodeOf, m.Beside, m.Met
	return now
}

// stillThere refuses hosts that this life has taken elsewhere: names that lead to other
// machines now. The record of where they were has to stay, or Down would look at the new
// ones and prove that nothing is left.
func stillThere(ctx context.Context, life cloud.Life, contacts []*contact, before []machine) error {
	if len(before) != len(contacts) {
		return nil
	}
	var all []error
	for i, c := range contacts {
		if !before[i].moved(c.machine) {
			continue
		}
		a, err := c.ask(ctx, lifeRequest(hostclaim.Look, life), c.bounds.Script)
		if err == nil && a.Claim.Life == life.ID {
			continue // the same machine, by another way
		}
		why := elsewhere(before[i], c.machine, life)
		if err != nil {
			why = fmt.Sprintf("it was taken at %s, and whether it is the machine at %s can't be found out: %v", before[i], c.machine, err)
		}
		all = append(all, &Problem{Host: c.Alias, Why: why, Next: "dlwb down " + life.Name + " gives back the one that was taken; then again"})
	}
	return errors.Join(all...)
}

// elsewhere says that a name leads to a machine that was not taken.
func elsewhere(before, now machine, life cloud.Life) string {
	return fmt.Sprintf("it was taken at %s, and at %s, where its name leads now, is nothing of cluster %s", before, now, life.Name)
}

// rememberMoved keeps the ways by which hosts were reached, where those are others than
// on record: a host that was given back by a new one is not looked for by the old one.
func rememberMoved(life cloud.Life, machines []machine, now []*machine) error {
	some := false
	for i, m := range now {
		if m != nil {
			machines[i], some = machines[i].movedTo(*m), true
		}
	}
	if !some {
		return nil
	}
	return writeRecord(life, machines)
}
