package folder

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if runs, err := Store(path); err != nil || len(runs) != 1 {
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
	runs, err := Store(path)
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
