package store

import (
	"testing"
	"time"
)

// bodies joins what samples hold.
func bodies(samples []Sample) (text string) {
	for _, v := range samples {
		text += string(v.Body)
	}
	return text
}

func TestAReaderFollowsSamplesFromWhereItIs(t *testing.T) {
	s := open(t)
	old := must[int64](t)(s.PutCluster(Cluster{Name: "a", EndedAt: &late}))
	check(t, s.AddSamples([]Sample{{Life: old, Body: []byte("x"), Time: noon}}))
	life := must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	add := func(text string) {
		t.Helper()
		for i := range text {
			check(t, s.AddSamples([]Sample{{Cluster: "a", Node: i % 2, Time: noon.Add(time.Duration(i)), Body: []byte(text[i : i+1])}}))
		}
	}
	read := func(id int64, want string) int64 {
		t.Helper()
		got, last, err := s.SamplesAfter(life, id)
		check(t, err)
		if bodies(got) != want {
			t.Fatalf("after %d: %q, want %q", id, bodies(got), want)
		}
		return last
	}
	if first := must[int64](t)(s.LastSample(life, 0)); first != 0 || read(first, "") != 0 {
		t.Fatalf("a life without samples begins at %d", first)
	}
	add("01234")
	read(must[int64](t)(s.LastSample(life, 2)), "34")
	read(must[int64](t)(s.LastSample(life, 9)), "01234")
	last := read(must[int64](t)(s.LastSample(life, 0)), "")
	check(t, s.TrimSamples(late)) // all are gone, and no id is used again
	add("5")
	last = read(last, "5")
	read(last, "")
}

// pointsAfter reads what a reader that counts the points of each series does
// not have yet.
func pointsAfter(t *testing.T, s *Store, run string, have map[int64]int64) (all []Point) {
	t.Helper()
	for _, v := range must[[]Series](t)(s.Series(run)) {
		points := must[[]Point](t)(s.SeriesPoints(v, have[v.ID], 0))
		have[v.ID] += int64(len(points))
		all = append(all, points...)
	}
	return all
}

func TestAReaderFollowsPointsSeriesBySeries(t *testing.T) {
	s := open(t)
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	check(t, s.PutRun(Run{ID: "r", Cluster: "a"}))
	have := map[int64]int64{}
	for _, step := range []struct {
		add, want []Point
	}{
		{nil, nil},
		{[]Point{{Name: "loss", Value: 3}, {Name: "loss", Ordinal: 1, Value: 2}}, []Point{{Name: "loss", Value: 3}, {Name: "loss", Ordinal: 1, Value: 2}}},
		{[]Point{{Name: "loss", Ordinal: 1, Value: 9}}, nil},
		{[]Point{{Name: "acc", Value: 0.5}, {Name: "loss", Ordinal: 2, Value: 1}}, []Point{{Name: "loss", Ordinal: 2, Value: 1}, {Name: "acc", Value: 0.5}}},
	} {
		check(t, s.AddPoints("r", step.add))
		got := pointsAfter(t, s, "r", have)
		if len(got) != len(step.want) {
			t.Fatalf("got %+v, want %+v", got, step.want)
		}
		for i := range got {
			if !samePoint(got[i], step.want[i]) {
				t.Errorf("got %+v, want %+v", got[i], step.want[i])
			}
		}
	}
}
