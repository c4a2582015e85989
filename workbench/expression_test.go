package workbench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/store"
)

func foundBy(t *testing.T, w *Workbench, name string) (values []float64) {
	t.Helper()
	points, err := w.db.Points("r")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		if p.Name == name {
			values = append(values, p.Value)
		}
	}
	return values
}

func TestAnAddedExpressionReadsTheWholeLogAndWhatComes(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := begin(t, w, "c", "r")
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "step %d loss: %d.5 quux<%d>\n", i, i, i*10)
	}
	whole := text.String()
	cut := strings.Index(whole, "quux<200>") + 6 // in the middle of a number
	if err := os.WriteFile(w.logPath("r", 0), []byte(whole[:cut]), 0o600); err != nil {
		t.Fatal(err)
	}
	run, data, err := w.runRecord("r")
	if err != nil {
		t.Fatal(err)
	}
	watching := &watch{w: w, s: s, run: run, data: data, logs: map[int]*logFile{}}
	if watching.logs[0], err = openLog(w.logPath("r", 0)); err != nil {
		t.Fatal(err)
	}
	defer watching.closeLogs()
	if n, err := w.AddMetric(context.Background(), "r", "quux", `quux<(\d+)>`); err != nil || n != 20 {
		t.Fatalf("%d values, %v", n, err)
	}
	// The watch hears of it while more is printed: a piece comes before it
	// has, a piece after.
	piece := func(from, to int) {
		if err := watching.logs[0].append(int64(from), []byte(whole[from:to])); err != nil {
			t.Fatal(err)
		}
		watching.feedAdded(int64(from), []byte(whole[from:to]))
	}
	piece(cut, cut+30)
	if err := watching.takeExpressions(); err != nil {
		t.Fatal(err)
	}
	if err := watching.logs[0].append(int64(cut+30), []byte(whole[cut+30:cut+90])); err != nil { // stored, not yet fed
		t.Fatal(err)
	}
	piece(cut+90, len(whole))
	if err := watching.storePoints(); err != nil {
		t.Fatal(err)
	}
	got := foundBy(t, w, "quux")
	if len(got) != 40 {
		t.Fatalf("%d values: %v", len(got), got)
	}
	for i, v := range got {
		if v != float64(i*10) {
			t.Fatalf("value %d is %v", i, v)
		}
	}
	if other := foundBy(t, w, "loss"); other != nil {
		t.Errorf("its reader added to another series: %v", other)
	}
}

func TestAnAddedExpressionThatCannotBeReadByIsRefused(t *testing.T) {
	w := newBench(t, t.TempDir())
	begin(t, w, "c", "r")
	if err := w.db.AddPoints("r", []store.Point{{Name: "loss", Value: 4, Time: now()}}); err != nil {
		t.Fatal(err)
	}
	for name, regex := range map[string]string{"loss": `l (\d+)`, "a": `(`, "b": `no group`} {
		if _, err := w.AddMetric(context.Background(), "r", name, regex); err == nil {
			t.Errorf("%s: %s was taken", name, regex)
		}
	}
	if events, _ := w.RunEvents(context.Background(), "r"); len(events) == 0 || strings.Contains(strings.Join(names(events), " "), "metric_added") {
		t.Errorf("events: %v", names(events))
	}
}
