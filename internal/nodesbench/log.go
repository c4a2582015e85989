package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// logLine is what a training prints, 100 bytes with its number.
const logLine = "epoch 12/90 step %07d loss 2.3025 lr 0.000125 grad_norm 1.0432 tokens/s 181232 mem 61.2G eta 3:12:09"

// errEnough ends a Follow.
var errEnough = errors.New("enough")

// measureLog takes how fast a long log comes home, and how late one line of it
// is when it is written.
func measureLog(b *bench) error {
	lines := 1_000_000
	if b.quick {
		lines = 50_000
	}
	if err := b.logRate(lines); err != nil {
		return err
	}
	for _, net := range networks {
		if err := b.use(net); err != nil {
			return err
		}
		if err := b.logDelay(net); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) logRate(lines int) error {
	name := fmt.Sprintf("rate-lan-%d-lines", lines)
	if !b.wants(name) {
		return nil
	}
	if err := b.onHosts(1, fmt.Sprintf("awk 'BEGIN { for (i = 0; i < %d; i++) printf \"%s\\n\", i }' >bench.log && chmod 644 bench.log", lines, logLine)); err != nil {
		return err
	}
	size := int64(lines) * int64(len(fmt.Sprintf(logLine, 0))+1)
	nodes, err := b.nodes(lan, 1)
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	m := b.masters(lan, 1)
	if err := errors.Join(nodes[0].Connect(b.ctx), m.open()); err != nil {
		return err
	}
	defer func() { _ = m.close() }()
	took := b.race(name,
		racer{name: "remote-follow", run: func() error { return follow(b.ctx, nodes[0], size) }},
		racer{name: "ssh-cat", least: 0.9, run: func() error {
			_, err := b.shell(nil, "sh", "-c", `ssh -F "$1" -c `+cipher+` -o ControlPath="$2/%n" "$3" cat bench.log >/dev/null`,
				"sh", b.bed.SSHConfig(), m.dir, lan.host(0))
			return err
		}},
		racer{name: "ssh-cat-cold", run: func() error {
			_, err := b.shell(nil, "sh", "-c", `ssh -F "$1" -c `+cipher+` "$2" cat bench.log >/dev/null`, "sh", b.bed.SSHConfig(), lan.host(0))
			return err
		}})
	for by, t := range took {
		b.told(name+".rate."+by, float64(size)/1e6/t.Seconds(), "MB/s")
	}
	return b.onHosts(1, "rm -f bench.log")
}

// follow reads a log until it has so many bytes.
func follow(ctx context.Context, n *remote.Node, size int64) error {
	err := n.Follow(ctx, "bench.log", 0, func(off int64, p []byte) error {
		if off+int64(len(p)) >= size {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return errors.Join(errors.New("the log ended early"), err)
}

// logDelay takes how long a line is under way from its write to the sink. The
// hosts have this machine's clock.
func (b *bench) logDelay(net network) error {
	name := "delay-" + net.name
	if !b.wants(name) {
		return nil
	}
	nodes, err := b.nodes(net, 1)
	if err != nil {
		return err
	}
	defer closeAll(nodes)
	want := 60
	if b.quick {
		want = 15
	}
	if err := nodes[0].Connect(b.ctx); err != nil {
		return err
	}
	// A process of its own, as a rank is.
	write := fmt.Sprintf("rm -f delay.log; : >delay.log; chmod 644 delay.log; i=0; while [ $i -lt %d ]; do date +%%s%%N >>delay.log; i=$((i+1)); sleep 0.2; done", want)
	started := make(chan error, 1)
	go func() { started <- b.onHosts(1, write) }()
	time.Sleep(settle)
	var late []float64
	lines := 0
	err = nodes[0].Follow(b.ctx, "delay.log", 0, func(off int64, p []byte) error {
		now := time.Now().UnixNano()
		lines += bytes.Count(p, []byte("\n"))
		if off == 0 {
			return nil // from before the follow
		}
		for line := range strings.SplitSeq(string(bytes.TrimSpace(p)), "\n") {
			if at, err := strconv.ParseInt(line, 10, 64); err == nil {
				late = append(late, float64(now-at)/1e6)
			}
		}
		if lines >= want {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		return errors.Join(fmt.Errorf("%d lines came", len(late)), err)
	}
	if err := <-started; err != nil {
		return err
	}
	slices.Sort(late)
	b.told(name+".median", median(late), "ms")
	b.atMost(name+".95th", late[len(late)*95/100], "ms", 100+float64(net.rtt.Milliseconds()))
	return nil
}
