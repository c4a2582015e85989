//go:build linux

// Package telemetry tells what a node is, and what it is doing: frames of text,
// one fact a line, as package metrics reads them. It reads /proc and forks
// nothing; what may hang (nvidia-smi, the size of a dead network disk) is asked
// beside the frames, which come on time whatever becomes of it.
package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	paceLeast = time.Second
	paceMost  = 10 * time.Second
	diskEvery = 10 * time.Second
)

// Watch makes a frame at once, then one in every so much time, or in as much as
// pace has asked for last; a new pace is a frame at once, too. An empty iface
// means all interfaces. It returns when ctx ends or frame fails, and leaves no
// process. frame must not keep its argument.
func Watch(ctx context.Context, iface string, every time.Duration, pace <-chan time.Duration, frame func([]byte) error) error {
	n := &node{iface: iface, simulated: os.Getenv("DLWB_SIMULATED_GPUS") != "", every: inBounds(every)}
	ctx, stop := context.WithCancel(ctx)
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		n.gpus = newMonitor(path, n.every)
		defer waitAWhile(n.gpus.start(ctx))
	}
	defer stop()
	go n.watchDisk(ctx)
	tick := time.NewTicker(n.every)
	defer tick.Stop()
	for {
		if err := frame(n.frame()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case every := <-pace:
			n.setPace(inBounds(every))
			tick.Reset(n.every)
		case <-ctx.Done():
			return nil
		}
	}
}

func inBounds(every time.Duration) time.Duration {
	return min(max(every.Round(time.Second), paceLeast), paceMost)
}

// waitAWhile waits for what was killed. A process that a driver holds in the
// kernel ends when that lets it.
func waitAWhile(ended <-chan struct{}) {
	select {
	case <-ended:
	case <-time.After(2 * time.Second):
	}
}

// node makes the frames of one stream.
type node struct {
	iface     string
	simulated bool
	every     time.Duration
	gpus      *monitor                 // nil: there is no nvidia-smi
	disk      atomic.Pointer[[2]int64] // used and all of it, in KiB, as was told last
	buf       bytes.Buffer
}

func (n *node) setPace(every time.Duration) {
	if n.gpus != nil && every != n.every {
		n.gpus.setPace(every)
	}
	n.every = every
}

// watchDisk asks for the size of the home's disk until ctx ends, or for ever
// where that disk hangs.
func (n *node) watchDisk(ctx context.Context) {
	home, _ := os.UserHomeDir()
	for {
		var s unix.Statfs_t
		if unix.Statfs(home, &s) == nil {
			n.disk.Store(&[2]int64{int64(s.Blocks-s.Bfree) * s.Frsize >> 10, int64(s.Blocks) * s.Frsize >> 10})
		}
		select {
		case <-time.After(diskEvery):
		case <-ctx.Done():
			return
		}
	}
}

func (n *node) line(format string, args ...any) {
	fmt.Fprintf(&n.buf, format+"\n", args...)
}

// frame is valid until the next one. What this system can't tell is left out.
func (n *node) frame() []byte {
	n.buf.Reset()
	n.line("frame %.2f", uptime())
	if n.every != paceLeast {
		n.line("every %d", n.every/time.Second)
	}
	if cores, busy, total := processors(); cores > 0 {
		n.line("cores %d", cores)
		n.line("cpu %d %d", busy, total)
	}
	if used, total := memory(); total > 0 {
		n.line("mem %d %d", used, total)
	}
	if rx, tx, ok := network(n.iface); ok {
		n.line("net %d %d", rx, tx)
	}
	if disk := n.disk.Load(); disk != nil {
		n.line("disk %d %d", disk[0], disk[1])
	}
	if n.gpus == nil {
		n.line("smierr no GPU")
	} else {
		n.gpus.tell(n.line, time.Now())
	}
	if n.simulated {
		n.line("sim")
	}
	n.line("end")
	return n.buf.Bytes()
}
