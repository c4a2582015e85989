package money

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

// leaseMoved is how far the end of a lease must move to be news.
const leaseMoved = 30 * time.Second

// Teller turns the lines of a node's watch into events.
type Teller struct {
	Node int
	// Publish tells an event.
	Publish func(event.Body) error
	// Leave is called once when the machine ends; nil: nothing.
	Leave func(id string)

	lease  event.LeaseChanged
	notice event.SpotNotice

	leaving string // the id of that
}

// Line takes in one line.
func (t *Teller) Line(text string) {
	kind, rest, _ := strings.Cut(text, " ")
	values := map[string]string{}
	for _, field := range strings.Fields(rest) {
		if k, v, ok := strings.Cut(field, "="); ok {
			values[k] = v
		}
	}
	switch kind {
	case "lease":
		t.leaseSaid(values)
	case "notice":
		t.noticeSaid(values)
	case "leaving":
		t.leavingSaid(values)
	}
}

// leaseBounds are the words that a node may say.
var leaseBounds = map[string]bool{"bootstrap": true, "idle": true, "lifetime": true, "budget": true}

// unbound is what a node says that has no bound.
const unbound = "none"

func (t *Teller) leaseSaid(v map[string]string) {
	if v["bound"] == unbound {
		if t.lease.Bound != "" && t.lease.Bound != unbound {
			t.lease = event.LeaseChanged{Node: t.Node, Bound: unbound}
			_ = t.Publish(t.lease)
		}
		return
	}
	left, err := strconv.ParseInt(v["left"], 10, 32)
	if err != nil || !leaseBounds[v["bound"]] {
		return
	}
	e := event.LeaseChanged{Node: t.Node, Bound: v["bound"], Ends: time.Now().UTC().Round(0).Add(time.Duration(left) * time.Second).Truncate(time.Second)}
	if e.Bound == t.lease.Bound && e.Ends.Sub(t.lease.Ends).Abs() < leaseMoved {
		return
	}
	if t.Publish(e) == nil {
		t.lease = e
	}
}

// leavingSaid takes in that the lease is over and the machine waits for its
// results to be brought home.
func (t *Teller) leavingSaid(v map[string]string) {
	id := v["id"]
	if _, err := strconv.ParseUint(id, 10, 62); err != nil || id == t.leaving || !leaseBounds[v["bound"]] {
		return
	}
	t.leaving = id
	_ = t.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf("the lease of node%d is over (%s): it shuts down when its results are home, in two minutes at the latest",
		t.Node, v["bound"])})
	if t.Leave != nil {
		t.Leave(id)
	}
}

func (t *Teller) noticeSaid(v map[string]string) {
	at, err := strconv.ParseInt(v["at"], 10, 64)
	action := v["action"]
	if err != nil || action != "terminate" && action != "stop" && action != "hibernate" {
		return
	}
	e := event.SpotNotice{Node: t.Node, Action: action, At: time.Unix(at, 0).UTC()}
	if e != t.notice && t.Publish(e) == nil {
		t.notice = e
	}
}
