package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
)

// measureProgram is dlwb as a person runs it: the program from its start to its end,
// with the hosts provider, on a cluster that is up. It takes a project to 4 hosts on
// the LAN, to 4 at the addresses that they have behind the WAN's NAT, of which one
// passes the files on to the others, and to one there, which nobody passes anything
// on to; a large file to one host; and runs commands and trainings again.
func measureProgram(b *bench) error {
	return errors.Join(b.programAgain(), b.programRun(), b.programLines(), b.programTree(lan, 4), b.programFile(),
		b.programTree(wan, 4), b.programTree(wan, 1))
}

// programAgain is a command that comes after another one.
func (b *bench) programAgain() error {
	n := b.least(16)
	name := fmt.Sprintf("again-lan-%d", n)
	if !b.wants(name) {
		return nil
	}
	c, err := b.project("again", lan, n)
	if err != nil {
		return err
	}
	m := b.masters(lan, n)
	if err := errors.Join(m.open(), c.exec(command)); err != nil {
		return errors.Join(err, c.down())
	}
	b.race(name,
		racer{name: "dlwb", missing: c.missing, run: func() error { return c.exec(command) }},
		racer{name: "masters", missing: m.gone, least: 1, run: func() error { return m.run(command) }},
		racer{name: "ssh", missing: absent("ssh"), run: func() error { return b.sshAll(nil, lan.hosts(n), command) }})
	return errors.Join(m.close(), c.down())
}

// programRun is a run that does next to nothing, where all is there already.
func (b *bench) programRun() error {
	n := b.least(4)
	name := fmt.Sprintf("run-lan-%d", n)
	if !b.wants(name) {
		return nil
	}
	c, err := b.project("run", lan, n)
	if err == nil && c.missing == "" {
		_, err = b.shell(c.env, b.dlwb, "run", "--plain", filepath.Join(c.dir, "dlwb.yaml"))
	}
	if err != nil {
		return errors.Join(err, c.down())
	}
	var first []time.Duration
	took := b.race(name, racer{name: "dlwb", missing: c.missing, run: func() error {
		t, err := c.firstLine()
		first = append(first, t)
		return err
	}})
	if _, ok := took["dlwb"]; ok {
		b.atMost(name+".to-its-first-line", median(first).Seconds(), "s", 0.7)
	}
	return c.down()
}

// firstLine is how long `dlwb run` takes to show the first line of a rank; it goes on
// to the end of the run.
func (c *cluster) firstLine() (time.Duration, error) {
	began := time.Now()
	cmd := exec.CommandContext(c.b.ctx, c.b.dlwb, "run", "--plain", filepath.Join(c.dir, "dlwb.yaml"))
	cmd.Env = append(os.Environ(), c.env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	first := time.Duration(0)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if first == 0 && strings.HasPrefix(lines.Text(), "rank 0 | ") {
			first = time.Since(began)
		}
	}
	if err := cmd.Wait(); err != nil || first == 0 {
		return 0, fmt.Errorf("dlwb run showed no line of rank 0: %w", err)
	}
	return first, nil
}

// flood prints a million lines.
const flood = `import sys
for i in range(%d):
    sys.stdout.write("a line of output as programs print it while they load and compile what they need, number %%d\n" %% i)
`

// programLines is a training of one rank that prints a million lines, beside the same
// over ssh. dlwb has Python print line by line, so that a line is seen when it is
// printed; over ssh without a terminal it prints block by block. Both are told, and
// the one that prints as dlwb has it print is what it is measured by.
func (b *bench) programLines() error {
	count := 1_000_000
	if b.quick {
		count = 50_000
	}
	name := fmt.Sprintf("lines-lan-%d", count)
	if !b.wants(name) {
		return nil
	}
	c, err := b.project("lines", lan, 1)
	if err != nil {
		return err
	}
	script, err := b.file("program-lines/train.py", fmt.Sprintf(flood, count))
	if err == nil {
		err = c.one()
	}
	if err == nil {
		err = c.sync()
	}
	if err == nil {
		_, err = b.shell(nil, "scp", "-q", "-F", b.bed.SSHConfig(), script, lan.host(0)+":flood.py")
	}
	if err != nil {
		return errors.Join(err, c.down())
	}
	holds := func(out string, err error) error {
		if got := strings.Count(out, "while they load and compile"); err == nil && got != count {
			return fmt.Errorf("%d lines came of %d", got, count)
		}
		return err
	}
	b.race(name,
		racer{name: "dlwb", missing: c.missing, run: func() error {
			return holds(b.shell(c.env, b.dlwb, "run", "--plain", filepath.Join(c.dir, "dlwb.yaml")))
		}},
		racer{name: "ssh", missing: absent("ssh"), run: func() error {
			return holds(b.shell(nil, "ssh", "-F", b.bed.SSHConfig(), "-c", cipher, lan.host(0), "python3 flood.py"))
		}},
		racer{name: "ssh-unbuffered", missing: absent("ssh"), least: 1 / 1.3, run: func() error {
			return holds(b.shell(nil, "ssh", "-F", b.bed.SSHConfig(), "-c", cipher, lan.host(0), "PYTHONUNBUFFERED=1 python3 flood.py"))
		}})
	return c.down()
}

// one has the cluster run one rank a node, whatever GPUs a host shows.
func (c *cluster) one() error {
	path := filepath.Join(c.dir, "dlwb.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text = bytes.Replace(text, []byte("command: train.py"), []byte("command: train.py, procs_per_node: 1"), 1)
	err = os.WriteFile(path, text, 0o644)
	trusttest.TrustEnv(c.env, c.dir)
	return err
}

// forgotten is what a first sync does not find on a host.
const forgotten = "rm -rf dlwb/*/code rsynced large .dlwb/sync .dlwb/kept"

func (b *bench) programTree(net network, most int) error {
	n := b.least(most)
	if !b.wants(fmt.Sprintf("first-%s-%d", net.name, n)) && !b.wants(fmt.Sprintf("unchanged-%s-%d", net.name, n)) &&
		!b.wants(fmt.Sprintf("ten-changed-%s-%d", net.name, n)) {
		return nil
	}
	if err := b.use(net); err != nil {
		return err
	}
	c, err := b.project(fmt.Sprintf("tree-%s-%d", net.name, n), net, n)
	if err != nil {
		return err
	}
	if _, err := b.tree(c.dir); err != nil {
		return errors.Join(err, c.down())
	}
	b.syncRaces(c, net, n)
	return c.down()
}

// syncRaces tells how a sync of the project compares with rsync.
func (b *bench) syncRaces(c *cluster, net network, n int) {
	gone := absent("rsync")
	race := func(name string, least float64, ready func() error) {
		racers := []racer{{name: "dlwb", missing: c.missing, ready: ready, run: c.sync}}
		for _, options := range []string{"-a", "-az"} {
			racers = append(racers, racer{name: "rsync" + strings.TrimPrefix(options, "-a"), missing: gone, least: least, ready: ready,
				run: func() error { return b.rsync(options, c.dir, net.hosts(n)) }})
		}
		b.race(fmt.Sprintf("%s-%s-%d", name, net.name, n), racers...)
	}
	first := 1.0
	if net.wan && n > 1 { // one of them passes the files on
		first = 2
	}
	race("first", first, func() error { return errors.Join(c.forget(), b.onHosts(n, forgotten)) })
	for _, options := range []string{"-a", "-az"} { // all begin with what the nodes have
		if err := b.rsync(options, c.dir, net.hosts(n)); err != nil {
			gone = err.Error()
		}
	}
	if err := c.sync(); err != nil {
		c.missing = err.Error()
	}
	race("unchanged", 1/0.7, nil)
	race("ten-changed", 1/0.7, func() error { return edit(c.dir) })
}

func (b *bench) programFile() error {
	size := int64(500 << 20)
	if b.quick {
		size = 32 << 20
	}
	if !b.wants(fmt.Sprintf("file-lan-%dMB", size>>20)) {
		return nil
	}
	c, err := b.project("file", lan, 1)
	if err != nil {
		return err
	}
	path := filepath.Join(c.dir, "weights.bin")
	if err := noise(path, size); err != nil {
		return errors.Join(err, c.down())
	}
	ready := func() error { return errors.Join(c.forget(), b.onHosts(1, forgotten)) }
	b.race(fmt.Sprintf("file-lan-%dMB", size>>20),
		racer{name: "dlwb", missing: c.missing, ready: ready, run: c.sync},
		racer{name: "scp", missing: absent("scp"), least: 1 / 1.1, ready: ready, run: func() error {
			_, err := b.shell(nil, "scp", "-q", "-F", b.bed.SSHConfig(), "-c", cipher, path, lan.host(0)+":large")
			return err
		}})
	return errors.Join(c.down(), os.RemoveAll(c.dir))
}

// project is a cluster that is up, whose code is yet to come.
func (b *bench) project(name string, net network, n int) (*cluster, error) {
	return b.clusterIn("program-"+name, net, n)
}

// sync is `dlwb sync`, from its start to its end.
func (c *cluster) sync() error {
	_, err := c.b.shell(c.env, c.b.dlwb, "sync", "--plain", filepath.Join(c.dir, "dlwb.yaml"))
	return err
}

// forget removes the checksums that dlwb keeps here.
func (c *cluster) forget() error { return os.RemoveAll(filepath.Join(c.home(), "checksums")) }
