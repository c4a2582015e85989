package folder

import (
	"bytes"
	"compress/gzip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/metrics/mlflow"
)

// unpacked puts a file of a database that the real MLflow 3.17 wrote below a folder.
func unpacked(t *testing.T, dir, name string) {
	t.Helper()
	f, err := os.Open("testdata/" + name + ".gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// All values are those that SQLite itself gave, those in the log beside the database
// too; the run that was deleted there is not.
func TestRunsOfMLflowsDatabase(t *testing.T) {
	dir := t.TempDir()
	unpacked(t, dir, "mlflow.db")
	path := filepath.Join(dir, "mlflow.db")
	if !IsStore(path) || NoMetrics(path) == "" {
		t.Error("it is not known as a database")
	}
	if runs, err := Store(t.Context(), path); err != nil || len(runs) != 1 {
		t.Errorf("without its log it has %d runs (%v)", len(runs), err)
	}
	unpacked(t, dir, "mlflow.db-wal")
	text, err := os.ReadFile("testdata/mlflow.truth.json")
	if err != nil {
		t.Fatal(err)
	}
	var truth map[string]map[string][][2]any
	if err := json.Unmarshal(text, &truth); err != nil {
		t.Fatal(err)
	}
	runs, err := Store(t.Context(), path)
	if err != nil || len(runs) != 2 || len(truth) != 2 {
		t.Fatalf("%d runs (%v)", len(runs), err)
	}
	for _, run := range runs {
		if run.Experiment != "digits" || run.Status != "FINISHED" || run.Params["model"] != "mlp" || run.Params["notes"] != strings.Repeat("long ", 1000) {
			t.Errorf("%s: %+v", run.Name, run.Run)
		}
		want := truth[run.Name]
		if len(run.Doc.Set.Series) != len(want) || len(want) == 0 {
			t.Errorf("%s: %d series, want %d", run.Name, len(run.Doc.Set.Series), len(want))
		}
		for _, s := range run.Doc.Set.Series {
			values := want[strings.Replace(s.Name, "train/loss", "train_loss", 1)]
			if s.Len() != len(values) {
				t.Errorf("%s %s: %d points, want %d", run.Name, s.Name, s.Len(), len(values))
				continue
			}
			for i, p := range s.XY(s.Axis()) {
				got := fmt.Sprint(p[1])
				if math.IsNaN(p[1]) || math.IsInf(p[1], 0) {
					got = strings.ToLower(strings.Trim(got, "+"))
				}
				if p[0] != values[i][0] || got != fmt.Sprint(values[i][1]) {
					t.Errorf("%s %s: point %d is %v, want %v", run.Name, s.Name, i, p, values[i])
				}
			}
		}
	}
}

// Of a folder the parts of a database are told as such.
func TestThePartsOfADatabaseAreNoFilesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	unpacked(t, dir, "mlflow.db-wal")
	if why := NoMetrics(filepath.Join(dir, "mlflow.db-wal")); !strings.Contains(why, "beside it") {
		t.Error(why)
	}
}

// made is a database of a path, made by statements.
func made(t *testing.T, path string, statements ...string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", plainfile.URL(path))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

var ofMLflow = []string{
	"CREATE TABLE runs (run_uuid TEXT PRIMARY KEY, name TEXT, status TEXT, lifecycle_stage TEXT, experiment_id INTEGER, start_time BIGINT)",
	"CREATE TABLE metrics (key TEXT, value FLOAT, step BIGINT, timestamp BIGINT, is_nan BOOLEAN, run_uuid TEXT, PRIMARY KEY (key, step, run_uuid))",
	"INSERT INTO runs VALUES ('r', 'one', 'RUNNING', 'active', 0, 1)",
}

func listed(t *testing.T, dir string) (all string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprintln(f.Name(), info.Size(), info.ModTime())
	}
	return all
}

// A transaction that is not over, as a program leaves it that was killed while it
// wrote, is taken back from the journal; beside the database nothing is made.
func TestATransactionThatIsNotOverIsNotRead(t *testing.T) {
	at, killed := t.TempDir(), t.TempDir()
	db := made(t, filepath.Join(at, "mlflow.db"), append(ofMLflow,
		"WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i+1 FROM n WHERE i < 2999) INSERT INTO metrics SELECT 'loss', 1.0/(1+i), i, i, 0, 'r' FROM n",
		"PRAGMA cache_size = 1", "BEGIN", "UPDATE metrics SET value = 77, key = key || 'x'")...)
	for _, part := range []string{"", "-journal"} {
		if _, err := copyFile(filepath.Join(at, "mlflow.db"+part), filepath.Join(killed, "mlflow.db"+part), 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(filepath.Join(killed, "mlflow.db")); !bytes.Contains(raw, []byte("lossx")) {
		t.Fatal("the file has nothing of the transaction: the test shows nothing")
	}
	before := listed(t, killed)
	runs, err := Store(t.Context(), filepath.Join(killed, "mlflow.db"))
	if err != nil || len(runs) != 1 || len(runs[0].Doc.Set.Series) != 1 {
		t.Fatalf("%d runs (%v)", len(runs), err)
	}
	if s := runs[0].Doc.Set.Series[0]; s.Len() != 3000 || s.XY(s.Axis())[2999][1] != 1.0/3000 {
		t.Errorf("%s has %d points", s.Name, s.Len())
	}
	if after := listed(t, killed); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

// What looks like a table of MLflow's may be a query without an end.
func TestAQueryInADatabaseIsNotRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "evil.db")
	made(t, path,
		"CREATE VIEW runs AS WITH RECURSIVE n(i) AS (VALUES (0) UNION ALL SELECT i+1 FROM n) SELECT i AS run_uuid, i AS name, i AS status, i AS lifecycle_stage, i AS experiment_id, i AS start_time FROM n",
		ofMLflow[1])
	if _, err := Store(t.Context(), path); !errors.Is(err, mlflow.ErrNone) {
		t.Error(err)
	}
	path = filepath.Join(t.TempDir(), "large.db")
	made(t, path, append(ofMLflow, "CREATE TABLE params (run_uuid TEXT, key TEXT, value TEXT)", "INSERT INTO params VALUES ('r', 'k', zeroblob(100000000))")...)
	if _, err := Store(t.Context(), path); err == nil || !strings.Contains(err.Error(), "too big") {
		t.Error(err)
	}
}

// A damaged database is an error or what is left of it, soon.
func TestADamagedDatabaseIsReadToAnEnd(t *testing.T) {
	dir := t.TempDir()
	unpacked(t, dir, "mlflow.db")
	path := filepath.Join(dir, "mlflow.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random, failed := rand.New(rand.NewPCG(1, 2)), 0
	for i := range 150 {
		text := bytes.Clone(whole)
		for range 1 + i {
			text[16+random.IntN(len(text)-16)] = byte(random.Uint32())
		}
		if i%10 == 0 {
			text = text[:random.IntN(len(text))]
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Store(t.Context(), path); err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("none of them is an error: the test shows nothing")
	}
	t.Logf("%d of 150 are errors", failed)
}

// A database that is written to all the time is never a mixture.
func TestADatabaseThatIsWrittenToIsCopiedAsItWasAtOneTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mlflow.db")
	db := made(t, path, append(ofMLflow, "CREATE TABLE pad (b BLOB)", "INSERT INTO pad VALUES (zeroblob(4000000))")...)
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if _, err := db.Exec(`BEGIN; INSERT INTO metrics VALUES ('a', ?1, ?1, 0, 0, 'r'), ('b', ?1, ?1, 0, 0, 'r'); UPDATE pad SET b = randomblob(4000000); COMMIT`, i); err != nil {
				stopped <- err
				return
			}
			time.Sleep(time.Duration(i%30) * 10 * time.Millisecond)
		}
	}()
	read := 0
	for range 20 {
		runs, err := Store(t.Context(), path)
		if err != nil {
			if !strings.Contains(err.Error(), "written to") {
				t.Error(err)
			}
			continue
		}
		read++
		if all := runs[0].Doc.Set.Series; len(all) > 0 && (len(all) != 2 || all[0].Len() != all[1].Len()) {
			t.Errorf("half a transaction: %d series", len(all))
		}
	}
	close(stop)
	if err := <-stopped; err != nil || read == 0 {
		t.Errorf("%d reads of 20 (%v)", read, err)
	}
	t.Logf("%d of 20 times it could be read", read)
}
