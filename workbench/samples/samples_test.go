package samples

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

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
	for _, e := range record(samples, 2, from, to) {
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
	g := Gaps{}
	s := metrics.Sample{CPU: new(1.0), GPUs: []metrics.GPU{{Index: 3, Util: new(2.0)}}}
	at := time.Now()
	for i, c := range []struct {
		after float64
		every float64
		gap   bool
	}{{0, 0, false}, {1, 0, false}, {3, 0, false}, {5, 0, true}, {1, 0, false}, {10, 10, false}, {10, 10, false}, {30, 10, true}, {10, 0, false}, {4, 0, true}} {
		at = at.Add(time.Duration(c.after * float64(time.Second)))
		s.Every = c.every
		gap, when, found := g.Before(0, at, s)
		if found != c.gap || found && (gap.CPU != nil || gap.GPUs[0].Util != nil || gap.GPUs[0].Index != 3 || !when.Before(at)) {
			t.Errorf("%d: gap %v %+v at %v", i, found, gap, when)
		}
	}
}
