package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lines are a log of six lines.
func lines(form string, value func(i float64) []any) string {
	var b strings.Builder
	for i := 1.0; i <= 6; i++ {
		fmt.Fprintf(&b, form+"\n", value(i)...)
	}
	return b.String()
}

// What keeps clocks, rates, counters and settings out takes no metric away.
func TestRulesAgainstNoiseLeaveMetrics(t *testing.T) {
	step := func(i float64) []any { return []any{i, 5 - 0.5*i} }
	for name, c := range map[string]struct{ log, series, want string }{
		"a loss before the name of a rate": {
			lines("step %v loss %.2f samples/s 1200", step) + "epoch 1 loss 3.75 samples/s 1190\nepoch 2 loss 3.25 samples/s 1180\n",
			"loss_epoch", "[[1 3.75] [2 3.25]]"},
		"a reward before its least":     {lines("episode %v reward %.2f min 3.5 max 9.5", step), "reward", "[[1 4.5] [2 4] [3 3.5] [4 3] [5 2.5] [6 2]]"},
		"the loss of an epoch":          {lines("step: %v loss/epoch: %.2f", step), "loss/epoch", "[[1 4.5] [2 4] [3 3.5] [4 3] [5 2.5] [6 2]]"},
		"a column of that":              {"step,loss/epoch\n" + lines("%v,%.2f", step), "loss/epoch", "[[1 4.5] [2 4] [3 3.5] [4 3] [5 2.5] [6 2]]"},
		"a head of the model":           {lines("step %v loss_head1: %.2f", step), "loss_head1", "[[1 4.5] [2 4] [3 3.5] [4 3] [5 2.5] [6 2]]"},
		"what is as great as a time":    {lines("step %v zorble=%.2f", func(i float64) []any { return []any{i, 2e9 - 1e6*i} }), "zorble", "[[1 1.999e+09] [2 1.998e+09] [3 1.997e+09] [4 1.996e+09] [5 1.995e+09] [6 1.994e+09]]"},
		"lines that take turns":         {lines("step %v zorble=%.2f\nstep %v zorble=%.2f kind=ok", func(i float64) []any { return []any{2 * i, 5 - i/2, 2*i + 1, 5 - i/3} }), "zorble", "[[2 4.5] [3 4.67] [4 4] [5 4.33] [6 3.5] [7 4] [8 3] [9 3.67] [10 2.5] [11 3.33] [12 2] [13 3]]"},
		"what is nearly the same":       {"loss: 0.5003\nloss: 0.5\nloss: 0.4999\n", "loss", "[[0 0.5003] [1 0.5] [2 0.4999]]"},
		"an accuracy of few digits":     {"Epoch 1 loss 0.5 acc 0.8\nEpoch 2 loss 0.4 acc 0.9\nacc: 0.8\nEpoch 3 loss 0.3 acc 0.9\nacc: 0.8\n", "acc", "[[0 0.8] [1 0.9] [2 0.8] [3 0.9] [4 0.8]]"},
		"a displacement called minADE":  {lines("epoch %v minADE: %.2f", step), "minade", "[[1 4.5] [2 4] [3 3.5] [4 3] [5 2.5] [6 2]]"},
		"a setting that moves at last":  {strings.Repeat("step 1 knob=0.5\n", 1) + stays(200) + "step 900 knob=0.75\n", "knob", ""},
		"the scale of a loss is no one": {lines("step %v loss_scale: %.2f", step), "loss_scale", "none"},
		"the unit of a download":        {lines("     ━━━━━━━━━━━━━━━━━━━━ %[1]v.2/%[1]v.2 kB %.1[2]f MB/s eta 0:00:00", func(i float64) []any { return []any{10 * i * i, 150 + 7*i*float64(int(i)%3)} }), "kB", "none"},
		"a clock is none":               {lines("step %v now=%.2f", func(i float64) []any { return []any{i, 1.7e9 + 3.5*i} }), "now", "none"},
	} {
		got := curve(t, c.log, c.series)
		if c.want == "" && !strings.HasSuffix(got, "[900 0.75]]") || c.want != "" && got != c.want {
			t.Errorf("%s: %s is %s, want %s", name, c.series, got, c.want)
		}
	}
}

// stays are lines of a number that does not move.
func stays(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "step %d knob=0.5\n", i+2)
	}
	return b.String()
}

// However long a name waits, few of its points are kept, and what waits is counted
// once.
func TestPointsThatWaitAreBounded(t *testing.T) {
	for name, form := range map[string]string{
		"a clock":           "step %d now=%d.5\n",
		"a constant":        "step %d knob=0.5 %.0[2]d\n",
		"changing company":  "step %d knob %.0[2]d 7.5 other_%[1]d=1.5\n",
		"changing order":    "step %d knob=%[2]d name_%[1]d=on\n",
		"a count of things": "step %d things=%d\n",
	} {
		r := NewReader(nil)
		for i := range 20_000 {
			r.Feed(fmt.Appendf(nil, form, i, 1_700_000_000+i), time.Time{})
		}
		held, most := 0, 0
		for _, s := range r.series {
			if len(s.held) > 0 {
				held++
			}
			most = max(most, len(s.held), cap(s.held)/2)
		}
		if most > mostUnsure || r.held > held+1 || held > mostHeld {
			t.Errorf("%s: %d points of a series wait, %d series (%d were counted)", name, most, held, r.held)
		}
	}
}
