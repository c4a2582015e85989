package metrics

import (
	"path/filepath"
	"strings"
	"testing"
)

// Names that are shown say by what they are known, and those that are not say what
// is missing.
func TestWhatSpeaksForASeriesIsTold(t *testing.T) {
	var text strings.Builder
	for i := range 4 {
		n := []string{"1", "2", "3", "4"}[i]
		text.WriteString("step " + n + "0 loss=0." + n + "5 zorble=1." + n + "7 knob=0.5 lines_read=" + n + "00 wall_seconds=" + n + ".5 batch_size=32\n")
	}
	text.WriteString("step 50 loss=0.1 once=0.7\n")
	r := NewReader([]UserMetric{{Name: "mine", Regex: `zorble=1\.(\d)7`}})
	r.Explain(func(Reading) {})
	r.Feed([]byte(text.String()), r.at)
	r.End(r.at)
	got := map[string]Evidence{}
	for _, e := range r.Evidence() {
		got[e.Name] = e
	}
	for name, want := range map[string]struct {
		confidence Confidence
		why        string
	}{
		"loss":         {Named, "its name"},
		"mine":         {Asked, "expression"},
		"knob":         {Waits, "was 0.5 each time"},
		"once":         {Waits, "came once"},
		"wall_seconds": {Waits, "clock"},
	} {
		if e := got[name]; e.Confidence != want.confidence || !strings.Contains(e.Why, want.why) {
			t.Errorf("%s is %s (%q), want %s because of %q", name, e.Confidence, e.Why, want.confidence, want.why)
		}
	}
}

// Of what real frameworks printed, each series that is shown has a reason, and none
// that waits is shown.
func TestEachSeriesOfTheCorpusHasAReason(t *testing.T) {
	files, _ := filepath.Glob("testdata/corpus/*.log")
	for _, file := range files {
		doc := readFile(t, file)
		if doc.Format != Log {
			continue
		}
		known := map[string]Evidence{}
		for _, e := range doc.Evidence {
			known[e.Name] = e
		}
		for _, s := range doc.Set.Series {
			if e := known[s.Name]; e.Confidence == Waits || e.Why == "" || s.Every() == 1 && e.Points < s.Len() {
				t.Errorf("%s: %s with %d points is %s: %q of %d", file, s.Name, s.Len(), e.Confidence, e.Why, e.Points)
			}
		}
	}
}
