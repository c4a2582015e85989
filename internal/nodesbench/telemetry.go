package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
)

// telemetryChild is the first argument of the process that is measured: this
// program once more, so that nothing else of it counts.
const telemetryChild = "telemetry-child"

// watched is what the child tells.
type watched struct {
	CPU     float64 `json:"cpu"` // % of one core
	RSS     float64 `json:"rss"` // MB, the most there was
	Samples int64   `json:"samples"`
	Seconds float64 `json:"seconds"`
}

// measureTelemetry takes what a client uses that stores the telemetry of all
// nodes, as an open workbench does: each frame is read, parsed and written to
// the database.
func measureTelemetry(b *bench) error {
	n := b.least(64)
	name := fmt.Sprintf("lan-%d", n)
	if !b.wants(name) {
		return nil
	}
	nodes, err := b.nodes(lan, n)
	if err != nil {
		return err
	}
	err = each(nodes, func(_ int, n *remote.Node) error { return n.Install(b.ctx) })
	targets := make([]remote.Target, n)
	for i, node := range nodes {
		targets[i] = node.Target()
	}
	closeAll(nodes)
	text, jsonErr := json.Marshal(targets)
	path, fileErr := b.file("targets.json", string(text))
	self, exeErr := os.Executable()
	if err := errors.Join(err, jsonErr, fileErr, exeErr); err != nil {
		return err
	}
	seconds := 30
	if b.quick {
		seconds = 8
	}
	out, err := b.shell(nil, self, telemetryChild, path, fmt.Sprint(seconds))
	var w watched
	if err == nil {
		err = json.Unmarshal([]byte(out), &w)
	}
	if err != nil {
		return err
	}
	b.told(name+".samples", float64(w.Samples)/w.Seconds/float64(n), "Hz/node")
	b.atMost(name+".cpu", w.CPU, "%", 5)
	b.atMost(name+".rss", w.RSS, "MB", 100)
	return nil
}

// watchTelemetry is the child: it watches for so many seconds after all nodes
// have said something.
func watchTelemetry(path, text string) error {
	seconds, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	list, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var targets []remote.Target
	if err := json.Unmarshal(list, &targets); err != nil {
		return err
	}
	db, err := store.Open(filepath.Join(filepath.Dir(path), "telemetry.db"))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	life, err := db.PutCluster(store.Cluster{Name: "bench"})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var samples, speaking atomic.Int64
	failed := make(chan error, len(targets))
	for i, t := range targets {
		go func() {
			failed <- storeFrames(ctx, db, life, i, remote.Open(t), &samples, &speaking)
		}()
	}
	for speaking.Load() < int64(len(targets)) {
		select {
		case err := <-failed:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	time.Sleep(3 * time.Second)
	before, counted, began := cpuSeconds(), samples.Load(), time.Now()
	time.Sleep(time.Duration(seconds) * time.Second)
	took := time.Since(began).Seconds()
	w := watched{CPU: (cpuSeconds() - before) / took * 100, RSS: peakMB(), Samples: samples.Load() - counted, Seconds: took}
	return json.NewEncoder(os.Stdout).Encode(w)
}

// storeFrames does what the workbench does with a node's telemetry.
func storeFrames(ctx context.Context, db *store.Store, life int64, i int, n *remote.Node, samples, speaking *atomic.Int64) error {
	parser, first := metrics.NewTelemetry(), true
	return n.Telemetry(ctx, "", remote.NewPace(), func(frame []byte) {
		sample, ok := parser.Frame(frame)
		if !ok {
			return
		}
		body, err := json.Marshal(sample)
		if err != nil {
			return
		}
		if db.AddSamples([]store.Sample{{Cluster: "bench", Life: life, Node: i, Time: time.Now(), Body: body}}) == nil {
			samples.Add(1)
		}
		if first {
			first = false
			speaking.Add(1)
		}
	})
}

// cpuSeconds is what this process has used of the processors, on Linux.
func cpuSeconds() float64 {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(f[11], 64)
	system, _ := strconv.ParseFloat(f[12], 64)
	return (user + system) / 100 // USER_HZ
}

// peakMB is the most memory that this process had, on Linux.
func peakMB() float64 {
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}
