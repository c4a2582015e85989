package store

import (
	"bytes"
	"database/sql"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	if part := os.Getenv("DLWB_STORE_TEST_PART"); part != "" {
		os.Exit(playPart(part))
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "state", "dlwb.db"))
}

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)
	late = noon.Add(time.Hour)
)

func TestTheFileIsPrivateAndDurable(t *testing.T) {
	s := open(t)
	must[int64](t)(s.PutCluster(Cluster{Name: "a", CreatedAt: noon}))
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{"": 0o700, "dlwb.db": 0o600, "dlwb.db-wal": 0o600} {
			st, err := os.Stat(filepath.Join(filepath.Dir(s.Path()), name))
			check(t, err)
			if st.Mode().Perm() != want {
				t.Errorf("%q has mode %o, want %o", name, st.Mode().Perm(), want)
			}
		}
	}
	for _, db := range []*sql.DB{s.w, s.r} {
		for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "busy_timeout": "5000", "foreign_keys": "1"} {
			var got string
			check(t, db.QueryRow("PRAGMA "+pragma).Scan(&got))
			if got != want {
				t.Errorf("%s is %s, want %s", pragma, got, want)
			}
		}
	}
}

func TestAPathMayHoldAnyCharacter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a ?b#c%41 ü", "x.db")
	s := openAt(t, path)
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if all := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(path))); len(all) < 1 || all[0].Name() != "x.db" {
		t.Fatalf("other files were made: %v", all)
	}
}

func TestANewerSchemaIsRefusedAndLeftAlone(t *testing.T) {
	s := open(t)
	_, err := s.w.Exec("PRAGMA user_version=99")
	check(t, err)
	_, err = Open(s.Path())
	var version *VersionError
	if !errors.As(err, &version) || version.Have != 99 || !strings.Contains(err.Error(), "newer dlwb") {
		t.Fatalf("got %v", err)
	}
}

func TestAForeignFileIsRefusedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	check(t, os.WriteFile(text, bytes.Repeat([]byte("my own notes\n"), 99), 0o600))
	if _, err := Open(text); err == nil || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("a text file: got %v", err)
	}
	if b, err := os.ReadFile(text); err != nil || len(b) != 99*13 {
		t.Errorf("the text file was changed: %d bytes, %v", len(b), err)
	}
	other := filepath.Join(dir, "other.db")
	db, err := connect(other, 1, "")
	check(t, err)
	_, err = db.Exec("CREATE TABLE theirs (x)")
	check(t, errors.Join(err, db.Close()))
	if _, err := Open(other); err == nil || !strings.Contains(err.Error(), "another program") {
		t.Errorf("another program's database: got %v", err)
	}
}

func TestMigrationsRunOnceAndAllOrNothing(t *testing.T) {
	db, err := connect(filepath.Join(t.TempDir(), "m.db"), 1, "_txlock=immediate")
	check(t, err)
	defer db.Close()
	s := &Store{w: db}
	first := []string{"CREATE TABLE a (x)"}
	check(t, s.tx(func(tx *sql.Tx) error { return migrate(tx, first) }))
	broken := append(first, "CREATE TABLE b (x)", "CREATE TABLE a (x)")
	if err := s.tx(func(tx *sql.Tx) error { return migrate(tx, broken) }); err == nil || !strings.Contains(err.Error(), "migration 3") {
		t.Fatalf("a broken migration: got %v", err)
	}
	good := append(first, "CREATE TABLE b (y)")
	for range 2 { // the second time there is nothing to do
		check(t, s.tx(func(tx *sql.Tx) error { return migrate(tx, good) }))
	}
	_, err = db.Exec("INSERT INTO b (y) VALUES (1)")
	check(t, err)
}

func TestAnythingWithoutAPlaceIsAnError(t *testing.T) {
	s := open(t)
	for what, err := range map[string]error{
		"cluster": second(s.Cluster("x")),
		"life":    second(s.ClusterLife(7)),
		"run":     second(s.Run("x")),
		"profile": second(s.Profile("x")),
		"event":   second(s.Append(Event{Cluster: "x"})),
		"new run": s.PutRun(Run{ID: "r", Cluster: "x"}),
		"points":  s.AddPoints("x", []Point{{Name: "loss"}}),
		"note":    s.SetNote("x", "n"),
		"star":    s.SetStar("x", true),
		"recipe":  second(s.Recipe("x")),
		"put":     s.PutRecipe("x", []byte("{}")),
		"resolve": s.Resolve(7, "i-1", noon),
		"close":   s.CloseEntry(7, "gone", "seen", noon),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", what, err)
		}
	}
	if all, err := s.Series("x"); len(all) > 0 || err != nil {
		t.Errorf("series of nothing: %v, %v", all, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestARunKeepsEveryField(t *testing.T) {
	s := open(t)
	life := must[int64](t)(s.PutCluster(Cluster{Name: "a", CreatedAt: noon}))
	run := Run{ID: "r1", Cluster: "a", Life: life, Profile: "p", Engine: "plain", Command: "train.py", WorldSize: 2,
		StartedAt: noon, Dir: "/d", Data: []byte(`{"x":1}`)}
	check(t, s.PutRun(run))
	if got := must[Run](t)(s.Run("r1")); !reflect.DeepEqual(got, run) {
		t.Fatalf("got %+v\nwant %+v", got, run)
	}
	code := 3
	ended := run
	ended.EndedAt, ended.ExitCode, ended.Verdict, ended.Cause = &late, &code, "failed", "rank 1 exited with 3"
	check(t, s.PutRun(ended))
	check(t, s.PutRun(run)) // a late write by somebody who still sees it run
	if got := must[Run](t)(s.Run("r1")); !reflect.DeepEqual(got, ended) {
		t.Fatalf("got %+v\nwant %+v", got, ended)
	}
}

func TestRunsAreListedNewestFirst(t *testing.T) {
	s := open(t)
	for _, c := range []string{"a", "b"} {
		must[int64](t)(s.PutCluster(Cluster{Name: c}))
	}
	for i, r := range []Run{{ID: "r1", Cluster: "a"}, {ID: "r3", Cluster: "a"}, {ID: "r2", Cluster: "b"}} {
		r.StartedAt = noon.Add(time.Duration(i) * time.Minute)
		check(t, s.PutRun(r))
	}
	for cluster, want := range map[string]string{"": "r2 r3 r1", "a": "r3 r1", "b": "r2", "c": ""} {
		var ids []string
		for _, r := range must[[]Run](t)(s.Runs(cluster)) {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("runs of %q: %s, want %s", cluster, got, want)
		}
	}
}

func TestProfilesAreRememberedAndForgotten(t *testing.T) {
	s := open(t)
	old, newer := Profile{"/a.yaml", "a", "local", "", noon}, Profile{"/b.yaml", "b", "ec2", "h", late}
	check(t, errors.Join(s.PutProfile(newer), s.PutProfile(old)))
	old.Hash = "h2"
	check(t, s.PutProfile(old))
	if got := must[[]Profile](t)(s.Profiles()); !reflect.DeepEqual(got, []Profile{newer, old}) {
		t.Fatalf("got %+v", got)
	}
	if got := must[Profile](t)(s.Profile("/a.yaml")); got != old {
		t.Fatalf("got %+v", got)
	}
	check(t, errors.Join(s.ForgetProfile("/b.yaml"), s.ForgetProfile("/b.yaml")))
	if got := must[[]Profile](t)(s.Profiles()); !reflect.DeepEqual(got, []Profile{old}) {
		t.Fatalf("got %+v", got)
	}
}

func TestPointsSurviveARoundTrip(t *testing.T) {
	s := open(t)
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	value := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.MaxFloat64, 5e-324}))
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		run := "r" + time.Duration(n).String()
		check2(t, s.PutRun(Run{ID: run, Cluster: "a"}))
		var want []Point
		values := rapid.SliceOfN(value, 7, 7).Draw(t, "values")
		step := rapid.Int64().Draw(t, "step")
		for i := range rapid.SampledFrom([]int{0, 1, 9, 199, 200, 201, 401}).Draw(t, "points") {
			want = append(want, Point{Name: "loss", Ordinal: int64(i), Time: noon.Add(time.Duration(i)), Value: values[i%len(values)]})
			if i%2 == 0 {
				step, epoch := step-int64(i), float64(i)/3
				want[i].Step, want[i].Epoch = &step, &epoch
			}
		}
		cut := len(want) / 2
		check2(t, errors.Join(s.AddPoints(run, want[:cut]), s.AddPoints(run, want)))
		got, err := s.Points(run)
		check2(t, err)
		if len(got) != len(want) {
			t.Fatalf("%d points, want %d", len(got), len(want))
		}
		for i := range want {
			if !samePoint(got[i], want[i]) {
				t.Fatalf("point %d: got %+v, want %+v", i, got[i], want[i])
			}
		}
	})
}

func check2(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func samePoint(a, b Point) bool {
	same := a.Value == b.Value || math.IsNaN(a.Value) && math.IsNaN(b.Value)
	a.Value, b.Value = 0, 0
	a.Source, a.Format, b.Source, b.Format = "", "", "", ""
	return same && reflect.DeepEqual(a, b)
}

func TestPointsAddedAgainChangeNothing(t *testing.T) {
	s := open(t)
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	check(t, s.PutRun(Run{ID: "r", Cluster: "a"}))
	check(t, s.AddPoints("r", []Point{{Name: "loss", Value: 3}, {Name: "acc", Value: 0.1}, {Name: "loss", Ordinal: 1, Value: 2}}))
	check(t, s.AddPoints("r", []Point{{Name: "loss", Value: 99}, {Name: "loss", Ordinal: 2, Value: math.NaN()}}))
	check(t, s.AddPoints("r", nil))
	var got []string
	for _, p := range must[[]Point](t)(s.Points("r")) {
		got = append(got, p.Name)
		if p.Value == 99 {
			t.Error("a point that was there was overwritten")
		}
	}
	if strings.Join(got, " ") != "loss loss loss acc" {
		t.Errorf("got %v", got)
	}
	all := must[[]Series](t)(s.Series("r"))
	if len(all) != 2 || all[0].Count != 3 || all[0].Last.Ordinal != 2 || !math.IsNaN(all[0].Last.Value) || all[0].First.Value != 3 || all[1].Name != "acc" {
		t.Errorf("series: %+v", all)
	}
}

func TestSamplesAreReadByNodeAndTime(t *testing.T) {
	s := open(t)
	must[int64](t)(s.PutCluster(Cluster{Name: "a"}))
	var all []Sample
	for i := range 10 {
		all = append(all, Sample{Cluster: "a", Node: i % 2, Time: noon.Add(time.Duration(i) * time.Second), Body: []byte{'0' + byte(i)}})
	}
	check(t, s.AddSamples(all))
	read := func(node int, from, to time.Time) (text string) {
		for _, v := range must[[]Sample](t)(s.Samples("a", node, from, to)) {
			text += string(v.Body)
		}
		return text
	}
	if got := read(1, noon.Add(3*time.Second), noon.Add(9*time.Second)); got != "357" {
		t.Errorf("got %s", got)
	}
	check(t, s.TrimSamples(noon.Add(5*time.Second)))
	if got := read(0, noon, late) + read(1, noon, late); got != "68579" {
		t.Errorf("after trimming: %s", got)
	}
}

func BenchmarkAddPoints10k(b *testing.B) {
	s := open(b)
	must[int64](b)(s.PutCluster(Cluster{Name: "a"}))
	check(b, s.PutRun(Run{ID: "r", Cluster: "a"}))
	points := make([]Point, 10_000)
	for i := range points {
		step := int64(i)
		points[i] = Point{Name: "loss", Ordinal: step, Step: &step, Time: noon, Value: 1 / float64(i+1)}
	}
	for n := 0; b.Loop(); n++ {
		for i := range points {
			points[i].Ordinal = int64(n*len(points) + i)
		}
		check(b, s.AddPoints("r", points))
	}
}

// Who follows a run asks what is new, and mostly nothing is.
func BenchmarkNothingNew(b *testing.B) {
	s := open(b)
	must[int64](b)(s.PutCluster(Cluster{Name: "a"}))
	check(b, s.PutRun(Run{ID: "r", Cluster: "a"}))
	for b.Loop() {
		must[[]Event](b)(s.RunEvents("r", 0, 0))
	}
}
