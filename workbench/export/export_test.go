package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// some are rows with everything that may be there or not.
func some() []Row {
	return []Row{
		{Series: "loss", Source: "stdout", Step: new(int64(1)), Epoch: new(0.5), Time: noon, Value: 2.5, Axis: "epoch"},
		{Series: "loss", Source: "stdout", Ordinal: 1, Step: new(int64(-2)), Time: noon.Add(time.Second), Value: math.NaN()},
		{Series: "loss", Source: "out/ä, b.csv", Ordinal: 2, Epoch: new(1.0), Value: math.Inf(-1)},
		{Series: "val/acc", Split: "val", Source: "=x", Value: 1e-300},
	}
}

func from(rows []Row) func() (Row, error) {
	return func() (Row, error) {
		if len(rows) == 0 {
			return Row{}, io.EOF
		}
		r := rows[0]
		rows = rows[1:]
		return r, nil
	}
}

func written(t testing.TB, format string, rows []Row) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, format, from(rows)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTablesHaveARowForEachPoint(t *testing.T) {
	rows, err := csv.NewReader(bytes.NewReader(written(t, "csv", some()))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := "[[series split step epoch time value source axis] [loss  1 0.5 2026-03-01T12:00:00.123456Z 2.5 stdout epoch] " +
		"[loss  -2  2026-03-01T12:00:01.123456Z nan stdout ] [loss   1  -inf out/ä, b.csv ] [val/acc val    1e-300 '=x ]]"
	if got := fmt.Sprint(rows); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	lines := strings.Split(strings.TrimSpace(string(written(t, "jsonl", some()))), "\n")
	for i, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("line %d is no JSON: %s", i, l)
		}
	}
	if want := `{"series":"loss","split":"","step":-2,"epoch":null,"time":"2026-03-01T12:00:01.123456Z","value":"nan","source":"stdout","axis":""}`; len(lines) != 4 || lines[1] != want {
		t.Errorf("%d lines, the second %s", len(lines), lines[1])
	}
	if err := Write(io.Discard, "xls", from(nil)); err == nil || !strings.Contains(err.Error(), "parquet") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestEventFilesReadBack(t *testing.T) {
	rows := some()
	rows[1].Step, rows[2].Step = new(int64(2)), new(int64(1<<40))
	doc, err := metrics.Read(bytes.NewReader(written(t, "tfevents", rows)), nil, nil)
	if err != nil || doc.Format != metrics.EventFile || len(doc.Faults) > 0 {
		t.Fatalf("%s, %v, %v", doc.Format, doc.Faults, err)
	}
	var got []string
	for _, s := range doc.Set.Series {
		got = append(got, fmt.Sprint(s.Name, s.XY(metrics.AxisStep)))
	}
	if want := "loss[[1 2.5] [2 NaN] [1.099511627776e+12 -Inf]] val/acc[[0 0]]"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if doc, err := metrics.Read(bytes.NewReader(written(t, "tfevents", nil)), nil, nil); err != nil || doc.Format != metrics.EventFile {
		t.Errorf("without points: %s, %v", doc.Format, err)
	}
}

// python runs a program with a file of a format, or says that it can't.
func python(t *testing.T, module, program, format string, rows []Row) string {
	t.Helper()
	interpreter := os.Getenv("DLWB_TEST_PYTHON")
	if interpreter == "" {
		interpreter = "python3"
	}
	if err := exec.Command(interpreter, "-c", "import "+module).Run(); err != nil {
		t.Skipf("NOT RUN: %s has no %s to read the file with", interpreter, module)
	}
	path := filepath.Join(t.TempDir(), "events.out.tfevents.1")
	if err := os.WriteFile(path, written(t, format, rows), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(interpreter, "-c", program, path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestTensorBoardReadsTheEventFile(t *testing.T) {
	got := python(t, "tensorboard", `
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1]); a.Reload()
print([(n, [(e.step, e.value) for e in a.Scalars(n)]) for n in a.Tags()["scalars"]])`, "tfevents", some()[:1])
	if got != "[('loss', [(1, 2.5)])]" {
		t.Errorf("got %s", got)
	}
}

// The file in testdata was read by another implementation (pyarrow 26.0.1
// gave these rows, schema and types): what is written is still that.
func TestTheParquetFileIsOneThatOthersRead(t *testing.T) {
	want, err := os.ReadFile("testdata/some.parquet")
	if err != nil {
		t.Fatal(err)
	}
	if got := written(t, "parquet", some()); !bytes.Equal(got, want) {
		t.Errorf("the file of the same rows has %d bytes, and not the %d that were checked", len(got), len(want))
	}
}

func TestPyArrowReadsTheParquetFile(t *testing.T) {
	got := python(t, "pyarrow.parquet", `
import sys, pyarrow.parquet as p
t = p.read_table(sys.argv[1])
print(t.schema.types, t.to_pylist()[:2])`, "parquet", some())
	if !strings.Contains(got, "timestamp[us, tz=UTC]") || !strings.Contains(got, "'step': 1, 'epoch': 0.5") {
		t.Errorf("got %s", got)
	}
}
