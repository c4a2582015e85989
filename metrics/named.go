package metrics

import (
	"bufio"
	"context"
	"database/sql"
	"io"
	"path"
	"strings"

	"github.com/dlwb/dlwb/metrics/mlflow"
)

// Files that have one series each, which their paths name.

// ReadMLflow reads a metric of MLflow's file store. Its series is "value" until
// the path names it.
func ReadMLflow(r io.Reader, add func(...Point)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if v, ok := mlflow.Line(lines.Text()); ok {
			add(ofMLflow("value", v))
		}
	}
	return lines.Err()
}

func ofMLflow(name string, v mlflow.Value) Point {
	return Point{Name: name, Value: v.Number, Step: &v.Step, Time: v.Time, X: AxisStep}
}

// StoredRun is a run of a database, and its series.
type StoredRun struct {
	*mlflow.Run
	Doc Document
}

// ReadStore reads the runs of MLflow's database.
func ReadStore(ctx context.Context, db *sql.Conn) (all []*StoredRun, err error) {
	book() // what is in it is of files, too
	names, byID := fileNames{}, map[string]*StoredRun{}
	runs, err := mlflow.Read(ctx, db, func(run *mlflow.Run, v mlflow.Value) {
		one := byID[run.ID]
		if one == nil {
			one = &StoredRun{Run: run, Doc: Document{Format: MLflow}}
			byID[run.ID] = one
		}
		if name := names.name(v.Key); name != "" && (one.Doc.Set.byName[name] != nil || len(one.Doc.Set.Series) < mostSeries) {
			one.Doc.Set.Add(ofMLflow(name, v))
		}
	})
	for _, run := range runs {
		if byID[run.ID] == nil {
			byID[run.ID] = &StoredRun{Run: run, Doc: Document{Format: MLflow}}
		}
		all = append(all, byID[run.ID])
	}
	return all, err
}

// NameBy names the series of a document by the path that it was read from, when
// the file itself does not: mlruns/EXPERIMENT/RUN/metrics/NAME of MLflow, and
// the file run-RUN-tag-NAME.csv that TensorBoard exports, which has "_" for "/".
func (d *Document) NameBy(file string) {
	if len(d.Set.Series) != 1 || !strings.EqualFold(d.Set.Series[0].Name, "value") {
		return
	}
	name := ""
	switch file = strings.ReplaceAll(file, `\`, "/"); d.Format {
	case MLflow:
		name = path.Base(file)
		if _, below, ok := cutLast(file, "/metrics/"); ok {
			name = below
		}
	case CSV:
		base := strings.TrimSuffix(path.Base(file), ".csv")
		if _, tag, ok := cutLast(base, "-tag-"); ok {
			name = tag
		} else if tag, ok := strings.CutPrefix(base, "tag-"); ok {
			name = tag
		}
	}
	if name = (fileNames{}).name(name); name != "" {
		d.Set.Series[0].Name = name
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
