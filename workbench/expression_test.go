package workbench

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

func TestAnAddedExpressionReadsWhatIsStored(t *testing.T) {
	w := newBench(t, t.TempDir())
	begin(t, w, "c", "r")
	if err := os.WriteFile(w.logPath("r", 0), []byte("quux<10>\nquux<20>\nquux<3"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := w.AddMetric(context.Background(), "r", "quux", `quux<(\d+)>`); err != nil || n != 2 {
		t.Errorf("%d values, %v", n, err)
	}
	events, last, err := w.watchOwner(scope{cluster: "c", run: "r"}, store.Run{ID: "r"}, &runData{}).Events(0)
	if added, is := events[len(events)-1].Body.(event.MetricAdded); err != nil || !is || added.Name != "quux" || last == 0 {
		t.Errorf("who watches hears %v, %v", names(events), err)
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
