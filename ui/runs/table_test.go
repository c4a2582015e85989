package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

func TestSeriesAreSortedAsNumbersAndTheirPlaceIsKept(t *testing.T) {
	var v Table
	v.set(tableOf(20))
	v.sort = len(v.columns())
	v.arrange()
	if got := v.series(0, v.rows[19]); got != "12" {
		t.Errorf("the greatest is %s, want 12", got)
	}
	v.picked = 5
	id := v.Pick().ID
	more := tableOf(21)
	more.Runs = slices.Insert(more.Runs[:20], 0, more.Runs[20])
	v.set(more)
	if v.Pick().ID != id {
		t.Errorf("the cursor went from %s to %s", id, v.Pick().ID)
	}
}

// tableOf is a table of n runs.
func tableOf(n int) history.Table {
	t := history.Table{Columns: []string{"best.val/acc"}}
	for i := range n {
		over, loss := time.Unix(0, 0).Add(time.Duration(i)*time.Minute), float64(i%7)
		t.Runs = append(t.Runs, event.RunInfo{ID: fmt.Sprintf("run-%d", i), StartedAt: time.Unix(0, 0), EndedAt: &over, LastLoss: &loss, Note: strings.Repeat("note ", i%9)})
		t.Cells = append(t.Cells, []string{fmt.Sprint(i % 13)})
	}
	return t
}
