package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/remote"
)

// command is what is run on every node.
const command = "hostname"

// measureExec takes one command on N nodes, once with nothing there, once over
// connections that are open. `dlwb` is the real program, from its start to its
// end; `remote` is dlwb's package in this process, as a screen that is open
// uses it.
func measureExec(b *bench) error {
	for _, net := range networks {
		if err := b.use(net); err != nil {
			return err
		}
		for _, n := range b.counts {
			cluster, err := b.cluster(net, n)
			if err != nil {
				return err
			}
			err = errors.Join(b.execCold(net, n, cluster), b.execOpen(net, n), cluster.down())
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// target is the least ratio that is asked for: on 64 nodes; elsewhere the
// ratios are told for the record.
func (b *bench) target(n int, least float64) float64 {
	if n == usualCounts[len(usualCounts)-1] {
		return least
	}
	return 0
}

func (b *bench) execCold(net network, n int, cluster *cluster) error {
	a, err := b.ansible(net, n)
	if err != nil {
		return err
	}
	slow := max(1, b.rounds/2)
	name := fmt.Sprintf("cold-%s-%d", net.name, n)
	peers := []racer{
		{name: "pdsh", missing: absent("pdsh"), least: b.target(n, 3), run: func() error { return b.pdsh(net, n, command) }},
		{name: "fabric", missing: fabricAbsent(b), least: b.target(n, 1.3), run: func() error { return b.fabric(net, n, command) }},
		{name: "ansible", missing: a.gone, least: b.target(n, 7), rounds: slow, ready: a.cold, run: func() error { return a.all("command", command) }},
		{name: "ansible-raw", missing: a.gone, rounds: slow, ready: a.cold, run: func() error { return a.all("raw", command) }},
		{name: "ssh", missing: absent("ssh"), run: func() error { return b.sshAll(nil, net.hosts(n), command) }},
		{name: "remote", run: func() error {
			nodes, err := b.nodes(net, n)
			if err != nil {
				return err
			}
			defer closeAll(nodes)
			return hostnames(b, nodes)
		}},
	}
	dlwb := racer{name: "dlwb", missing: cluster.missing, ready: cluster.cold, run: func() error { return cluster.exec(command) }}
	b.race(name, append([]racer{dlwb}, peers...)...)
	return a.cold()
}

// hostnames runs the command on nodes and checks the answers.
func hostnames(b *bench, nodes []*remote.Node) error {
	return each(nodes, func(_ int, n *remote.Node) error {
		res, err := n.Exec(b.ctx, remote.Cmd{Line: command})
		if err == nil && strings.TrimSpace(string(res.Stdout)) != n.Name() {
			err = fmt.Errorf("%s says it is %q", n.Name(), res.Stdout)
		}
		return err
	})
}

func (b *bench) execOpen(net network, n int) error {
	name := fmt.Sprintf("open-%s-%d", net.name, n)
	if !b.wants(name) {
		return nil
	}
	nodes, err := b.nodes(net, n)
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	m := b.masters(net, n)
	if err := errors.Join(hostnames(b, nodes), hostnames(b, nodes), m.open()); err != nil {
		return err
	}
	defer func() { _ = m.close() }()
	rest := func() error { time.Sleep(openRest); return nil }
	local := fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s >/dev/null & i=$((i+1)); done; wait", n, command)
	rounds := b.rounds
	b.rounds *= 3 // they are short
	took := b.race(name,
		racer{name: "remote", ready: rest, run: func() error { return hostnames(b, nodes) }},
		racer{name: "masters", missing: m.gone, least: b.target(n, 5), ready: rest, run: func() error { return m.run(command) }},
		// What the command itself takes: as many of it on this machine, no ssh.
		racer{name: "no-ssh", run: func() error { _, err := b.shell(nil, "sh", "-c", local); return err }},
		// The second of two in a row: nothing can have been got ready for it.
		racer{name: "remote-at-once", just: func() error { return hostnames(b, nodes) }, run: func() error { return hostnames(b, nodes) }},
	)
	b.rounds = rounds
	if t, ok := took["remote"]; ok {
		b.atMost(name+".remote-beyond-2-rtt", (t-2*net.rtt).Seconds()*1000, "ms", 20)
	}
	return nil
}

// openRest is how long the nodes rest before a command over open connections,
// as they do between two commands of a person.
const openRest = 600 * time.Millisecond

// cluster is what the real dlwb knows of the hosts.
type cluster struct {
	b       *bench
	n       int
	dir     string // of the project
	env     []string
	missing string
}

// home is where its dlwb keeps what it knows.
func (c *cluster) home() string { return c.dir + "-home" }

const clusterProfile = `name: bench
provider: hosts
machines: {hosts: [%s]}
run: {engine: plain, command: train.py}
`

// cluster brings the hosts up as a cluster of the real dlwb, so that its exec
// can be measured.
func (b *bench) cluster(net network, n int) (*cluster, error) {
	if !b.wants(fmt.Sprintf("cold-%s-%d", net.name, n)) {
		return &cluster{b: b, n: n, missing: "not asked for"}, nil
	}
	return b.clusterIn(fmt.Sprintf("cluster-%s-%d", net.name, n), net, n)
}

// clusterIn is a cluster with a project in a directory of the bench.
func (b *bench) clusterIn(dir string, net network, n int) (*cluster, error) {
	c := &cluster{b: b, n: n, dir: filepath.Join(b.dir, dir)}
	path, err := b.file(dir+"/dlwb.yaml", fmt.Sprintf(clusterProfile, strings.Join(net.hosts(n), ", ")))
	if err != nil {
		return nil, err
	}
	if _, err := b.file(dir+"/train.py", "print(1)\n"); err != nil {
		return nil, err
	}
	c.env = []string{"DLWB_HOME=" + c.home(), "DLWB_SSH_CONFIG=" + b.bed.SSHConfig(), "NO_COLOR=1"}
	trusttest.TrustEnv(c.env, filepath.Dir(path))
	if _, err := b.shell(c.env, b.dlwb, "up", "--plain", path); err != nil {
		c.missing = "dlwb up: " + err.Error()
	}
	return c, nil
}

// exec is `dlwb exec`, from its start to its end.
func (c *cluster) exec(line string) error {
	out, err := c.b.shell(c.env, c.b.dlwb, "exec", "bench", "--", line)
	if got := strings.Count(out, " | "); err == nil && got != c.n {
		return fmt.Errorf("dlwb answered for %d of %d nodes: %.300s", got, c.n, out)
	}
	return err
}

// cold ends what dlwb keeps between commands.
func (c *cluster) cold() error {
	_, err := c.b.shell(c.env, c.b.dlwb, "keeper", "stop")
	return err
}

func (c *cluster) down() error {
	if c.env == nil {
		return nil
	}
	_, err := c.b.shell(c.env, c.b.dlwb, "down", "bench")
	return err
}
