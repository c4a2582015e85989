//go:build linux

package chaos

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
)

// tally counts what was played.
type tally struct{ played, right atomic.Int64 }

// cells plays moments on a pair of hosts, one after the other, and gives the
// hosts back.
func (p *pair) cells(t *testing.T, which []fault, count *tally) {
	for i, f := range which {
		ok := t.Run(fmt.Sprintf("%d %s", i, f.name), func(t *testing.T) {
			p.lab.t = t
			p.cell(t, f)
		})
		if count.played.Add(1); ok {
			count.right.Add(1)
		}
	}
	p.lab.t = t
	p.givesBack()
}

// cell is one run with one fault.
func (p *pair) cell(t *testing.T, f fault) {
	p.fresh()
	defer p.mend()
	c := &cell{pair: p, node: p.dice.IntN(2), dlwb: p.start("run", "--json")}
	if f.name == "dlwb killed" && p.dice.IntN(2) == 0 {
		c.early()
		return
	}
	c.runs("the start of the run")
	c.pause(1500 * time.Millisecond)
	want := f.play(c)
	c.holds(want)
}

// runs waits until each rank has printed something.
func (c *cell) runs(what string) {
	c.t.Helper()
	c.run = c.dlwb.await(soon, what, called("run_started"))["run"]
	for rank := range c.hosts {
		eventually(c.t, soon, func() error { return atLeast(c.storedLog(c.run, rank), 1) })
	}
}

// early kills dlwb before the run is known to run. Whatever there is of it then
// comes to an end, and the next run does its work.
func (c *cell) early() {
	c.t.Helper()
	c.pause(4 * time.Second)
	c.dlwb.kill()
	c.dlwb = c.start("attach", "--json")
	// attach ends by itself where nothing runs.
	eventually(c.t, soon, func() error {
		select {
		case <-c.dlwb.done:
			return nil
		default:
		}
		for node := range c.hosts {
			if !c.trains(node) {
				return fmt.Errorf("attach goes on, and on node%d no rank runs:\n%s", node, c.dlwb.said())
			}
		}
		return nil
	})
	c.tellEnd0()
	c.dlwb.end(soon)
	c.noneLeft("a dlwb that was killed early")
	c.fresh()
	c.dlwb = c.start("run", "--json")
	c.runs("the start of the next run")
	c.tellEnd()
	c.holds(ended)
}

// tellEnd0 is tellEnd where the code may not be there yet.
func (c *cell) tellEnd0() {
	for node := range c.hosts {
		_ = writeIfDir(c.code(node), "end")
	}
}

// holds waits for the end of a run and holds it against what it has to be.
func (c *cell) holds(want verdict) {
	c.t.Helper()
	e := c.await(soon, "the end of the run", called("run_ended"))
	code := c.dlwb.end(soon)
	cause := fmt.Sprint(e["cause"])
	if e["verdict"] != want.is || code != want.code || want.node >= 0 && e["node"] != float64(want.node) {
		c.t.Errorf("%v on node%v, exit code %d (%s); want %s on node%d, exit code %d\n%s", e["verdict"], e["node"], code, cause, want.is, want.node, want.code, c.dlwb.said())
	}
	for _, text := range want.says {
		if !strings.Contains(cause, text) {
			c.t.Errorf("the cause %q does not say %q", cause, text)
		}
	}
	if d, _ := e["duration_s"].(float64); d < 0 || d > 1000 {
		c.t.Errorf("it took %v s", d)
	}
	c.t.Logf("%s, exit code %d: %s", e["verdict"], code, cause)
	c.noneLeft("the end of the run")
	if want.whole {
		c.whole(c.run)
	}
}

// mend takes back what a cell has done to the hosts.
func (p *pair) mend() {
	for node := range p.hosts {
		p.do("thaw", node)
		p.resize(node, diskRoom)
		p.must(node, "rm -f /etc/smi-hangs")
	}
	if p.t.Failed() { // the next one begins anew
		p.tellEnd()
		_ = p.command("stop", "--json").Run()
	}
}

// givesBack holds that after down the hosts are as they were.
func (p *pair) givesBack() {
	p.t.Helper()
	r := p.run(2*time.Minute, "down", "--json")
	receipt := r.find(called("receipt"))
	if r.cmd.ProcessState.ExitCode() != 0 || receipt == nil || receipt["proven"] != true {
		p.t.Errorf("down:\n%s", r.said())
	}
	p.noneLeft("down")
	for node := range p.hosts {
		if left := p.must(node, "cd /home/"+testbed.User+" && find . -path './.dlwb*' -o -path './dlwb*'"); strings.TrimSpace(left) != "" {
			p.t.Errorf("down has left on node%d:\n%s", node, left)
		}
	}
}
