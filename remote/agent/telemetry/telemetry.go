//go:build linux

// Package telemetry tells what a node is doing: frames of text, one fact a
// line, as package metrics reads them. It reads /proc and forks nothing; what
// may hang (nvidia-smi, the size of a dead network disk) is asked beside the
// frames, which come on time whatever becomes of it.
package telemetry

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"time"
)

const (
	// Least and Most are how often a frame may be asked for.
	Least = time.Second
	Most  = 10 * time.Second
)

// Watch makes a frame at once, then one in every so much time, or in as much as
// pace has asked for last; a new pace is a frame at once, too. An empty iface
// means all interfaces. It returns when ctx ends or frame fails, and leaves no
// process. frame must not keep its argument.
func Watch(ctx context.Context, iface string, every time.Duration, pace <-chan time.Duration, frame func([]byte) error) error {
	n := &node{iface: iface, simulated: os.Getenv("DLWB_SIMULATED_GPUS") != "", cores: countCores(), every: inBounds(every)}
	n.home, _ = os.UserHomeDir()
	ctx, stop := context.WithCancel(ctx)
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		n.gpus = newMonitor(path, n.every)
		defer waitAWhile(n.gpus.start(ctx))
	}
	defer stop()
	go n.disk.watch(ctx, n.home)
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
	return min(max(every.Round(time.Second), Least), Most)
}

func (n *node) setPace(every time.Duration) {
	if n.gpus != nil && every != n.every {
		n.gpus.setPace(every)
	}
	n.every = every
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
	iface, home string
	simulated   bool
	cores       int
	every       time.Duration
	gpus        *monitor // nil: there is no nvidia-smi
	disk        disk
	buf         bytes.Buffer
}

func (n *node) line(format string, args ...any) {
	fmt.Fprintf(&n.buf, format+"\n", args...)
}

// frame is valid until the next one. What this system can't tell is left out.
func (n *node) frame() []byte {
	n.buf.Reset()
	n.line("frame %.2f", uptime())
	if n.every != Least {
		n.line("every %d", n.every/time.Second)
	}
	if busy, total, ok := processor(); ok {
		n.line("cores %d", n.cores)
		n.line("cpu %d %d", busy, total)
	}
	if used, total, ok := memory(); ok {
		n.line("mem %d %d", used, total)
	}
	if rx, tx, ok := network(n.iface); ok {
		n.line("net %d %d", rx, tx)
	}
	if used, total, ok := n.disk.last(); ok {
		n.line("disk %d %d", used, total)
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

// uptime is the time since the boot in seconds: it runs on evenly while the
// time of day is being set.
func uptime() float64 {
	text, _ := os.ReadFile("/proc/uptime")
	first, _, _ := bytes.Cut(text, []byte{' '})
	if seconds, err := strconv.ParseFloat(string(first), 64); err == nil {
		return seconds
	}
	return math.Floor(float64(time.Now().UnixMilli())/10) / 100
}

// processor is the time that all processors were busy, and all of their time,
// since the boot.
func processor() (busy, total uint64, ok bool) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := bytes.Cut(text, []byte{'\n'})
	words := bytes.Fields(line)
	if len(words) < 8 {
		return 0, 0, false
	}
	for i, word := range words[1:min(len(words), 9)] { // user nice system idle iowait irq softirq steal
		k := count(word)
		if total += k; i != 3 && i != 4 {
			busy += k
		}
	}
	return busy, total, true
}

func countCores() int {
	text, _ := os.ReadFile("/proc/stat")
	cores := 0
	for line := range bytes.Lines(text) {
		if rest, is := bytes.CutPrefix(line, []byte("cpu")); is && rest[0] >= '0' && rest[0] <= '9' {
			cores++
		}
	}
	return cores
}

// memory is in KiB.
func memory() (used, total uint64, ok bool) {
	text, _ := os.ReadFile("/proc/meminfo")
	var free, available uint64
	told := false
	for line := range bytes.Lines(text) {
		key, rest, _ := bytes.Cut(line, []byte{':'})
		words := bytes.Fields(rest)
		if len(words) == 0 {
			continue
		}
		switch string(key) {
		case "MemTotal":
			total, ok = count(words[0]), true
		case "MemFree":
			free = count(words[0])
		case "MemAvailable":
			available, told = count(words[0]), true
		}
	}
	if !told {
		available = free
	}
	return total - min(available, total), total, ok
}

// network is what an interface has received and sent, in bytes; of none in
// particular it is all but the loopback's.
func network(iface string) (rx, tx uint64, ok bool) {
	text, _ := os.ReadFile("/proc/net/dev")
	for line := range bytes.Lines(text) {
		name, rest, is := bytes.Cut(line, []byte{':'})
		words := bytes.Fields(rest)
		trimmed := string(bytes.TrimSpace(name))
		if !is || len(words) < 9 || iface != "" && trimmed != iface || iface == "" && trimmed == "lo" {
			continue
		}
		rx, tx, ok = rx+count(words[0]), tx+count(words[8]), true
	}
	return rx, tx, ok
}

func count(word []byte) uint64 {
	n, _ := strconv.ParseUint(string(word), 10, 64)
	return n
}
