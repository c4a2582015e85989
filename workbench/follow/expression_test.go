package follow

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

func foundBy(t *testing.T, db *store.Store, name string) (values []float64) {
	t.Helper()
	points, err := db.Points("r")
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
	owner, db := newOwner(t)
	path := t.TempDir() + "/log"
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "step %d loss: %d.5 quux<%d>\n", i, i, i*10)
	}
	whole := text.String()
	cut := strings.Index(whole, "quux<200>") + 6 // in the middle of a number
	if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
		t.Fatal(err)
	}
	u := metrics.UserMetric{Name: "quux", Regex: `quux<(\d+)>`}
	owner.Events = func(int64) ([]event.Event, int64, error) {
		return []event.Event{{Seq: 1, Body: event.MetricAdded{Name: u.Name, Regex: u.Regex}}}, 1, nil
	}
	watching := newWatch(Run{ID: "r", Ranks: []event.RankInfo{{}}}, owner)
	log, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	watching.logs[0] = log
	defer watching.closeLogs()
	if n, err := ReadBy(context.Background(), db, "r", u, strings.NewReader(whole[:cut])); err != nil || n != 20 {
		t.Fatalf("%d values, %v", n, err)
	}
	// The watch hears of it while more is printed: a piece comes before it
	// has, a piece after.
	piece := func(from, to int) {
		if err := log.append(at(int64(from), whole[from:to])); err != nil {
			t.Fatal(err)
		}
		watching.feedAdded(int64(from), []byte(whole[from:to]))
	}
	piece(cut, cut+30)
	if err := watching.takeExpressions(); err != nil {
		t.Fatal(err)
	}
	if err := log.append(at(int64(cut+30), whole[cut+30:cut+90])); err != nil { // stored, not yet fed
		t.Fatal(err)
	}
	piece(cut+90, len(whole))
	if err := watching.storePoints(); err != nil {
		t.Fatal(err)
	}
	got := foundBy(t, db, "quux")
	if len(got) != 40 {
		t.Fatalf("%d values: %v", len(got), got)
	}
	for i, v := range got {
		if v != float64(i*10) {
			t.Fatalf("value %d is %v", i, v)
		}
	}
	if other := foundBy(t, db, "loss"); other != nil {
		t.Errorf("its reader added to another series: %v", other)
	}
}
