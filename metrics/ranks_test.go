package metrics

import (
	"strings"
	"testing"
)

// Processes that write into one file of JSON lines or CSV tell of the same places: the
// lowest counts. A file that one of them has for itself is read as it is.
func TestOfRanksInOneFileTheLowestCounts(t *testing.T) {
	for name, c := range map[string]struct {
		read func(string, func(...Point)) error
		text string
		want []float64
	}{
		"JSON lines":            {jsonLines, "{\"rank\": 0, \"step\": 1, \"loss\": 0.5}\n{\"rank\": 1, \"step\": 1, \"loss\": 0.7}\n{\"rank\": 0, \"step\": 2, \"loss\": 0.4}\n{\"rank\": 1, \"step\": 2, \"loss\": 0.6}\n", []float64{0.5, 0.4}},
		"a file of its own":     {jsonLines, "{\"rank\": 3, \"step\": 1, \"loss\": 0.5}\n{\"rank\": 3, \"step\": 2, \"loss\": 0.4}\n", []float64{0.5, 0.4}},
		"CSV":                   {csvFile, "step,rank,loss\n1,0,0.5\n1,1,0.7\n2,0,0.4\n2,1,0.6\n", []float64{0.5, 0.4}},
		"a total that goes up":  {csvFile, "loss,total_steps\n0.5,100\n0.4,200\n", []float64{0.5, 0.4}},
		"a total that stays so": {jsonLines, "{\"total_steps\": 100, \"loss\": 0.5}\n{\"total_steps\": 100, \"loss\": 0.4}\n", []float64{0.5, 0.4}},
	} {
		var got []float64
		var steps int
		if err := c.read(c.text, func(ps ...Point) {
			for _, p := range ps {
				if p.Name != "loss" {
					t.Errorf("%s: a series is called %s", name, p.Name)
				}
				got = append(got, p.Value)
				if p.Step != nil {
					steps++
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(c.want) || got[0] != c.want[0] || got[1] != c.want[1] {
			t.Errorf("%s: the losses are %v, want %v", name, got, c.want)
		}
		if placed := name != "a total that stays so"; placed != (steps == len(got)) {
			t.Errorf("%s: %d of %d points have a step", name, steps, len(got))
		}
	}
}

func jsonLines(text string, add func(...Point)) error {
	return ReadJSONLines(strings.NewReader(text), add)
}

func csvFile(text string, add func(...Point)) error { return ReadCSV(strings.NewReader(text), add) }
