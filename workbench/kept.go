package workbench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// stays reports whether a cluster that this drive made is kept when a step
// before training fails. Machines that came up and were reached are: what
// failed is most often a line of the profile or of the code, and new machines
// cost minutes and money. Machines that did not come up are of no use to anybody.
func (d *drive) stays() bool {
	return !d.goal.RemoveOnFailure && (d.arrived || d.goal.Keep && d.link != nil)
}

// unfetchedError says that the results of the run did not come home.
type unfetchedError struct{ error }

// Unwrap gives why.
func (e *unfetchedError) Unwrap() error { return e.error }

// keepsResults reports whether the nodes hold results that were tried to be had and
// did not come home, so that they are not removed. What is lost is no reason. After
// an interrupt it is tried once more.
func (d *drive) keepsResults(err error) bool {
	unfetched := new(unfetchedError)
	return errors.As(err, &unfetched) && !errors.Is(err, context.Canceled) && d.w.unsavedOf(d.record, []string{d.outcome.Run}) != nil
}

// keep tells that the cluster is not removed, and for which run.
func (d *drive) keep(err error, run string) (Outcome, error) {
	return d.outcome, errors.Join(err, d.w.publish(d.s, event.Noticed{Level: "warning",
		Text: "cluster " + d.plan.Cluster + " is not removed: it has the results of run " + run + ", which did not come home",
		Next: "dlwb pull " + run + " tries again, dlwb down " + d.plan.Cluster + " removes it with what it has"}))
}

// tellKept says that the machines stay after a failure, what they cost, when
// they end by themselves, how to go on and how to remove them: machines are
// never left behind silently.
func (d *drive) tellKept() {
	c := d.data.Cluster
	if len(c.Nodes) == 0 {
		return
	}
	text := fmt.Sprintf("cluster %s stays: %s of %s", c.Name, units.Count(len(c.Nodes), "node"), c.Provider)
	if c.PricePerHour > 0 {
		text += ", " + units.PerHour(c.PricePerHour)
	}
	if ends := d.endsAlone(); ends != "" {
		text += "; " + ends
	}
	_ = d.w.publish(d.s, event.Noticed{Level: "warning", Text: text, Next: d.waysOn()})
}

// waysOn says what can be done with machines that stay. A plan that was refused would
// be refused again.
func (d *drive) waysOn() string {
	remove := "dlwb down " + d.plan.Cluster + " removes them"
	if !d.plan.OK() {
		return remove
	}
	return d.again() + " goes on with them, what is done already is not done twice; " + remove
}

// endsAlone says when machines that are left alone end by themselves; empty for
// machines that don't.
func (d *drive) endsAlone() string {
	c, l := d.data.Cluster, d.plan.Profile.Limits
	if !traits(c.Provider).Leased {
		return ""
	}
	latest := c.ExpiresAt
	if latest.IsZero() && l.Idle == 0 {
		return ""
	}
	if idle := time.Now().Add(l.Idle); l.Idle > 0 && (latest.IsZero() || idle.Before(latest)) {
		text := "they end by themselves after " + units.Duration(l.Idle) + " without work"
		if !latest.IsZero() {
			text += ", at " + clockText(latest) + " at the latest"
		}
		return text
	}
	return "they end by themselves at " + clockText(latest)
}

// again is the command that goes on with what this drive began.
func (d *drive) again() string {
	verb := "run"
	switch {
	case d.goal.RerunOf != "":
		return "dlwb rerun " + d.goal.RerunOf
	case d.goal.Sweep != "":
		verb = "sweep"
	case d.goal.Until == event.StepEnvironment:
		verb = "up"
	case d.goal.Until == event.StepSync:
		verb = "sync"
	}
	return shellword.Join("dlwb", verb, d.plan.Path)
}

// faultOf is faultOf for a step of this drive. Advice to look at a node is of
// no use where the nodes are removed next.
func (d *drive) faultOf(err error) *event.Fault {
	f := *event.FaultOf(err)
	removed := d.goal.Down || d.made && d.goal.RemoveOnFailure
	if d.arrived && d.outcome.Run == "" && removed && f.Next != "" {
		f.Next += "; the machines are removed now: without " + d.remover() + " they stay to be looked at"
	}
	return &f
}

// remover is the flag that has a cluster removed after a failure.
func (d *drive) remover() string {
	if d.goal.Down {
		return "--down"
	}
	return "--remove-on-failure"
}

func clockText(t time.Time) string { return units.Minute(t) }
