package follow

import (
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// nodeClock is what is known of a node's clock. A clock may be wrong, and be
// set at any moment; uptime runs on evenly.
type nodeClock struct {
	up   time.Duration // of the node, at seen
	seen time.Time     // here, with its monotonic reading; zero: never
	// was is the node's time of day less its uptime: the moment of its boot, as
	// its clock tells it. It changes only when the clock is set.
	was     time.Time
	wasUp   time.Duration // the uptime when that was read
	checked bool          // against the clock here
}

const (
	// clockMoved is how far a clock must have been set to be worth a word:
	// more than seconds are rounded, less than any timeout that it upsets.
	clockMoved = 10 * time.Second
	// clockWrong is how far a node's clock may be off ours.
	clockWrong = 2 * time.Minute
)

// heard takes in that a node told its uptime. Of all that came the one counts that was
// the least on its way: on a machine that has much to do an answer may take seconds. It
// counts until the node boots again.
func (c *nodeClock) heard(up time.Duration, now time.Time) {
	if up > 0 && (c.seen.IsZero() || up < now.Sub(c.seen) || now.Add(-up).Before(c.seen.Add(-c.up))) {
		c.up, c.seen = up, now
	}
}

// looked takes in what a look at the run on a node has shown.
func (t *Watch) looked(node int, s job.State) {
	t.mu.Lock()
	t.heard[node] = time.Now()
	n, c := &t.nodes[node], &t.clocks[node]
	c.heard(s.Uptime, time.Now())
	n.rebooted = n.rebooted || s.Rebooted
	n.full, n.fullAt, n.noRoom = s.Full, s.FullAt, ""
	if !s.Clock.IsZero() && s.Free < fullBelow {
		n.noRoom = units.Bytes(s.Free) + " are free"
	}
	noRoom, ask := n.noRoom != "", !c.checked && !s.Clock.IsZero()
	c.checked = c.checked || ask
	t.mu.Unlock()
	if noRoom {
		t.notice(fmt.Sprintf("the disk of node%d is full", node), "make room there: what the ranks print meanwhile is lost, and checkpoints fail")
	}
	if s.Full != "" {
		t.notice(fmt.Sprintf("output on node%d was lost: %s", node, s.Full), "its log tells where, and how much, once there is room again")
	}
	if off := s.Clock.Sub(now()); ask && off.Abs() > clockWrong {
		t.notice(fmt.Sprintf("the clock of node%d is %s this machine's; nothing here depends on it", node, offText(off, "ahead of", "behind")),
			"certificates and tokens may: let NTP set it")
	}
	t.clock(node, s.Clock, s.Uptime)
}

// clock tells when the clock of a node was set during the run.
func (t *Watch) clock(node int, at time.Time, up time.Duration) {
	if up <= 0 || at.IsZero() {
		return
	}
	booted := at.Add(-up)
	t.mu.Lock()
	c := &t.clocks[node]
	was, before := c.was, c.wasUp
	if up >= before { // news may come in another order
		c.was, c.wasUp = booted, up
	}
	t.mu.Unlock()
	if was.IsZero() || up < before {
		return
	}
	if by := booted.Sub(was); by.Abs() > clockMoved {
		t.notice(fmt.Sprintf("the clock of node%d was set %s %s after its boot; times in its own output jump, what dlwb measures does not",
			node, offText(by, "forward", "back"), units.Duration(up)), "")
	}
}

// offText is "24h0m ahead of".
func offText(off time.Duration, ahead, behind string) string {
	word := ahead
	if off < 0 {
		word = behind
	}
	return units.Clock(off.Abs()) + " " + word
}

// notice tells something once in the life of a run.
func (t *Watch) notice(text, next string) {
	t.mu.Lock()
	before := t.noticed[text]
	t.noticed[text] = true
	t.mu.Unlock()
	if !before {
		_ = t.owner.Publish(event.Noticed{Level: "warning", Text: text, Next: next})
	}
}

// rankEnds are the ends of the ranks, with times that can be compared: by the
// nodes' uptimes where all of them are known, else by their clocks. The caller
// holds the lock.
func (t *Watch) rankEnds() []rankEnd {
	var ends []rankEnd
	even := true
	for _, e := range t.ends {
		ends = append(ends, e)
		c := t.clocks[e.node]
		even = even && e.up > 0 && !c.seen.IsZero() && !t.nodes[e.node].rebooted
	}
	if !even {
		return ends
	}
	now := time.Now() // what is set of the clock here is the same for all
	for i, e := range ends {
		c := t.clocks[e.node]
		at := now.Add(c.seen.Sub(now) + e.up - c.up)
		ends[i].at, ends[i].part = at.Unix(), time.Duration(at.Nanosecond())
	}
	return ends
}
