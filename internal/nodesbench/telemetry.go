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
	"sync"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics/vitals"
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
	b.atMost(name+".cpu", w.CPU, "%", 2)
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
	w := &watching{db: db, life: life}
	go w.keep(ctx)
	failed := make(chan error, len(targets))
	for i, t := range targets {
		go func() {
			failed <- w.node(ctx, i, remote.Open(t))
		}()
	}
	for w.speaking.Load() < int64(len(targets)) {
		select {
		case err := <-failed:
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	time.Sleep(3 * time.Second)
	before, counted, began := cpuSeconds(), w.stored.Load(), time.Now()
	time.Sleep(time.Duration(seconds) * time.Second)
	took := time.Since(began).Seconds()
	return json.NewEncoder(os.Stdout).Encode(watched{
		CPU: (cpuSeconds() - before) / took * 100, RSS: peakMB(), Samples: w.stored.Load() - counted, Seconds: took})
}

// watching does what the workbench does with the telemetry of its nodes.
type watching struct {
	db               *store.Store
	life             int64
	mu               sync.Mutex
	gathered         []store.Sample
	stored, speaking atomic.Int64
}

// keep stores what was gathered, as often as the workbench does.
func (w *watching) keep(ctx context.Context) {
	for ticker := time.NewTicker(250 * time.Millisecond); ctx.Err() == nil; <-ticker.C {
		w.mu.Lock()
		samples := w.gathered
		w.gathered = nil
		w.mu.Unlock()
		if len(samples) > 0 && w.db.AddSamples(samples) == nil {
			w.stored.Add(int64(len(samples)))
		}
	}
}

// node gathers the samples of one node.
func (w *watching) node(ctx context.Context, i int, n *remote.Node) error {
	parser, first := vitals.NewReader(), true
	return n.Telemetry(ctx, "", job.NewPace(), func(frame []byte) {
		sample, ok := parser.Frame(frame)
		if !ok {
			return
		}
		body, err := json.Marshal(sample)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.gathered = append(w.gathered, store.Sample{Cluster: "bench", Life: w.life, Node: i, Time: time.Now(), Body: body})
		w.mu.Unlock()
		if first {
			first = false
			w.speaking.Add(1)
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
