package store

import (
	"database/sql"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

func withRun(t *testing.T) *Store {
	t.Helper()
	s := open(t)
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	check(t, s.PutRun(Run{ID: "r", Cluster: "a", StartedAt: noon}))
	return s
}

func TestSourcesOfASeriesAreKeptApart(t *testing.T) {
	s := withRun(t)
	check(t, s.AddPoints("r", []Point{{Name: "loss", Value: 1}, {Name: "loss", Source: "out/metrics.csv", Format: "csv", Value: 1.25}}))
	check(t, s.AddPoints("r", []Point{{Name: "loss", Source: Stdout, Value: 9}, {Name: "loss", Ordinal: 1, Source: "out/metrics.csv", Value: 0.5}}))
	var got []string
	for _, v := range must[[]Series](t)(s.Series("r")) {
		for _, p := range must[[]Point](t)(s.SeriesPoints(v, 0, 0)) {
			got = append(got, fmt.Sprint(p.Name, p.Source, p.Format, p.Ordinal, p.Value))
		}
	}
	want := "lossstdoutlog0 1|lossout/metrics.csvcsv0 1.25|lossout/metrics.csvcsv1 0.5"
	if strings.Join(got, "|") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, "|"), want)
	}
}

func TestTakenBackPointsBeginANewEdition(t *testing.T) {
	s := withRun(t)
	for i := range 4 {
		check(t, s.AddPoints("r", []Point{{Name: "loss", Source: "f", Ordinal: int64(i), Value: float64(i)}}))
	}
	check(t, s.TakeBack("r", "loss", "f", 9))
	check(t, s.TakeBack("r", "acc", "f", 0))
	if v := must[[]Series](t)(s.Series("r"))[0]; v.Edition != 0 || v.Count != 4 {
		t.Errorf("nothing was taken back, and it is %+v", v)
	}
	check(t, s.TakeBack("r", "loss", "f", 2))
	check(t, s.AddPoints("r", []Point{{Name: "loss", Source: "f", Ordinal: 2, Value: 7}}))
	v := must[[]Series](t)(s.Series("r"))[0]
	if v.Edition != 1 || v.Count != 3 || v.Last.Value != 7 {
		t.Errorf("got %+v", v)
	}
	check(t, s.TakeBack("r", "loss", "f", 0))
	if all := must[[]Series](t)(s.Series("r")); len(all) != 0 {
		t.Errorf("a series without points is listed: %+v", all)
	}
}

func TestExtremesPassOverWhatIsNoNumber(t *testing.T) {
	s := withRun(t)
	for i, v := range []float64{math.NaN(), 3, math.Inf(-1), 1, 5, 1, math.Inf(1)} {
		check(t, s.AddPoints("r", []Point{{Name: "loss", Ordinal: int64(i), Value: v}, {Name: "nan", Ordinal: int64(i), Value: math.NaN()}}))
	}
	all := must[[]Series](t)(s.Series("r"))
	least, greatest, ok, err := s.Extremes(all[0])
	if err != nil || !ok || least.Value != 1 || least.Ordinal != 3 || greatest.Value != 5 {
		t.Errorf("%+v, %+v, %v, %v", least, greatest, ok, err)
	}
	if _, _, ok, err := s.Extremes(all[1]); ok || err != nil {
		t.Errorf("the extremes of nothing: %v, %v", ok, err)
	}
}

func TestNotesStarsAndRecipesStayWithTheirRun(t *testing.T) {
	s := withRun(t)
	check(t, s.SetNote("r", "lr was too high"))
	check(t, s.SetStar("r", true))
	check(t, s.PutRecipe("r", []byte(`{"a":1}`)))
	check(t, s.PutRecipe("r", []byte(`{"a":2}`)))
	check(t, s.PutRun(Run{ID: "r", Cluster: "a", StartedAt: noon, EndedAt: &late})) // by somebody who does not know them
	r := must[Run](t)(s.Run("r"))
	if r.Note != "lr was too high" || !r.Starred || r.EndedAt == nil {
		t.Errorf("got %+v", r)
	}
	if got := must[[]byte](t)(s.Recipe("r")); string(got) != `{"a":2}` {
		t.Errorf("recipe %s", got)
	}
	check(t, s.SetStar("r", false))
	if r := must[Run](t)(s.Run("r")); r.Starred {
		t.Error("the star is still there")
	}
}

// Every older schema, with something in it, is brought up to date and keeps
// what it held.
func TestOlderStoresAreBroughtUpToDate(t *testing.T) {
	for version := 1; version < len(migrations); version++ {
		path := filepath.Join(t.TempDir(), "old.db")
		db, err := connect(path, 1, "_txlock=immediate")
		check(t, err)
		old := &Store{w: db}
		check(t, old.tx(func(tx *sql.Tx) error { return migrate(tx, migrations[:version]) }))
		for _, line := range []string{
			`INSERT INTO clusters VALUES (7,'a','local','ready','p','/p','name: p',NULL,1,NULL,0,NULL)`,
			`INSERT INTO ledger (life, kind, token, intent_at, state) VALUES (7,'instance','t',1,'open')`,
			`INSERT INTO runs (id,life,profile,engine,command,world_size,started_at,ended_at,exit_code,verdict,cause,dir,data) VALUES ('r',7,'p','plain','train.py',2,5,NULL,NULL,'','','/d',NULL)`,
			`INSERT INTO series (id,run,name) VALUES (3,'r','loss'), (4,'r','acc')`,
			`INSERT INTO points (series,ordinal,step,epoch,time,value) VALUES (3,0,1,0.5,9,2.5), (3,1,2,1.0,10,NULL), (4,0,NULL,NULL,11,0.75)`,
			`INSERT INTO events (time, life, run, name, body) VALUES (1,7,'r','notice','{}')`,
		} {
			if _, err := db.Exec(line); err != nil {
				t.Fatalf("version %d: %s: %v", version, line, err)
			}
		}
		check(t, db.Close())
		s := openAt(t, path)
		var at int
		check(t, s.r.QueryRow("PRAGMA user_version").Scan(&at))
		all := must[[]Series](t)(s.Series("r"))
		if at != len(migrations) || len(all) != 2 || all[0].ID != 3 || all[0].Source != Stdout || all[0].Format != "log" {
			t.Fatalf("from version %d: version %d, %+v", version, at, all)
		}
		if !math.IsNaN(all[0].Last.Value) || *all[0].First.Step != 1 || all[1].First.Value != 0.75 {
			t.Errorf("from version %d: %+v", version, all)
		}
		if r := must[Run](t)(s.Run("r")); r.Command != "train.py" || r.Note != "" || r.Starred {
			t.Errorf("from version %d: %+v", version, r)
		}
		check(t, s.AddPoints("r", []Point{{Name: "loss", Ordinal: 2, Value: 1}, {Name: "lr", Value: 1}}))
		var broken int
		check(t, s.r.QueryRow("SELECT count(*) FROM pragma_foreign_key_check").Scan(&broken))
		if broken != 0 {
			t.Errorf("from version %d: %d rows refer to nothing", version, broken)
		}
	}
}
