package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
)

func TestAGridHasEveryCombinationOnce(t *testing.T) {
	all := Trials(profiles.Sweep{Method: "grid", Parameters: []profiles.Parameter{
		{Name: "a", Kind: "values", Values: []string{"1", "2"}}, {Name: "b", Kind: "values", Values: []string{"x", "y", "z"}}}})
	seen := map[string]bool{}
	for i, trial := range all {
		seen[SettingsText(trial.Settings)] = true
		if trial.Number != i+1 {
			t.Errorf("trial %d has the number %d", i+1, trial.Number)
		}
	}
	if len(all) != 6 || len(seen) != 6 {
		t.Errorf("%d trials, %d of them different", len(all), len(seen))
	}
}

func TestARandomSearchIsTheSameAgainStaysInsideAndGrowsAtItsEnd(t *testing.T) {
	s := profiles.Sweep{Method: "random", Trials: 500, Seed: 7, Parameters: []profiles.Parameter{
		{Name: "lr", Kind: "loguniform", Low: 1e-5, High: 1e-1}, {Name: "n", Kind: "int", Low: 1, High: 3},
		{Name: "d", Kind: "uniform", Low: -1, High: 1}, {Name: "w", Kind: "logint", Low: 1, High: 1000}, {Name: "v", Kind: "values", Values: []string{"a", "b"}}}}
	all := Trials(s)
	ints, small := map[string]int{}, 0
	for _, trial := range all {
		for i, p := range s.Parameters[:4] {
			v, err := strconv.ParseFloat(trial.Settings[i].Value, 64)
			if err != nil || v < p.Low || v > p.High {
				t.Fatalf("%s is %s", p.Name, trial.Settings[i].Value)
			}
			if p.Name == "lr" && v < 1e-3 {
				small++
			}
		}
		ints[trial.Settings[1].Value]++
	}
	if len(ints) != 3 || ints["3"] < 100 || small < 200 || small > 300 {
		t.Errorf("ints %v, %d of 500 in the lower half of the axis", ints, small)
	}
	s.Trials = 600
	if more := Trials(s); SettingsText(more[499].Settings) != SettingsText(all[499].Settings) {
		t.Error("more trials changed those that were")
	}
	s.Seed = 8
	if SettingsText(Trials(s)[0].Settings) == SettingsText(all[0].Settings) {
		t.Error("another seed drew the same")
	}
}

func TestParametersReachTheCommandWhereItSaysAndBehindIt(t *testing.T) {
	p := &profiles.Profile{Name: "x", Run: profiles.Run{Command: "train.py lr={lr}"}}
	trial := Trial{Number: 3, Settings: []profiles.Setting{{Name: "lr", Value: "0.1"}, {Name: "opt.name", Value: "a b"}}}
	for form, want := range map[string]string{"": "train.py lr=0.1 --opt.name='a b'", "none": "train.py lr=0.1", "{name}={value}": "train.py lr=0.1 opt.name='a b'"} {
		p.Sweep.Arguments = form
		own := Of(p, trial, "s1")
		if own.Run.Command != want {
			t.Errorf("%q: %s", form, own.Run.Command)
		}
		if !slices.Contains(own.Run.Env, profiles.Var{Name: "DLWB_PARAM_OPT_NAME", Value: "a b"}) || !slices.Contains(own.Run.Env, profiles.Var{Name: "DLWB_TRIAL", Value: "3"}) {
			t.Errorf("variables %v", own.Run.Env)
		}
	}
	if len(p.Run.Env) != 0 || p.Run.Command != "train.py lr={lr}" {
		t.Error("the profile itself was changed")
	}
}

func TestSlotsFollowTheGPUs(t *testing.T) {
	for _, c := range []struct {
		has         []int
		nodes, gpus int
		want        int
	}{{[]int{0, 0, 0, 0}, 1, 0, 4}, {[]int{8, 8}, 1, 1, 16}, {[]int{8, 4}, 1, 4, 3}, {[]int{8, 8}, 1, 0, 2}, {[]int{0, 0, 0}, 2, 0, 1}, {[]int{2}, 1, 4, 0}, {[]int{0, 0}, 1, 2, 2}} {
		got := Slots(c.has, c.nodes, c.gpus)
		seen := map[string]bool{}
		for _, s := range got {
			for _, g := range s.GPUs {
				seen[strconv.Itoa(s.Nodes[0])+"/"+strconv.Itoa(g)] = true
			}
		}
		if len(got) != c.want || c.gpus > 0 && c.has[0] > 0 && len(seen) != c.want*c.gpus {
			t.Errorf("%v, %d nodes, %d GPUs: %v", c.has, c.nodes, c.gpus, got)
		}
	}
}

func TestTheRulesEndWhatFallsBehind(t *testing.T) {
	line := func(v float64, n int) []float64 { return slices.Repeat([]float64{v}, n) }
	all := []Course{{1, line(1, 10), false}, {2, line(2, 9), false}, {3, line(3, 8), false}, {4, line(9, 12), false}, {5, line(5, 2), false}, {6, line(0.5, 20), true}}
	if got := Losers("median", "min", 5, all); got[4] == "" || got[1] != "" || got[5] != "" || got[6] != "" {
		t.Errorf("median: %v", got)
	}
	if got := Losers("median", "max", 5, all); got[4] != "" || got[1] == "" {
		t.Errorf("median, max: %v", got)
	}
	if got := Losers("halving", "min", 4, all); got[4] == "" || got[1] != "" || got[6] != "" {
		t.Errorf("halving: %v", got)
	}
	if got := Losers("median", "min", 5, all[:3]); len(got) != 0 {
		t.Errorf("with two others nothing can be told: %v", got)
	}
	nan := []Course{{1, line(math.NaN(), 9), false}, {2, line(2, 9), false}, {3, line(3, 9), false}, {4, line(4, 9), false}}
	if got := Losers("median", "max", 5, nan); got[1] == "" {
		t.Errorf("what is no number is worse than any: %v", got)
	}
	if got := Losers("none", "min", 5, all); len(got) != 0 {
		t.Errorf("none: %v", got)
	}
}

func TestTheBestIsFirstAndFailuresAreBehind(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	b := Board(profiles.Sweep{Mode: "max", Metric: "acc"}, "s1", []event.TrialRow{
		{Trial: 1, State: event.TrialDone, Value: v(0.5)}, {Trial: 2, State: event.TrialFailed, Value: v(0.9)}, {Trial: 3, State: event.TrialWaiting},
		{Trial: 4, State: event.TrialRunning, Value: v(0.7)}, {Trial: 5, State: event.TrialDone}})
	var order []int
	for _, r := range b.Rows {
		order = append(order, r.Trial)
	}
	if !slices.Equal(order, []int{4, 1, 5, 2, 3}) || b.Best != 4 || b.Done != 2 || b.Failed != 1 || b.Running != 1 {
		t.Errorf("%v %+v", order, b)
	}
	if text := strings.Join(Text(b), "\n"); !strings.Contains(text, "3 of 5 trials, 1 running, 1 failed; the best is trial 4 (max acc)") || !strings.Contains(text, "*     4") {
		t.Error(text)
	}
}
