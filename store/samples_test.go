package store

import (
	"testing"
	"time"
)

func TestThinnedSamplesKeepTheFirstOfEachPartAndAreNotThinnedAgain(t *testing.T) {
	s := open(t)
	life, err := s.BeginCluster(Cluster{Name: "c", Provider: "local", CreatedAt: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Unix(1_700_000_000, 0)
	var all []Sample
	for i := range 100 {
		for node := range 2 {
			all = append(all, Sample{Cluster: "c", Node: node, Time: start.Add(time.Duration(i) * time.Second), Body: []byte("{}")})
		}
	}
	if err := s.AddSamples(all); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.ThinSamples(life, start, start.Add(50*time.Second), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		left, err := s.LifeSamples(life, start, start.Add(time.Hour))
		if err != nil || len(left) != 2*(5+50) {
			t.Fatalf("%d samples are left, want 110: %v", len(left), err)
		}
		if left[0].Time != start.UTC() && !left[0].Time.Equal(start) {
			t.Errorf("the first is of %v", left[0].Time)
		}
	}
	if err := s.TrimSamples(start.Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if left, err := s.LifeSamples(life, start, start.Add(time.Hour)); err != nil || len(left) != 80 {
		t.Errorf("%d samples are left, want 80: %v", len(left), err)
	}
}
