package metrics

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/recipe"
	"github.com/dlwb/dlwb/metrics/sense"
)

// output is what a tool printed, with what is in it: wrong says what a document misses or
// adds; "" for nothing.
type output struct {
	name, text string
	wrong      func(*Document) string
}

// familyOf is which tool a sample is of by its name: what stands before the
// first sign or digit; a few tools have several names.
func familyOf(name string) string {
	family := regexp.MustCompile(`^[a-z]+`).FindString(strings.ToLower(name))
	of := map[string]string{
		"mmcv": "openmmlab", "mmengine": "openmmlab", "resnet": "lightning", "sb": "stable", "hf": "transformers", "llamafactory": "transformers", "axolotl": "transformers",
		"whisper": "transformers", "swin": "timm", "t": "clu", "flax": "clu", "tensor": "tf", "tf": "tf", "yolov": "ultralytics", "gan": "pytorch", "cyclegan": "pytorch",
		"imagenet": "pytorch", "mnist": "pytorch", "word": "pytorch", "absl": "clu", "xgb": "xgboost", "metric": "torchvision",
	}[family]
	if of == "" {
		of = family
	}
	return of
}

// families are the samples of the repository by family.
func families(t *testing.T) map[string][]output {
	t.Helper()
	all := map[string][]output{}
	listed := func(text, want string) output {
		return output{text: text, wrong: func(d *Document) string { return lineDifference(drawn(&d.Set), want) }}
	}
	recipes := map[string]bool{}
	for _, r := range recipe.Built() {
		recipes[strings.TrimSpace(controls.Replace(r.Sample))] = true
	}
	for name, text := range printed(t) {
		text, want, _ := strings.Cut(text, "-- want --\n")
		if recipes[strings.TrimSpace(text)] { // counted once
			continue
		}
		s := listed(text, want)
		s.name = name
		all[familyOf(name)] = append(all[familyOf(name)], s)
	}
	for _, r := range recipe.Built() {
		s := listed(controls.Replace(r.Sample), r.Want)
		s.name = "recipe/" + r.Name
		all[familyOf(r.Name)] = append(all[familyOf(r.Name)], s)
	}
	files, _ := filepath.Glob("testdata/corpus/*.expect.json")
	for _, file := range files {
		expect, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(strings.TrimSuffix(file, ".expect.json") + ".log")
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".expect.json")
		all[familyOf(name)] = append(all[familyOf(name)], output{name, string(text), func(d *Document) string { return corpusDifference(t, expect, &d.Set) }})
	}
	return all
}

// asPrinted are names that a reader without the recipe gives as they are printed,
// which is right too.
var asPrinted = map[string]string{"test": "test/loss", "valid_0/auc": "val/auc", "valid_0/binary_logloss": "val/binary_logloss", "bcer_train": "train/cer", "bwer_train": "train/wer", "average_loss": "loss", "words/sec/thread": "words_per_sec"}

// lineDifference is the first line that one text has and the other has not.
func lineDifference(got, want string) string {
	left := map[string]bool{}
	for line := range strings.Lines(strings.ToLower(want)) {
		left[strings.TrimSpace(line)] = true
	}
	for line := range strings.Lines(strings.ToLower(got)) {
		line = strings.TrimSpace(line)
		if name, points, _ := strings.Cut(line, " "); asPrinted[name] != "" && !left[line] {
			line = asPrinted[name] + " " + points
		}
		if !left[line] {
			return "not wanted: " + line
		}
		delete(left, line)
	}
	for line := range left {
		if line != "" {
			return "missing: " + line
		}
	}
	return ""
}

func corpusDifference(t *testing.T, expect []byte, set *Set) string {
	t.Helper()
	var e expected
	if err := json.Unmarshal(expect, &e); err != nil {
		t.Fatal(err)
	}
	if said := misses(e, set); said != "" {
		return said
	}
	if said := adds(e, set); said != "" {
		return said
	}
	return differs(t, expect, set)
}

var wordsOfText = regexp.MustCompile(`[A-Za-z]+[0-9]*`)

// ownWords are of each family the words of names that no other family's samples
// have: those that it brought.
func ownWords(all map[string][]output) map[string][]string {
	users := map[string]map[string]bool{}
	for family, samples := range all {
		for _, s := range samples {
			for _, w := range wordsOfText.FindAllString(s.text, -1) {
				for _, w := range append([]string{w}, strings.Split(lexis.Snake(w), "_")...) {
					w = strings.ToLower(w)
					if sense.Words[w] == unknown && sense.Words[strings.TrimRight(w, "0123456789")] == unknown {
						continue
					}
					if users[w] == nil {
						users[w] = map[string]bool{}
					}
					users[w][family] = true
				}
			}
		}
	}
	own := map[string][]string{}
	for w, who := range users {
		if len(who) == 1 {
			for family := range who {
				own[family] = append(own[family], w)
			}
		}
	}
	return own
}

// without runs f with readers that know neither the recipes of a family nor its
// own words.
func without(family string, own []string, f func()) {
	kept := maps.Clone(sense.Words)
	defer func() {
		sense.Words = kept
		Learn(nil)
	}()
	var others []recipe.Recipe
	for _, r := range recipe.Built() {
		if familyOf(r.Name) != family {
			others = append(others, r)
		}
	}
	sense.Words = maps.Clone(sense.Words)
	for _, w := range own {
		delete(sense.Words, w)
	}
	learnt.book = recipe.NewBook(others)
	f()
}

// Each family's samples are read by a reader that never saw that family: it has
// neither its recipes nor the words that only it uses. This is what to expect of
// a format that nobody here has seen.
func TestAFamilyThatWasNeverSeenIsRead(t *testing.T) {
	book()
	all := families(t)
	own := ownWords(all)
	var table strings.Builder
	table.WriteString("| family | samples | whole with it | whole without it | words taken away |\n|---|---|---|---|---|\n")
	samples, whole := 0, 0
	for _, family := range slices.Sorted(maps.Keys(all)) {
		count := func() (n int) {
			for _, s := range all[family] {
				doc, err := Read(strings.NewReader(s.text), nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				if said := s.wrong(doc); said == "" {
					n++
				} else {
					t.Logf("%s: %s", s.name, said)
				}
			}
			return n
		}
		with, blind := count(), 0
		without(family, own[family], func() { blind = count() })
		slices.Sort(own[family])
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %s |\n", family, len(all[family]), with, blind, strings.Join(own[family], " "))
		samples, whole = samples+len(all[family]), whole+blind
	}
	fmt.Fprintf(&table, "| all | %d | | %d (%d %%) | |\n", samples, whole, 100*whole/samples)
	t.Logf("\n%s", &table)
	if whole*100 < 85*samples {
		t.Errorf("%d of %d samples are read whole without what is known of their families", whole, samples)
	}
	inDocs(t, table.String())
}

// inDocs holds the table in the docs to what was measured; DLWB_WRITE=1 writes it.
func inDocs(t *testing.T, table string) {
	t.Helper()
	const page, begin, end = "../docs/metrics.md", "<!-- families -->\n", "<!-- end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	kept, after, ok := strings.Cut(rest, end)
	switch {
	case !ok:
		t.Fatalf("%s has no table between %q and %q", page, begin, end)
	case kept == table:
	case os.Getenv("DLWB_WRITE") != "":
		if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is not what was measured: DLWB_WRITE=1 go test -run %s ./metrics", page, t.Name())
	}
}
