// Package watch draws what is known of one cluster and its run: the steps, the
// training, the output, the receipt, and the line above them all.
package watch

import (
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// Page is what is known of a session, as its screens draw it.
type Page struct {
	text.Look
	Of *session.Session // nil: nothing is looked at
	// Retry says that what failed can be tried again, Again that code which was
	// corrected can be run on the cluster.
	Retry, Again bool
}

// Machines says which machines are paid for, and when they end.
func (p Page) Machines(w int) string {
	if p.Of == nil || p.Of.State.Machines.Instance == "" {
		return ""
	}
	st := p.Of.State
	left := p.Styles.Dim.Of(st.Machines.String())
	if st.Phase() == event.PhaseStopped {
		left += "  " + p.Styles.Warn.Of("○ stopped") + p.Styles.Dim.Of("; disks cost ") + units.PerHour(st.Account.Rate(p.Now))
	}
	return text.Spread(left, p.countdown(), w)
}

// spotActions is what a provider does to a machine that it takes back.
var spotActions = map[string]string{"stop": "stopped", "hibernate": "hibernated"}

// Spot counts down to the moment at which the provider takes machines
// away; empty when it has not announced that.
func (p Page) Spot() string {
	if p.Of == nil || p.Of.Over() {
		return ""
	}
	l := &p.Of.State.Account
	var names []string
	var first event.SpotNotice
	for _, n := range slices.Sorted(maps.Keys(l.Notices)) {
		names = append(names, p.Of.State.NodeName(n))
		if b := l.Notices[n]; first.At.IsZero() || b.At.Before(first.At) {
			first = b
		}
	}
	if len(names) == 0 {
		return ""
	}
	who, what := strings.Join(names, ", "), spotActions[first.Action]
	if what == "" {
		what = "taken away"
	}
	left := first.At.Sub(p.Now)
	if left <= 0 {
		return who + ": was to be " + what + " " + units.Clock(-left) + " ago (spot)"
	}
	return who + " will be " + what + " in " + units.Clock(left) + " (spot): checkpoint now"
}

// boundWords say what a bound means to somebody who has not read the manual.
var boundWords = map[string]string{"bootstrap": "unless it is used"}

// countdown says when the machines end by themselves; empty when they don't.
func (p Page) countdown() string {
	s := p.Of
	b, ok := s.State.Account.Next()
	if !ok || s.Over() || s.State.Phase() == event.PhaseStopping {
		return ""
	}
	why := text.Word(b.Why)
	if w := boundWords[why]; w != "" {
		why = w
	}
	if b.Node >= 0 {
		why += ", " + s.State.NodeName(b.Node)
	}
	return sign.Ends(p.Look, b.At) + p.Styles.Dim.Of(" ("+why+")")
}

// Money is what the cluster costs, for the corner of every screen of it.
func (p Page) Money() string {
	st := p.Of.State
	if p.Of.Past {
		return p.Styles.Dim.Of("past run")
	}
	if st.Phase() == event.PhaseGone {
		return p.Styles.Dim.Of("gone, cost ") + units.USD(st.Spent(p.Now))
	}
	return units.PerHour(st.Account.Rate(p.Now)) + "  " + units.USD(st.Spent(p.Now)) + p.Styles.Dim.Of(" so far")
}

// Lost says that there is nothing to follow.
func (p Page) Lost(w int) []string {
	out := []string{p.Styles.Bad.Of("✗ " + p.Of.Title() + " can't be followed"), ""}
	out = append(out, text.Wrap(p.Of.Lost, w)...)
	return append(out, "", p.Styles.Key.Of("esc")+"  goes back; what runs there goes on")
}
