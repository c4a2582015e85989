package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// measureProgram takes a project to 4 hosts of one's own on the LAN, and a large
// file to one, by `dlwb sync` as a person runs it: the program from its start to
// its end, with the hosts provider, on a cluster that is up.
func measureProgram(b *bench) error {
	return firstError(b.programTree, b.programFile)
}

// forgotten is what a first sync does not find on a host.
const forgotten = "rm -rf dlwb/*/code rsynced large .dlwb/sync .dlwb/kept"

func (b *bench) programTree() error {
	n := b.least(4)
	c, err := b.project("tree", n)
	if err != nil {
		return err
	}
	if _, err := b.tree(c.dir); err != nil {
		return errors.Join(err, c.down())
	}
	b.syncRaces(c, n)
	return c.down()
}

// syncRaces tells how a sync of the project compares with rsync.
func (b *bench) syncRaces(c *cluster, n int) {
	gone := absent("rsync")
	race := func(name string, least float64, ready func() error) {
		racers := []racer{{name: "dlwb", missing: c.missing, ready: ready, run: c.sync}}
		for _, options := range []string{"-a", "-az"} {
			racers = append(racers, racer{name: "rsync" + strings.TrimPrefix(options, "-a"), missing: gone, least: least, ready: ready,
				run: func() error { return b.rsync(options, c.dir, lan.hosts(n)) }})
		}
		b.race(fmt.Sprintf("%s-lan-%d", name, n), racers...)
	}
	race("first", 1, func() error { return errors.Join(c.forget(), b.onHosts(n, forgotten)) })
	for _, options := range []string{"-a", "-az"} { // all begin with what the nodes have
		if err := b.rsync(options, c.dir, lan.hosts(n)); err != nil {
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
	c, err := b.project("file", 1)
	if err != nil {
		return err
	}
	size := int64(500 << 20)
	if b.quick {
		size = 32 << 20
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
func (b *bench) project(name string, n int) (*cluster, error) {
	return b.clusterIn("program-"+name, lan, n)
}

// sync is `dlwb sync`, from its start to its end.
func (c *cluster) sync() error {
	_, err := c.b.shell(c.env, c.b.dlwb, "sync", "--plain", filepath.Join(c.dir, "dlwb.yaml"))
	return err
}

// forget removes the checksums that dlwb keeps here.
func (c *cluster) forget() error { return os.RemoveAll(filepath.Join(c.home(), "checksums")) }
