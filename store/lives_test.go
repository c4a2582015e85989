package store

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestALifeKeepsEveryField(t *testing.T) {
	s := open(t)
	c := Cluster{Name: "a", Provider: "local", Phase: "starting", Profile: "p", ProfilePath: "/p.yaml", ProfileSource: "name: p",
		Data: []byte(`{}`), CreatedAt: noon, PricePerHour: 1.25}
	c.ID = must[int64](t)(s.PutCluster(c))
	c.Phase, c.EndedAt, c.Receipt = "gone", &late, []byte(`{"proven":true}`)
	if id := must[int64](t)(s.PutCluster(c)); id != c.ID {
		t.Fatalf("an update made life %d", id)
	}
	if got := must[Cluster](t)(s.Cluster("a")); !reflect.DeepEqual(got, c) {
		t.Fatalf("got %+v\nwant %+v", got, c)
	}
}

func TestANameUsedAgainBeginsANewLife(t *testing.T) {
	s := open(t)
	first := must[int64](t)(s.PutCluster(Cluster{Name: "a", Phase: "ready", CreatedAt: noon}))
	if again := must[int64](t)(s.PutCluster(Cluster{Name: "a", Phase: "running", CreatedAt: noon})); again != first {
		t.Fatalf("a life that has not ended became life %d, want %d", again, first)
	}
	for range 2 { // the end may be written again
		if ended := must[int64](t)(s.PutCluster(Cluster{Name: "a", Phase: "gone", CreatedAt: noon, EndedAt: &late})); ended != first {
			t.Fatalf("the end of a life became life %d", ended)
		}
	}
	second := must[int64](t)(s.PutCluster(Cluster{Name: "a", Phase: "starting", CreatedAt: late}))
	if second == first {
		t.Fatal("the name was used again and got the old life")
	}
	if got := must[Cluster](t)(s.Cluster("a")); got.ID != second || got.Phase != "starting" || got.EndedAt != nil {
		t.Errorf("newest life: %+v", got)
	}
	if got := must[Cluster](t)(s.ClusterLife(first)); got.Phase != "gone" || got.EndedAt == nil {
		t.Errorf("first life: %+v", got)
	}
	if all := must[[]Cluster](t)(s.Clusters()); len(all) != 2 || all[0].ID != second {
		t.Errorf("all lives: %+v", all)
	}
	if live := must[[]Cluster](t)(s.LiveClusters()); len(live) != 1 || live[0].ID != second {
		t.Errorf("live: %+v", live)
	}
}

func TestALateWriterWakesNoDeadCluster(t *testing.T) {
	s := open(t)
	id := must[int64](t)(s.PutCluster(Cluster{Name: "a", CreatedAt: noon}))
	must[int64](t)(s.PutCluster(Cluster{ID: id, Name: "a", EndedAt: &late, Receipt: []byte("r")}))
	must[int64](t)(s.PutCluster(Cluster{ID: id, Name: "a", Phase: "running"}))
	if got := must[Cluster](t)(s.Cluster("a")); got.EndedAt == nil || string(got.Receipt) != "r" {
		t.Errorf("got %+v", got)
	}
	if _, err := s.PutCluster(Cluster{ID: id, Name: "b"}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a life under another name: got %v", err)
	}
}

func TestOnlyOneBeginsALife(t *testing.T) {
	s := open(t)
	must[int64](t)(s.BeginCluster(Cluster{Name: "a"}))
	if _, err := s.BeginCluster(Cluster{Name: "a"}); !errors.Is(err, ErrLive) {
		t.Fatalf("got %v, want ErrLive", err)
	}
	must[int64](t)(s.PutCluster(Cluster{Name: "a", EndedAt: &late}))
	must[int64](t)(s.BeginCluster(Cluster{Name: "a"}))
}

func TestLivesDoNotMix(t *testing.T) {
	s := open(t)
	old := must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	fill := func(text string) {
		must[int64](t)(s.Append(Event{Cluster: "a", Run: text, Name: text, Time: noon, Body: []byte(text)}))
		check(t, s.PutRun(Run{ID: text, Cluster: "a"}))
		check(t, s.AddSamples([]Sample{{Cluster: "a", Body: []byte(text), Time: noon}}))
		must[int64](t)(s.Intend(LedgerEntry{Cluster: "a", Kind: "instance", Token: text}))
	}
	fill("old")
	must[int64](t)(s.PutCluster(Cluster{Name: "a", EndedAt: &late}))
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	fill("new")
	// Late news of the old life goes to the old life when it is named.
	must[int64](t)(s.Append(Event{Cluster: "a", Life: old, Name: "late"}))

	if got := must[[]Event](t)(s.Since("a", 0, 0)); len(got) != 1 || got[0].Name != "new" {
		t.Errorf("events: %+v", got)
	}
	if got := must[[]Event](t)(s.SinceLife(old, 0, 0)); len(got) != 2 || got[0].Name != "old" || got[1].Name != "late" {
		t.Errorf("events of the old life: %+v", got)
	}
	if got := must[[]Event](t)(s.RunEvents("old", 0, 0)); len(got) != 1 || got[0].Cluster != "a" {
		t.Errorf("events of the old run: %+v", got)
	}
	if got := must[[]Run](t)(s.Runs("a")); len(got) != 1 || got[0].ID != "new" {
		t.Errorf("runs: %+v", got)
	}
	if got := must[[]Sample](t)(s.Samples("a", 0, noon, late)); len(got) != 1 || string(got[0].Body) != "new" {
		t.Errorf("samples: %+v", got)
	}
	if got := must[[]LedgerEntry](t)(s.Ledger("a")); len(got) != 1 || got[0].Token != "new" {
		t.Errorf("ledger: %+v", got)
	}
	if got := must[[]LedgerEntry](t)(s.OpenLedger()); len(got) != 2 {
		t.Errorf("what may cost money is forgotten with its name: %+v", got)
	}
}

func TestTheLedgerFollowsAResourceToItsProof(t *testing.T) {
	s := open(t)
	life := must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	id := must[int64](t)(s.Intend(LedgerEntry{Cluster: "a", Kind: "instance", Token: "t1", IntentAt: noon}))
	want := LedgerEntry{ID: id, Cluster: "a", Life: life, Kind: "instance", Token: "t1", IntentAt: noon, State: Intended}
	same := func() {
		t.Helper()
		if got := must[[]LedgerEntry](t)(s.Ledger("a")); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Fatalf("got %+v\nwant %+v", got, want)
		}
	}
	same()
	if _, err := s.Intend(LedgerEntry{Cluster: "a", Kind: "instance", Token: "t1"}); err == nil {
		t.Fatal("a token was used twice")
	}
	if _, err := s.Intend(LedgerEntry{Cluster: "a", Kind: "instance"}); err == nil {
		t.Fatal("an intent without a token")
	}
	check(t, s.Resolve(id, "i-1", noon.Add(time.Second)))
	at := noon.Add(time.Second)
	want.ResourceID, want.State, want.ResolvedAt = "i-1", Resolved, &at
	same()
	if err := s.CloseEntry(id, "gone", "", late); err == nil {
		t.Fatal("an entry was closed without a proof")
	}
	same()
	check(t, s.CloseEntry(id, "gone", "DescribeInstances: terminated", late))
	want.State, want.Proof, want.ClosedAt = "gone", "DescribeInstances: terminated", &late
	same()
	if err := s.Resolve(id, "i-2", late); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a closed entry was resolved again: %v", err)
	}
	if open := must[[]LedgerEntry](t)(s.OpenLedger()); len(open) != 0 {
		t.Fatalf("still open: %+v", open)
	}
}
