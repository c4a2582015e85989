//go:build linux

package frameworks

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/trusttest"
)

const examples = "../../examples"

// Every example has the same data, the same first weights and the same batches.
func TestTheExamplesOfDigitsBeginAlike(t *testing.T) {
	first, err := os.ReadFile(filepath.Join(examples, "digits-torchrun", "digits.py"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"ray-tune"}
	for _, trial := range Trials {
		if trial.Absent == "" && trial.Engine != "plain" {
			names = append(names, trial.Engine)
		}
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(examples, "digits-"+name, "digits.py"))
		if err != nil || string(text) != string(first) {
			t.Errorf("examples/digits-%s/digits.py is not that of the others: %v", name, err)
		}
	}
}

var lastEpoch = regexp.MustCompile(`epoch 10/10 loss \S+ val_loss (\S+) val_acc (\S+)`)

// lossNoise is by how much the losses of frameworks may differ, which add in
// other orders.
const lossNoise = 0.003

// TestFrameworksLearnTheSame runs the examples as they are, save that their
// environment is one that is there, and compares what they reach.
func TestFrameworksLearnTheSame(t *testing.T) {
	if *venvs == "" {
		t.Skip("the frameworks are not installed: make test-frameworks does that")
	}
	reached := map[string]float64{}
	for _, trial := range Trials {
		if trial.Absent != "" || trial.Engine == "plain" || *only != "" && !slices.Contains(strings.Split(*only, ","), trial.Engine) {
			continue
		}
		t.Run(trial.Engine, func(t *testing.T) {
			loss, acc := learn(t, trial)
			t.Logf("%s: val_loss %v, val_acc %v", trial.Engine, loss, acc)
			if reached[trial.Engine] = loss; acc < 0.95 {
				t.Errorf("it has learnt %v of the digits", acc)
			}
		})
	}
	for a, x := range reached {
		for b, y := range reached {
			if a < b && math.Abs(x-y) > lossNoise {
				t.Errorf("%s reaches %v, %s %v", a, x, b, y)
			}
		}
	}
}

// learn runs an example and gives what it reached.
func learn(t *testing.T, trial Trial) (loss, acc float64) {
	t.Helper()
	l := example(t, "digits-"+trial.Engine, trial.Venv)
	m := lastEpoch.FindStringSubmatch(l.logs())
	if m == nil {
		t.Fatal(tail(l.logs(), 60))
	}
	loss, _ = strconv.ParseFloat(m[1], 64)
	acc, _ = strconv.ParseFloat(m[2], 64)
	return loss, acc
}

// example runs one as it is, save that its environment is one that is there.
func example(t *testing.T, name, venv string) lab {
	t.Helper()
	there(t, Trial{Engine: name, Venv: venv})
	l := lab{t, t.TempDir(), t.TempDir()}
	from := filepath.Join(examples, name)
	if err := os.CopyFS(l.dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	profile, err := os.ReadFile(filepath.Join(from, "dlwb.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(*venvs, venv, "bin", "python")
	own := "environment: {venv: requirements.txt}"
	if venv == "horovod" {
		own = "environment: {python: python3}" // pip alone does not make one
	}
	text := strings.Replace(string(profile), own, "environment: {python: "+python+"}", 1)
	if text == string(profile) {
		t.Fatal("the profile has another environment than this test replaces")
	}
	if err := os.WriteFile(filepath.Join(l.dir, "dlwb.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	trusttest.Trust(l.state, l.dir)
	ctx, cancel := limited(t, t.Context())
	defer cancel()
	if out, err := l.run(ctx).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, tail(string(out), 10), tail(l.logs(), 60))
	}
	return l
}

var evaluated = regexp.MustCompile(`'eval_loss': '?([0-9.]+)`)

// The Trainer of Transformers finds the other ranks, and learns.
func TestFrameworksRunTheTrainer(t *testing.T) {
	if *venvs == "" || *only != "" && !slices.Contains(strings.Split(*only, ","), "torchrun") {
		t.Skip("the frameworks are not installed, or torchrun is not asked for: make test-frameworks does that")
	}
	l := example(t, "hf-trainer", "torch")
	m := evaluated.FindStringSubmatch(l.logs())
	if m == nil {
		t.Fatal(tail(l.logs(), 60))
	}
	// A model that knows nothing of bytes has ln 256 = 5.55.
	if loss, err := strconv.ParseFloat(m[1], 64); err != nil || loss > 3.6 {
		t.Errorf("it has learnt to a loss of %s", m[1])
	}
}

var best = regexp.MustCompile(`best of 6: lr (\S+) momentum (\S+) val_loss (\S+) val_acc`)

// Ray Tune's trials run on the nodes, and each is a curve of its own: the driver
// prints what the best came to, and the curves hold it.
func TestFrameworksRunTheSweepOfRayTune(t *testing.T) {
	if *venvs == "" || *only != "" && !slices.Contains(strings.Split(*only, ","), "ray") {
		t.Skip("the frameworks are not installed, or Ray is not asked for: make test-frameworks does that")
	}
	l := example(t, "digits-ray-tune", "torch")
	m := best.FindStringSubmatch(l.logs())
	if m == nil {
		t.Fatal(tail(l.logs(), 60))
	}
	runs, _ := filepath.Glob(filepath.Join(l.state, "runs", "*"))
	if len(runs) != 1 {
		t.Fatalf("the runs are %v", runs)
	}
	out, err := l.dlwb(t.Context(), "metrics", filepath.Base(runs[0]), "--json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var read struct {
		Series []struct {
			Name   string
			Points [][2]float64
		}
	}
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	curves, lowest := 0, math.Inf(1)
	for _, s := range read.Series {
		if strings.Contains(s.Name, "val") && strings.Contains(s.Name, "loss") && len(s.Points) > 0 {
			curves++
			lowest = min(lowest, s.Points[len(s.Points)-1][1])
		}
	}
	told, _ := strconv.ParseFloat(m[3], 64)
	if curves != 6 || math.Abs(lowest-told) > 1e-4 || told > 0.2 {
		t.Errorf("%d curves of 6 trials, whose lowest loss is %v, and the driver says %s\n%s", curves, lowest, m[3], tail(string(out), 80))
	}
}
