//go:build unix

package workbench

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/vitals"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/samples"
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

func TestTelemetryIsAskedForLessWhenNobodyLooks(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r1")
	sub := w.Subscribe("c")
	before := samples.Looks(w.dir, s.life)
	sub.WithoutSamples().Waiting()
	if got := samples.Looks(w.dir, s.life); got != before {
		t.Error("a reader without telemetry counts as one who looks at it")
	}
	w.Subscribe("c").Waiting()
	first := samples.Looks(w.dir, s.life)
	if first == before {
		t.Error("a reader is not noted")
	}
	again := w.Subscribe("c")
	again.Waiting()
	if second := samples.Looks(w.dir, s.life); second == first {
		t.Error("a second look is not noted")
	}
}

func TestNvidiaSmiThatHangsIsToldOnceAndWhenItAnswersAgain(t *testing.T) {
	w := newBench(t, t.TempDir())
	o := newObserver(w, begin(t, w, "c", "r1"), nil)
	for _, said := range []string{"", vitals.SMISilent, vitals.SMISilent, "", ""} {
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
	o := newObserver(w, scope{cluster: "c", life: life}, nil)
	sub := w.Subscribe("c")
	parsers := make([]*vitals.Reader, 64)
	for i := range parsers {
		parsers[i] = vitals.NewReader()
	}
	o.kept.Thin()
	begin := cpuTime(b)
	seconds, got := 0, 0
	for b.Loop() {
		frame := frameOf(seconds)
		for i, p := range parsers {
			if sample, ok := p.Frame(frame); ok {
				o.take(i, sample)
			}
			if i%16 == 15 {
				o.kept.Flush()
				got += len(sub.Waiting())
			}
		}
		if seconds++; seconds%60 == 0 {
			o.kept.Thin()
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
