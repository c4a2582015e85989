package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// summary tells of each series its axis, count, first and last point.
func summary(set *Set) string {
	var b strings.Builder
	for _, s := range set.Series {
		xy := s.XY(s.Axis())
		fmt.Fprintf(&b, "%s %s %d %v %v\n", s.Name, s.Axis(), len(xy), xy[0], xy[len(xy)-1])
	}
	return b.String()
}

func readFile(t testing.TB, path string) *Document {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := Read(f, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSampleLogsGiveTheSeriesThatAPersonSees(t *testing.T) {
	for file, want := range map[string]string{
		"keras.log":        "loss epoch 3 [1 0.5] [3 0.25]\naccuracy epoch 3 [1 0.6] [3 0.8]\nval/loss epoch 3 [1 1.1] [3 0.3667]\nval/accuracy epoch 3 [1 0.5] [3 0.7]\n",
		"lightning.log":    "train/loss step 12 [10 1.6] [120 0.5]\nval/loss epoch 3 [0 1.5] [2 0.5]\n",
		"transformers.log": "loss epoch 8 [0.25 1] [2 0.2222]\ngrad_norm epoch 8 [0.25 1.1] [2 1.8]\nlr epoch 8 [0.25 4.375e-05] [2 0]\neval/loss epoch 2 [1 0.44] [2 0.2444]\neval/accuracy epoch 2 [1 0.7] [2 0.9]\neval/samples_per_second epoch 2 [1 100.1] [2 100.1]\n",
		"mpirun.log":       "loss step 6 [1 2.7273] [20 1]\nacc@1 step 6 [1 10] [20 100]\nval/acc@1 epoch 2 [0 50.25] [1 51.25]\nval/acc@5 epoch 2 [0 80] [1 81]\n",
		"baselines.log":    "rollout/ep_rew_mean step 3 [512 21.5] [1536 23.5]\ntime/fps step 3 [512 4000] [1536 4000]\ntrain/loss step 2 [1024 38.1] [1536 37.1]\ntrain/n_updates step 2 [1024 20] [1536 30]\n",
		"ultralytics.log":  "box_loss epoch 3 [0 0.05] [2 0.03]\ncls_loss epoch 3 [0 0.02] [2 0.01]\nval/P epoch 3 [0 0.667] [2 0.687]\nval/R epoch 3 [0 0.602] [2 0.622]\nval/map50 epoch 3 [0 0.68] [2 0.7]\nval/map50-95 epoch 3 [0 0.45] [2 0.47]\n",
		"xgboost.log":      "train/error step 10 [0 0.2] [9 0.11]\nval/error step 10 [0 0.25] [9 0.205]\n",
		"noise.log":        "",
	} {
		if got := summary(&readFile(t, "testdata/logs/"+file).Set); got != want {
			t.Errorf("%s: got\n%swant\n%s", file, got, want)
		}
	}
}

// shared are samples of real output that lie beside the repository on some
// machines, each with what a careful reader expects.
const shared = "../../shared/metrics"

type expected struct {
	Series []struct {
		Metric   string `json:"metric"`
		Raw      string `json:"raw"`
		Aka      []string
		Required bool
		Count    int
		Last     []any
		CountMin *int `json:"count_min"`
		CountMax *int `json:"count_max"`
	}
	NotSeries []string `json:"not_series"`
	NoMetrics bool     `json:"expect_no_metrics"`
}

var nameSigns = regexp.MustCompile(`[\s_\-]+`)

func normal(name string) string {
	name = nameSigns.ReplaceAllString(strings.ToLower(strings.TrimSpace(name)), "_")
	name = regexp.MustCompile(`^(eval|valid|validation|dev)([/_.])`).ReplaceAllString(name, "val$2")
	return regexp.MustCompile(`^(train|val|test)_`).ReplaceAllString(name, "$1/")
}

// TestTheSharedSamplesAreWhole holds for most of them what the score of the
// whole collection says; it is a net, not the score.
func TestTheSharedSamplesAreWhole(t *testing.T) {
	files, _ := filepath.Glob(shared + "/stdout/*.expect.json")
	if len(files) == 0 {
		t.Skipf("SKIPPED: the samples are not at %s; only those in testdata were read", shared)
	}
	whole := 0
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var e expected
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		set := readFile(t, strings.TrimSuffix(file, ".expect.json")+".log").Set
		if missing := misses(e, &set); missing != "" {
			t.Logf("%s: %s", filepath.Base(file), missing)
		} else {
			whole++
		}
	}
	if whole*100 < 95*len(files) {
		t.Errorf("%d of %d samples are whole", whole, len(files))
	}
}

func misses(e expected, set *Set) string {
	if e.NoMetrics && len(set.Series) > 0 {
		return "invented " + set.Series[0].Name
	}
	for _, bad := range e.NotSeries {
		for _, s := range set.Series {
			if name := normal(s.Name); name == normal(bad) || name[strings.LastIndexByte(name, '/')+1:] == normal(bad) {
				return "invented " + s.Name
			}
		}
	}
	for _, want := range e.Series {
		if !want.Required {
			continue
		}
		names := map[string]bool{normal(want.Metric): true, normal(want.Raw): true}
		for _, a := range want.Aka {
			names[normal(a)] = true
		}
		low, high := want.Count, want.Count
		if want.CountMin != nil {
			low = *want.CountMin
		}
		if want.CountMax != nil {
			high = *want.CountMax
		}
		last := math.NaN()
		if v, ok := want.Last[1].(float64); ok {
			last = v
		}
		ok := false
		for _, s := range set.Series {
			name := normal(s.Name)
			split, _, _ := strings.Cut(name, "/")
			about, _, _ := strings.Cut(normal(want.Metric), "/")
			mine := names[name] || name[strings.LastIndexByte(name, '/')+1:] == normal(want.Raw) && split == about
			y := s.at(s.n - 1).value
			ok = ok || mine && s.Len() >= low && s.Len() <= high && (sameValue(y, last) || math.Abs(y-last) <= 1e-6*math.Abs(last))
		}
		if !ok {
			return "misses " + want.Metric
		}
	}
	return ""
}

// The recipe of a kind of line must read what the scanner reads.
func TestRecipesReadWhatTheScannerReads(t *testing.T) {
	files, _ := filepath.Glob("testdata/logs/*.log")
	if len(files) == 0 {
		t.Fatal("no logs in testdata/logs")
	}
	more, _ := filepath.Glob(shared + "/stdout/*.log")
	for _, file := range append(files, more...) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sameWithoutRecipes(t, file, string(b))
	}
}

func sameWithoutRecipes(t *testing.T, name, text string) {
	t.Helper()
	with, without := NewReader(nil), NewReader(nil)
	for line := range strings.Lines(text) {
		without.forms.byHash = [len(without.forms.byHash)]*form{}
		without.dull = [len(without.dull)]uint64{}
		got, want := told(with.Feed([]byte(line), time.Time{})), told(without.Feed([]byte(line), time.Time{}))
		if got != want {
			t.Fatalf("%s: %q\n got %s\nwant %s", name, line, got, want)
		}
	}
}

func TestEveryLineThatGaveSomethingIsExplained(t *testing.T) {
	r := NewReader([]UserMetric{{"mine", `top (\d+)`}})
	var all []string
	r.Explain(func(x Reading) { all = append(all, fmt.Sprintf("%s: %s", x.Rule, told(x.Points))) })
	r.Feed([]byte("hello\nstep 1 loss: 0.5\n{\"step\": 2, \"loss\": 0.25}\ntop 7\nstep 3/9\nstep 4 loss: 0.4\n"), time.Time{})
	want := "words and numbers: loss=0.5@1|dictionary: loss=0.25@2|your expression for mine: mine=7@2|words and numbers: |words and numbers: loss=0.4@4"
	if got := strings.Join(all, "|"); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
