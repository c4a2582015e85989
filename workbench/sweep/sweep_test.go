package sweep

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
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
	for form, want := range map[string]string{"": "train.py lr=0.1 '--opt.name=a b'", "none": "train.py lr=0.1", "{name}={value}": "train.py lr=0.1 'opt.name=a b'", "--{name} {value}": "train.py lr=0.1 --opt.name 'a b'"} {
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

// Whatever a value is, and in whatever quotes its place stands, the script gets it as
// the profile has it, and no other parameter is put into it.
func TestAValueReachesTheScriptAsItIs(t *testing.T) {
	for _, value := range []string{"a b", "it's", `say "hi"`, "größe → ü", "None", "true", "[1, 2]", "-1", "", "$HOME `id` \\ *", "{b}", "{value}", "a\tb", "x=1"} {
		p := &profiles.Profile{Name: "x", Run: profiles.Run{Command: `train.py "{a}" '--in={a}' --x={a} {b}`}}
		p.Sweep.Arguments = "--{name} {value}"
		own := Of(p, Trial{Number: 1, Settings: []profiles.Setting{{Name: "a", Value: value}, {Name: "b", Value: "B"}, {Name: "c", Value: value}}}, "s1")
		words, err := engine.Split(own.Run.Command)
		if want := []string{"train.py", value, "--in=" + value, "--x=" + value, "B", "--c", value}; err != nil || !slices.Equal(words, want) {
			t.Errorf("%q: %v, %q\nwant %q", value, err, words, want)
		}
	}
}

func TestAGridOfAThousandHasEachTrialOnceAndABoardOfTheBest(t *testing.T) {
	p := searched(10, 0)
	for _, name := range []string{"b", "c"} {
		p.Sweep.Parameters = append(p.Sweep.Parameters, profiles.Parameter{Name: name, Kind: "values", Values: p.Sweep.Parameters[0].Values})
	}
	p.Sweep.Metric, p.Sweep.Mode = "loss", "min"
	all, ids := Trials(p.Sweep), map[string]bool{}
	var rows []event.TrialRow
	for _, trial := range all {
		ids[RunID(p.Name, "s1", trial.Number, 0)] = true
		v := float64((trial.Number * 7919) % 1000)
		rows = append(rows, event.TrialRow{Trial: trial.Number, State: event.TrialDone, Value: &v, Values: 1})
	}
	b := Board(p.Sweep, "s1", rows)
	if len(all) != 1000 || len(ids) != 1000 || b.Done != 1000 || len(b.Rows) != rowsMost || *b.Rows[0].Value != 0 || *b.Rows[rowsMost-1].Value != rowsMost-1 {
		t.Errorf("%d trials, %d ids, %d done, %d rows", len(all), len(ids), b.Done, len(b.Rows))
	}
}

func TestWhatTrialsAreComparedByMakesNoOtherSweep(t *testing.T) {
	p := searched(3, 0)
	p.Sweep.Metric, p.Sweep.Mode, p.Sweep.Stop = "acc", "min", "none"
	mended := *p
	mended.Sweep.Metric, mended.Sweep.Mode, mended.Sweep.Stop, mended.Sweep.Warmup = "val/acc", "max", "median", 9
	if was, is := ID(p, 0), ID(&mended, 0); was != is {
		t.Errorf("%s became %s: every trial would be run again", was, is)
	}
	mended.Sweep.Seed++
	if was, is := ID(p, 0), ID(&mended, 0); was == is {
		t.Errorf("another search is %s too", is)
	}
}

func TestAMetricThatNeverComesOrIsNoNumberIsSaid(t *testing.T) {
	s := profiles.Sweep{Mode: "min", Metric: "val/loss"}
	rows := []event.TrialRow{{Trial: 1, Run: "r1", State: event.TrialDone}, {Trial: 2, Run: "r2", State: event.TrialRunning}}
	if text := strings.Join(Text(Board(s, "s1", rows)), "\n"); !strings.Contains(text, "no trial that is done has told val/loss: dlwb metrics r1 lists what it told") {
		t.Error(text)
	}
	rows[1].Values = 3 // and the last of them is NaN
	if text := strings.Join(Text(Board(s, "s1", rows)), "\n"); strings.Contains(text, "has told") || !strings.Contains(text, "no number") || strings.Contains(text, "the best is") {
		t.Error(text)
	}
	if text := Headline(Board(s, "s1", rows[1:])); strings.Contains(text, "told") {
		t.Error(text)
	}
	if text := Headline(Board(profiles.Sweep{}, "s1", rows[:1])); strings.Contains(text, "told") {
		t.Error(text)
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

// A trial that failed, or that the rule has ended, has a value and is not the best: who
// takes its parameters trains what came to no good end.
func TestATrialThatCameToNoGoodEndIsNotTheBest(t *testing.T) {
	v := func(f float64) *float64 { return &f }
	failed := event.TrialRow{Trial: 1, State: event.TrialFailed, Value: v(0.9)}
	early := event.TrialRow{Trial: 2, State: event.TrialEarly, Value: v(0.8)}
	done := event.TrialRow{Trial: 3, State: event.TrialDone, Value: v(0.5)}
	for want, rows := range map[int][]event.TrialRow{0: {failed, early, {Trial: 4, State: event.TrialDone}}, 3: {failed, early, done}} {
		b := Board(profiles.Sweep{Mode: "max", Metric: "acc"}, "s1", rows)
		stars := 0
		for _, r := range b.Rows {
			if r.Best && r.Trial == want {
				stars++
			} else if r.Best {
				t.Errorf("trial %d, which is %s, is called the best", r.Trial, r.State)
			}
		}
		if b.Best != want || stars != min(want, 1) || strings.Contains(Headline(b), "the best is") != (want > 0) {
			t.Errorf("the best is %d, not %d; %d stars: %s", b.Best, want, stars, Headline(b))
		}
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
