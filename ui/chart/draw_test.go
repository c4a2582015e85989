package chart

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

func TestATitleHasTheValuesHoweverLongTheNamesAre(t *testing.T) {
	s := session.New(1, "c", time.Time{})
	for _, name := range []string{"train/" + strings.Repeat("module.", 20) + "loss", "val/" + strings.Repeat("層.", 30) + "loss"} {
		for i := range int64(3) {
			s.State.AddPoint(metrics.Point{Name: name, Step: &i, Ordinal: i, Value: 0.125})
		}
	}
	v := &View{Of: s}
	styles := text.NewStyles(true)
	p := Page{Look: text.Look{Styles: &styles}, View: v}
	for _, w := range []int{40, 60, 80, 120, 200} {
		for _, g := range v.Shown() {
			got := p.title(g, session.AxisStep, "", w)
			if text.Wide(got) > w || strings.Count(got, "0.125") < len(g) {
				t.Errorf("%d cells: %d of them %q", w, text.Wide(got), got)
			}
		}
	}
}
