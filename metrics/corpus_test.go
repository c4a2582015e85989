package metrics

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// unread are outputs of the corpus of which something is not read, or read
// otherwise, and why. A framework that is read leaves the list.
var unread = map[string]string{
	"fastai-learner": "without a progress bar it prints lists without names",
	"lightning-bar":  "what rich wraps into the next row repeats in each frame; an accuracy that two epochs share is told once",
	"lightning-rich": "as lightning-bar",
	"tqdm-postfix":   "the value of the last step stands on two frames",
}

// What real frameworks printed, beside the values that they had: make corpus
// made both. What is kept is what a terminal and a pipe got, byte for byte.
func TestTheCorpusIsReadAsItWas(t *testing.T) {
	files, _ := filepath.Glob("testdata/corpus/*.expect.json")
	if len(files) < 20 {
		t.Fatalf("%d samples in testdata/corpus", len(files))
	}
	wanted, missed := 0, 0
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
		family := strings.TrimSuffix(strings.TrimSuffix(name, "-pipe"), "-pty")
		switch {
		case said == "":
		case unread[family] != "":
			missed++
		default:
			t.Errorf("%s: %s", name, said)
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
