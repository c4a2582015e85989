package metrics

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// python is where Debian's python3-torch belongs.
const python = "/usr/bin/python3"

// curves are the losses of a run: step and value.
type curves struct{ Train, Val [][2]float64 }

// TestOneRunGivesTheSameCurveFromEachSource trains a network for real. The
// tolerance is half of the last digit that a source prints.
func TestOneRunGivesTheSameCurveFromEachSource(t *testing.T) {
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		t.Skipf("NOT RUN: %s has no PyTorch; on Debian and Ubuntu: apt-get install python3-torch", python)
	}
	dir := t.TempDir()
	if b, err := exec.Command(python, "testdata/curve.py", dir).CombinedOutput(); err != nil {
		t.Fatalf("train: %v\n%s", err, b)
	}
	var truth curves
	b, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &truth); err != nil {
		t.Fatal(err)
	}
	if len(truth.Train) != 60 || len(truth.Val) != 3 {
		t.Fatalf("the run gave %d and %d losses", len(truth.Train), len(truth.Val))
	}
	for file, c := range map[string]struct {
		digits   float64 // of the last place that is printed; relative below zero
		byEpoch  bool    // x is a fraction of epochs
		tellsVal bool
		relative bool
	}{
		"imagenet.log":              {digits: 1e-4, relative: true},
		"nanogpt.log":               {digits: 1e-4},
		"titan.log":                 {digits: 1e-4},
		"mmengine.log":              {digits: 1e-4, tellsVal: true},
		"transformers.log":          {digits: 1e-4, byEpoch: true, tellsVal: true},
		"horovod.log":               {digits: 1e-6},
		"lightning.log":             {digits: 1e-3, tellsVal: true},
		"events.out.tfevents.1.run": {digits: 1e-7, relative: true, tellsVal: true},
		"metrics.csv":               {digits: 1e-12, tellsVal: true},
		"trainer_state.json":        {digits: 1e-4, tellsVal: true},
		"log.jsonl":                 {digits: 1e-4, tellsVal: true},
	} {
		t.Run(file, func(t *testing.T) {
			path := filepath.Join(dir, file)
			if found, _ := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*")); strings.HasPrefix(file, "events") && len(found) > 0 {
				path = found[0]
			}
			set := readFile(t, path).Set
			scale := 1.0
			if c.byEpoch {
				scale = 20
			}
			near := func(got, want [2]float64, byStep bool) bool {
				tolerance := c.digits / 2 * 1.000001
				if c.relative {
					tolerance *= math.Max(1, math.Pow(10, math.Floor(math.Log10(math.Abs(want[1])))))
				}
				return math.Abs(got[1]-want[1]) <= tolerance && (!byStep || math.Abs(got[0]*scale-want[0]) < 1e-3)
			}
			sameCurve(t, set.loss(false), truth.Train, func(got, want [2]float64) bool { return near(got, want, true) })
			if c.tellsVal {
				sameCurve(t, set.loss(true), truth.Val, func(got, want [2]float64) bool { return near(got, want, false) })
			}
		})
	}
}

// loss finds the loss of the training, or of the validation.
func (s *Set) loss(validation bool) *Series {
	for _, one := range s.Series {
		split := Split(one.Name)
		if base := one.Name[strings.LastIndexByte(one.Name, '/')+1:]; base == "loss" && validation == (split == "val" || split == "eval") {
			return one
		}
	}
	return nil
}

func sameCurve(t *testing.T, s *Series, want [][2]float64, near func(got, want [2]float64) bool) {
	t.Helper()
	if s == nil {
		t.Error("no loss")
		return
	}
	got := s.XY(s.Axis())
	if len(got) != len(want) {
		t.Errorf("%s has %d points by %s, want %d", s.Name, len(got), s.Axis(), len(want))
		return
	}
	for i := range want {
		if !near(got[i], want[i]) {
			t.Errorf("%s: point %d is %v, want %v", s.Name, i, got[i], want[i])
			return
		}
	}
}
