//go:build unix

package workbench

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// frameOf is a frame of a node with 8 GPUs.
func frameOf(second int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "frame %d.00\ncores 96\ncpu %d %d\nmem 104857600 1056964608\nnet %d %d\ndisk 1234567 9876543\n",
		1000+second, second*4800, second*9600, second*123456789, second*98765432)
	for g := range 8 {
		fmt.Fprintf(&b, "smi %d, NVIDIA H100 80GB HBM3, %d, 71234, 81559, 61, 652.31, 700.00\n", g, (second*7+g)%101)
	}
	b.WriteString("smiage 0\nend\n")
	return []byte(b.String())
}

func sampleAt(t *testing.T, node int, at time.Time) store.Sample {
	t.Helper()
	s := metrics.Sample{Uptime: 5, CPU: new(50.0), GPUs: []metrics.GPU{{Index: 0, Name: "A", Util: new(90.0)}}}
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return store.Sample{Cluster: "c", Node: node, Time: at, Body: body}
}

func TestTheRecordOfARunShowsGapsAsGaps(t *testing.T) {
	from := time.Now().Add(-5 * time.Minute)
	to := from.Add(200 * time.Second)
	var samples []store.Sample
	for i := range 200 {
		if i >= 50 && i < 100 {
			continue // the connection was away
		}
		for node := range 2 {
			samples = append(samples, sampleAt(t, node, from.Add(time.Duration(i)*time.Second)))
		}
	}
	var empty, full [2]int
	before := from
	for _, e := range sampleRecord(samples, 2, from, to) {
		b := e.Body.(event.Sampled)
		if e.Time.Before(before.Add(-4 * time.Second)) {
			t.Errorf("%v comes after %v", e.Time, before)
		}
		before = e.Time
		switch {
		case len(b.Sample.GPUs) != 1:
			t.Fatalf("a sample tells of %d GPUs", len(b.Sample.GPUs))
		case b.Sample.CPU == nil && b.Sample.GPUs[0].Util == nil:
			if at := e.Time.Sub(from).Seconds(); at < 48 || at > 101 {
				t.Errorf("a gap at %.0f s", at)
			}
			empty[b.Node]++
		case *b.Sample.CPU == 50 && *b.Sample.GPUs[0].Util == 90:
			full[b.Node]++
		default:
			t.Errorf("a value that nobody measured: %+v", b.Sample)
		}
	}
	for node := range 2 {
		if empty[node] < 20 || full[node] < 60 {
			t.Errorf("node %d: %d samples and %d empty ones", node, full[node], empty[node])
		}
	}
}

func TestALiveReaderSeesAGapOnce(t *testing.T) {
	g := gaps{}
	s := metrics.Sample{CPU: new(1.0), GPUs: []metrics.GPU{{Index: 3, Util: new(2.0)}}}
	at := time.Now()
	for i, c := range []struct {
		after float64
		every float64
		gap   bool
	}{{0, 0, false}, {1, 0, false}, {3, 0, false}, {5, 0, true}, {1, 0, false}, {10, 10, false}, {10, 10, false}, {30, 10, true}, {10, 0, false}, {4, 0, true}} {
		at = at.Add(time.Duration(c.after * float64(time.Second)))
		s.Every = c.every
		gap, when, found := g.before(0, at, s)
		if found != c.gap || found && (gap.CPU != nil || gap.GPUs[0].Util != nil || gap.GPUs[0].Index != 3 || !when.Before(at)) {
			t.Errorf("%d: gap %v %+v at %v", i, found, gap, when)
		}
	}
}

func TestTelemetryIsAskedForLessWhenNobodyLooks(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r1")
	sub := w.Subscribe("c")
	before := w.looks(s.life)
	sub.WithoutSamples().Waiting()
	if got := w.looks(s.life); got != before {
		t.Error("a reader without telemetry counts as one who looks at it")
	}
	w.Subscribe("c").Waiting()
	first := w.looks(s.life)
	if first == before {
		t.Error("a reader is not noted")
	}
	again := w.Subscribe("c")
	again.Waiting()
	if second := w.looks(s.life); second == first {
		t.Error("a second look is not noted")
	}
}

func TestNvidiaSmiThatHangsIsToldOnceAndWhenItAnswersAgain(t *testing.T) {
	w := newBench(t, t.TempDir())
	o := &observer{w: w, s: begin(t, w, "c", "r1"), pace: job.NewPace(), hung: map[int]bool{}}
	for _, said := range []string{"", metrics.SMISilent, metrics.SMISilent, "", ""} {
		o.take(0, metrics.Sample{GPUError: said})
	}
	var told []string
	for _, e := range w.Subscribe("c").Waiting() {
		if b, ok := e.Body.(event.Noticed); ok {
			told = append(told, b.Text)
		}
	}
	if len(told) != 2 || !strings.Contains(told[0], "does not answer") || !strings.Contains(told[1], "answers again") {
		t.Errorf("told %q", told)
	}
}

// BenchmarkTelemetryOf64Nodes is a second of 64 nodes with 8 GPUs each: parsed,
// stored in four writes, and read again by one screen. cpu-ms/s is of one core.
func BenchmarkTelemetryOf64Nodes(b *testing.B) {
	w, err := Open(Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	life, err := w.db.BeginCluster(store.Cluster{Name: "c", Provider: "local", Phase: string(event.PhaseRunning), CreatedAt: now()})
	if err != nil {
		b.Fatal(err)
	}
	o := &observer{w: w, s: scope{cluster: "c", life: life}, pace: job.NewPace(), hung: map[int]bool{}}
	sub := w.Subscribe("c")
	parsers := make([]*metrics.Telemetry, 64)
	for i := range parsers {
		parsers[i] = metrics.NewTelemetry()
	}
	o.thin(now())
	begin := cpuTime(b)
	seconds, got := 0, 0
	for b.Loop() {
		frame := frameOf(seconds)
		for i, p := range parsers {
			if sample, ok := p.Frame(frame); ok {
				o.take(i, sample)
			}
			if i%16 == 15 {
				o.flush()
				got += len(sub.Waiting())
			}
		}
		if seconds++; seconds%60 == 0 {
			o.thin(now())
		}
	}
	if got < 64*seconds {
		b.Errorf("%d events of %d samples", got, 64*seconds)
	}
	b.ReportMetric(float64((cpuTime(b)-begin).Microseconds())/1000/float64(seconds), "cpu-ms/s")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
