//go:build linux

package chaos

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
	told "github.com/dlwb/dlwb/workbench/event"
)

// cell is one thing that goes wrong at one moment of one run.
type cell struct {
	*pair
	node int // to which it happens
	run  any // its id
	dlwb *dlwb
}

// called is the node to which it happens, as its user calls it.
func (c *cell) called() string { return told.NodeText(c.node, testbed.Name(c.hosts[c.node])) }

// fault is one kind of what goes wrong.
type fault struct {
	name string
	// play does it and brings the run to its end; it gives how dlwb must say
	// that the run ended.
	play func(c *cell) verdict
}

// verdict is how a run has to end.
type verdict struct {
	is    string
	code  int
	node  int      // at fault; -1: none
	says  []string // in the cause
	whole bool     // nobody was stopped in the middle of a line
}

// ended is the end of a run to which nothing happened that counts.
var ended = verdict{is: "succeeded", node: -1, whole: true}

var faults = []fault{
	{"dlwb killed", (*cell).dlwbKilled},
	{"node killed", (*cell).nodeKilled},
	{"node frozen", (*cell).nodeFrozen},
	{"sshd restarted", (*cell).sshdRestarted},
	{"disk full", (*cell).diskFull},
	{"nvidia-smi hung", (*cell).smiHung},
	{"rank killed", (*cell).rankKilled},
	{"stopped", (*cell).stopped},
}

// Limits of what is waited for. They are generous: how fast it is, is no
// question of these tests.
const (
	soon = 90 * time.Second
	// unknownAfter is when a node that does not answer is to be told unknown.
	unknownAfter = 45 * time.Second
)

// again lets another dlwb take over, after the first one was killed.
func (c *cell) again() {
	c.dlwb.kill()
	c.dlwb = c.start("attach", "--json")
}

// perhapsAlone kills dlwb in one of three cells: the one that comes later must
// find the same.
func (c *cell) perhapsAlone() {
	if c.dice.IntN(3) == 0 {
		c.again()
	}
}

// ours fits what is told of this run: one who attaches is told of earlier ones
// of the cluster too.
func (c *cell) ours(fits func(event) bool) func(event) bool {
	return func(e event) bool { return e["run"] == c.run && fits(e) }
}

// await waits for news of this run.
func (c *cell) await(limit time.Duration, what string, fits func(event) bool) event {
	c.t.Helper()
	return c.dlwb.await(limit, what, c.ours(fits))
}

func (c *cell) dlwbKilled() verdict {
	c.again()
	c.pause(time.Second)
	c.tellEnd()
	return ended
}

// nodeKilled: a host that does not answer is no proof. Only when it is back,
// and the run is not, has the run ended; then the other rank is stopped.
func (c *cell) nodeKilled() verdict {
	c.do("kill", c.node)
	c.perhapsAlone()
	if c.dice.IntN(2) == 0 { // else it is back before anybody has noticed
		c.await(unknownAfter, "that nothing is known of the node", nodeIs(c.node, "unknown"))
		c.pause(3 * time.Second)
		c.undestroyed(1 - c.node)
	}
	c.reboot(c.node)
	return verdict{is: "rebooted", code: 1, node: c.node, says: []string{c.called() + " was rebooted"}}
}

// undestroyed holds that a rank goes on, and that no end was told.
func (c *cell) undestroyed(nodes ...int) {
	c.t.Helper()
	for _, node := range nodes {
		if !c.trains(node) {
			c.t.Errorf("the rank on node%d does not go on:\n%s", node, c.dlwb.said())
		}
	}
	if e := c.dlwb.find(c.ours(called("run_ended"))); e != nil {
		c.t.Errorf("an end was told that was not proven: %v", e)
	}
}

func (c *cell) nodeFrozen() verdict {
	c.do("freeze", c.node)
	c.perhapsAlone()
	c.await(unknownAfter, "that nothing is known of the node", nodeIs(c.node, "unknown"))
	c.pause(5 * time.Second)
	c.undestroyed(1 - c.node)
	c.do("thaw", c.node)
	c.await(soon, "that the node is back", c.back())
	c.undestroyed(0, 1)
	c.tellEnd()
	return ended
}

// back fits the news that the node is alive after it was unknown.
func (c *cell) back() func(event) bool {
	gone := false
	return func(e event) bool {
		gone = gone || nodeIs(c.node, "unknown")(e)
		return gone && nodeIs(c.node, "alive")(e)
	}
}

func (c *cell) sshdRestarted() verdict {
	c.do("rst", c.node)
	c.perhapsAlone()
	c.pause(4 * time.Second)
	c.serve(c.node)
	c.pause(2 * time.Second)
	c.undestroyed(0, 1)
	c.tellEnd()
	return ended
}

// diskFull: printing goes on, but a rank that can't write its checkpoint fails.
func (c *cell) diskFull() verdict {
	c.fill(c.node)
	c.perhapsAlone()
	return verdict{is: "disk-full", code: 1, node: c.node, says: []string{"the disk of " + c.called() + " is full"}}
}

func (c *cell) smiHung() verdict {
	c.hangSMI(c.node)
	c.perhapsAlone()
	c.pause(3 * time.Second)
	c.undestroyed(0, 1)
	switch c.dice.IntN(3) {
	case 0:
		return c.stopped()
	case 1:
		return c.rankKilled()
	}
	c.tellEnd()
	return ended
}

// rankKilled: the other rank has to be stopped, as it would wait for ever.
func (c *cell) rankKilled() verdict {
	pid := c.rankPID(c.node)
	if pid == 0 {
		c.t.Fatalf("there is no rank on node%d:\n%s", c.node, strings.Join(c.processes(c.node), "\n"))
	}
	c.must(c.node, fmt.Sprintf("kill -KILL %d", pid))
	c.perhapsAlone()
	return verdict{is: "killed", code: 137, node: c.node, says: []string{fmt.Sprintf("rank %d on %s was killed by SIGKILL", c.node, c.called())}}
}

func (c *cell) stopped() verdict {
	if r := c.lab.run(soon, "stop", "--json"); r.cmd.ProcessState.ExitCode() != 0 {
		c.t.Errorf("stop:\n%s", r.said())
	}
	return verdict{is: "stopped", code: 130, node: -1, says: []string{"stopped by request"}}
}

// pause waits for a time drawn by chance: the moment is the point of it.
func (c *cell) pause(most time.Duration) {
	time.Sleep(time.Duration(c.dice.Int64N(int64(most))))
}
