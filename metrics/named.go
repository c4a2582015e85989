package metrics

import (
	"bufio"
	"bytes"
	"io"
	"path"
	"strconv"
	"strings"
	"time"
)

// Files that have one series each, which their paths name.

// isMLflow reports whether a text is a metric as MLflow's file store keeps it:
// "timestamp value step" in each line, the time in milliseconds
// (mlflow.store.tracking.file_store).
func isMLflow(text []byte) bool {
	first, _, _ := bytes.Cut(text, []byte{'\n'})
	_, ok := mlflowPoint(string(first))
	return ok
}

func mlflowPoint(line string) (p Point, ok bool) {
	cells := strings.Fields(line)
	if len(cells) < 3 || len(cells) > 5 || len(cells[0]) != 13 || !allDigits(cells[0]) { // newer ones name the data set behind
		return p, false
	}
	ms, err := strconv.ParseInt(cells[0], 10, 64)
	value, bad := strconv.ParseFloat(cells[1], 64)
	step, worse := strconv.ParseInt(cells[2], 10, 64)
	return Point{Name: "value", Value: value, Step: &step, Time: time.UnixMilli(ms), X: AxisStep}, err == nil && bad == nil && worse == nil
}

// ReadMLflow reads a metric of MLflow's file store. Its series is "value" until
// the path names it.
func ReadMLflow(r io.Reader, add func(...Point)) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if p, ok := mlflowPoint(lines.Text()); ok {
			add(p)
		}
	}
	return lines.Err()
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
