package store

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// filled is a store with two runs on a cluster that has ended, and one on
// another that has not.
func filled(t *testing.T) *Store {
	s := open(t)
	over := must[int64](t)(s.PutCluster(Cluster{Name: "a", CreatedAt: noon}))
	must[int64](t)(s.PutCluster(Cluster{Name: "b", CreatedAt: noon}))
	for i, id := range []string{"r1", "r2", "live"} {
		r := Run{ID: id, Cluster: "a", StartedAt: noon.Add(time.Duration(i) * time.Hour)}
		if end := r.StartedAt.Add(time.Hour); id != "live" {
			r.EndedAt = &end
		} else {
			r.Cluster = "b"
		}
		check(t, s.PutRun(r))
		var points []Point
		for n := range 50 {
			points = append(points, Point{Name: fmt.Sprint("s", n%3), Ordinal: int64(n / 3), Time: noon, Value: 1})
		}
		check(t, s.AddPoints(id, points))
		check(t, s.PutRecipe(id, []byte("{}")))
		must[int64](t)(s.Append(Event{Cluster: r.Cluster, Run: id, Name: "notice"}))
		check(t, s.AddSamples([]Sample{{Cluster: r.Cluster, Time: r.StartedAt.Add(time.Minute)}}))
	}
	c := must[Cluster](t)(s.ClusterLife(over))
	c.EndedAt = &late
	must[int64](t)(s.PutCluster(c))
	return s
}

func (s *Store) rows(t *testing.T, q string) (n int) {
	t.Helper()
	check(t, s.r.QueryRow("SELECT count(*) FROM "+q).Scan(&n))
	return n
}

func TestARemovedRunLeavesNoRowAndTheOthersAll(t *testing.T) {
	s := filled(t)
	check(t, s.MarkRemoved("r1", noon))
	if _, err := s.Run("r1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a marked run: %v", err)
	}
	if left := must[[]string](t)(s.MarkedRemoved()); len(left) != 1 || len(must[[]Run](t)(s.Runs(""))) != 2 {
		t.Errorf("marked: %v", left)
	}
	for range 2 { // an rm that was killed is done again
		check(t, s.DeleteRun("r1"))
	}
	for q, want := range map[string]int{"runs": 2, "recipes": 2, "events": 2, "samples": 2, "series": 6, "points": 100,
		"pragma_foreign_key_check": 0, "runs WHERE removed_at IS NOT NULL": 0} {
		if n := s.rows(t, q); n != want {
			t.Errorf("%d %s, want %d", n, q, want)
		}
	}
	if n := must[int64](t)(s.CountPoints("r2")); n != 50 {
		t.Errorf("%d points of another run", n)
	}
}

func TestARunThatGoesOnCanNotBeRemoved(t *testing.T) {
	s := filled(t)
	if err := s.MarkRemoved("live", noon); !errors.Is(err, ErrOngoing) {
		t.Errorf("%v", err)
	}
	if err := s.MarkRemoved("nobody", noon); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v", err)
	}
	check(t, s.DeleteRun("r2")) // not marked: its row stays, whatever was called
	if _, err := s.Run("r2"); err != nil {
		t.Error(err)
	}
}

func TestCompactGivesTheRoomBack(t *testing.T) {
	s := filled(t)
	body := make([]byte, 1<<20)
	for range 8 {
		must[int64](t)(s.Append(Event{Cluster: "a", Run: "r1", Name: "notice", Body: body}))
	}
	check(t, s.MarkRemoved("r1", noon))
	check(t, s.DeleteRun("r1"))
	before := must[int64](t)(s.Size())
	check(t, s.Compact())
	if after := must[int64](t)(s.Size()); before < 8<<20 || after > 1<<20 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
	if n := s.rows(t, "runs"); n != 2 {
		t.Errorf("%d runs", n)
	}
}
