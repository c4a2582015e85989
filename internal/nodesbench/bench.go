package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/testbed"
	"github.com/dlwb/dlwb/remote"
)

// The line of the WAN figures: 40 ms there and back, 100 Mbit/s for all.
const (
	wanDelay = 20 * time.Millisecond
	wanRate  = "100mbit"
	wanRTT   = 2 * wanDelay
)

// bench is one run of the program.
type bench struct {
	options
	ctx     context.Context
	bed     *testbed.Bed
	dir     string // of its own, gone in the end
	group   string
	figures []figure
	wanUp   bool
	dlwb    string // the real program
}

// open makes the hosts and builds dlwb.
func open(ctx context.Context, o options) (*bench, error) {
	b := &bench{options: o, ctx: ctx}
	var err error
	if b.dir, err = os.MkdirTemp("", "dlwb-bench-"); err != nil {
		return nil, err
	}
	b.dlwb = filepath.Join(b.dir, "dlwb")
	if _, err := b.shell(nil, "go", "build", "-trimpath", "-o", b.dlwb, "github.com/dlwb/dlwb"); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	fmt.Fprintln(os.Stderr, "nodesbench: making hosts; another testbed of this machine goes first")
	if b.bed, err = testbed.Up(slices.Max(o.counts), testbed.Options{GPUs: 8, Size: "12g"}); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	return b, nil
}

func (b *bench) close() {
	if err := errors.Join(b.bed.Down(), os.RemoveAll(b.dir)); err != nil {
		fmt.Fprintln(os.Stderr, "nodesbench:", err)
	}
}

// wantsGroup reports whether any figure of a group is asked for.
func (b *bench) wantsGroup(group string) bool { return b.only[0].MatchString(group) }

func (b *bench) wants(name string) bool { return b.only[1].MatchString(name) }

// least is the number of nodes that a figure for n of them is taken on.
func (b *bench) least(n int) int { return min(n, b.bed.N) }

// network is the LAN or the WAN.
type network struct {
	name string
	rtt  time.Duration // the LAN's is far below what can be told
	wan  bool
}

var networks = []network{{name: "lan"}, {name: "wan", rtt: wanRTT, wan: true}}

var lan, wan = networks[0], networks[1]

// use makes the network be there.
func (b *bench) use(net network) error {
	if !net.wan || b.wanUp {
		return nil
	}
	b.wanUp = true
	return b.bed.WAN(wanDelay, wanRate)
}

// host is how ssh_config calls a host.
func (net network) host(i int) string {
	if net.wan {
		return testbed.Name(i) + "-wan"
	}
	return testbed.Name(i)
}

func (net network) hosts(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = net.host(i)
	}
	return names
}

func (net network) addr(i int) string {
	if net.wan {
		return testbed.WANAddr(i)
	}
	return testbed.Addr(i)
}

// nodes are hosts 0 to n-1 as dlwb sees them. No connection is made yet.
func (b *bench) nodes(net network, n int) ([]*remote.Node, error) {
	nodes := make([]*remote.Node, n)
	for i := range nodes {
		key, err := b.bed.HostKey(i)
		if err != nil {
			return nil, err
		}
		nodes[i] = remote.Open(remote.Target{
			Name: testbed.Name(i), Addr: net.addr(i), User: testbed.User, HostKey: key, KeyFile: b.bed.KeyFile(),
		})
	}
	return nodes, nil
}

// each does something on all nodes at once.
func each(nodes []*remote.Node, do func(i int, n *remote.Node) error) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() { errs[i] = do(i, n) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func closeAll(nodes []*remote.Node) {
	_ = each(nodes, func(_ int, n *remote.Node) error { return n.Close() })
}

// onHosts runs a shell line as the hosts' user on hosts 0 to n-1, without ssh.
func (b *bench) onHosts(n int, line string) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { _, errs[i] = b.bed.Run(i, "cd ~"+testbed.User+" && "+line) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// shell runs a program with further environment and gives what it printed; an
// error holds the end of that.
func (b *bench) shell(env []string, program string, args ...string) (string, error) {
	c := exec.CommandContext(b.ctx, program, args...)
	c.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Run(); err != nil {
		text := strings.TrimSpace(out.String())
		return out.String(), fmt.Errorf("%s: %w: %s", filepath.Base(program), err, text[max(0, len(text)-400):])
	}
	return out.String(), nil
}

// file writes a file into the bench's directory and gives its path.
func (b *bench) file(name, text string) (string, error) {
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// absent says that a program is not here; empty: it is.
func absent(program string) string {
	if _, err := exec.LookPath(program); err != nil {
		return program + " is not installed"
	}
	return ""
}
