package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// unread are outputs of the corpus of which something is not read, or read
// otherwise, and why. A framework that is read leaves the list.
var unread = map[string]string{
	"fastai-learner": "without a progress bar it prints lists, and no names anywhere",
}

// What real frameworks printed, beside the values that they had: make corpus
// made both. What is kept is what a terminal and a pipe got, byte for byte.
func TestTheCorpusIsReadAsItWas(t *testing.T) {
	files, _ := filepath.Glob("testdata/corpus/*.expect.json")
	if len(files) < 20 {
		t.Fatalf("%d samples in testdata/corpus", len(files))
	}
	wanted, missed, left := 0, 0, map[string]bool{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var e expected
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".expect.json")
		set := readFile(t, strings.TrimSuffix(file, ".expect.json")+".log").Set
		wanted++
		said := misses(e, &set)
		if said == "" {
			said = adds(e, &set)
		}
		if said == "" {
			said = differs(t, b, &set)
		}
		family := strings.TrimSuffix(strings.TrimSuffix(name, "-pipe"), "-pty")
		switch {
		case said == "":
		case unread[family] != "":
			missed++
			left[family] = true
			t.Logf("%s: %s", name, said)
		default:
			t.Errorf("%s: %s", name, said)
		}
	}
	for family := range unread {
		if !left[family] {
			t.Errorf("%s is read and still in the list of those that are not", family)
		}
	}
	t.Logf("%d of %d outputs are whole", wanted-missed, wanted)
}

// adds names a series that the training did not have.
func adds(e expected, set *Set) string {
	known := map[string]bool{}
	for _, want := range e.Series {
		for _, name := range append([]string{want.Metric, want.Raw}, want.Aka...) {
			known[normal(name)] = true
			known[normal(strings.TrimPrefix(name, "train/"))] = true
		}
	}
	for _, s := range set.Series {
		if !known[normal(s.Name)] && !known["train/"+normal(s.Name)] {
			return "invented " + s.Name
		}
	}
	return ""
}

// truth is what a training had: all the points of its series, as they were printed.
type truth struct {
	Series []struct {
		Metric   string   `json:"metric"`
		Raw      string   `json:"raw"`
		Aka      []string `json:"aka"`
		Strict   bool     `json:"x_strict"` // the output says where each point is
		Required *bool    `json:"required"`
		// Least is how many of the points a bar shows at least, which leaves out frames.
		Least  int        `json:"count_min"`
		Points [][2]maybe `json:"points"`
	} `json:"series"`
}

// maybe is a number of a truth, which may be none: "nan", "inf".
type maybe float64

// UnmarshalJSON reads a number, or the word for what is none.
func (p *maybe) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*p = maybe(v)
	return err
}

func pairs(points [][2]maybe) (all [][2]float64) {
	for _, p := range points {
		all = append(all, [2]float64{float64(p[0]), float64(p[1])})
	}
	return all
}

// differs names a series that has other points than the training had, or at
// another x.
func differs(t *testing.T, text []byte, set *Set) string {
	t.Helper()
	var e truth
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	for _, want := range e.Series {
		if len(want.Points) == 0 {
			return want.Metric + " has no truth: make corpus makes it"
		}
		why := "has other points"
		if want.Required != nil && !*want.Required {
			why = "" // it need not be shown, but what is shown is true
		}
		for _, s := range set.Series {
			mine := false
			for _, name := range append([]string{want.Metric, want.Raw}, want.Aka...) {
				mine = mine || normal(s.Name) == normal(name) || normal(s.Name) == normal(strings.TrimPrefix(name, "train/"))
			}
			if !mine {
				continue
			}
			points := pairs(want.Points)
			if got := s.XY(s.Axis()); want.Least > 0 && len(got) >= want.Least {
				points = shownOf(got, points)
			}
			said := differ(s.XY(s.Axis()), points, want.Strict)
			if why = want.Metric + " as " + s.Name + " " + said; said == "" {
				why = ""
				break
			}
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// shownOf are the points of a truth of which a bar showed only some: those with
// the values that were read, in order, and the last.
func shownOf(got, all [][2]float64) [][2]float64 {
	var shown [][2]float64
	next := 0
	for _, p := range got {
		at := next
		for at < len(all) && !sameValue(all[at][1], p[1]) {
			at++
		}
		if at == len(all) {
			return all // a value that was never there
		}
		shown, next = append(shown, all[at]), at+1
	}
	return shown
}

// differ says where points are others; x counts where it is strict, else it
// only goes up as it should.
func differ(got, want [][2]float64, strict bool) string {
	const rounding = 1e-6 // the truth is kept as it was printed
	if len(got) != len(want) {
		return fmt.Sprintf("has %d points for %d", len(got), len(want))
	}
	for i, p := range got {
		switch w := want[i]; {
		case !sameValue(p[1], w[1]) && math.Abs(p[1]-w[1]) > rounding*math.Abs(w[1]):
			return fmt.Sprintf("is %v for %v at %v", p[1], w[1], w[0])
		case strict && math.Abs(p[0]-w[0]) > rounding*math.Abs(w[0]):
			return fmt.Sprintf("has the x %v for %v", p[0], w[0])
		case !strict && i > 0 && want[i][0] > want[i-1][0] && p[0] <= got[i-1][0]:
			return fmt.Sprintf("goes back in x to %v", p[0])
		}
	}
	return ""
}
