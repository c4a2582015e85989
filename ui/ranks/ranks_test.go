package ranks

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/workbench/event"
)

// told reads logs as far as they go, in as many pieces as there are.
func told(t interface{ Fatal(...any) }, r *Ranks, logs map[int]string, ended bool) {
	s := session.New(1, "c", time.Time{})
	s.State.Run = "run"
	for n, text := range logs {
		s.State.LogSizes[n] = int64(len(text))
	}
	if ended {
		s.State.Ended = &event.RunEnded{}
	}
	from := func(_ string, log int, off int64, p []byte) (int, error) {
		if off >= int64(len(logs[log])) {
			return 0, io.EOF
		}
		return copy(p, logs[log][off:]), nil
	}
	for range 10_000 {
		cmd := r.Read(s, from)
		if cmd == nil {
			return
		}
		r.Take(cmd().(Told))
	}
	t.Fatal("it reads for ever")
}

// printed are lines of a rank: step 0, 10, …
func printed(n int, value func(i int) float64) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "step %d: loss %.6f lr 0.001000\n", 10*i, value(i))
	}
	return b.String()
}

func falling(i int) float64 { return 5 / float64(i+1) }

func names(b *Band) string {
	if b == nil {
		return "none"
	}
	of, _ := b.Farthest()
	return strings.Join(of, ",")
}

func TestRanksThatDifferAreToldAndTheFarthestIsNamed(t *testing.T) {
	off := func(by float64) func(int) float64 { return func(i int) float64 { return falling(i) + by } }
	r := Of("run")
	told(t, r, map[int]string{0: printed(50, falling), 1: printed(50, off(0.01)), 2: printed(50, off(0.9)), 3: printed(50, off(-0.02))}, true)
	b := r.Of("loss")
	if b == nil || b.Count() != 4 || !strings.HasPrefix(names(b), "rank 2,rank 3") || b.Lost() {
		t.Fatalf("ranks %s", names(b))
	}
	if b.Median.N != 50 || math.Abs(b.Median.Value(10)-(5.0/11+0.005)) > 1e-5 || b.Low.Value(10) >= b.Median.Value(10) || math.Abs(b.High.Value(10)-5.0/11-0.9) > 1e-5 || b.Median.X(session.AxisStep, 10) != 100 {
		t.Errorf("%d places; at the tenth %v to %v, in the middle %v", b.Median.N, b.Low.Value(10), b.High.Value(10), b.Median.Value(10))
	}
	if got := r.Of("lr"); got != nil {
		t.Errorf("of a learning rate that all print alike, %d ranks differ", got.Count())
	}
}

func TestRanksThatAgreeAreOneLine(t *testing.T) {
	for name, logs := range map[string]map[int]string{
		"alike":             {0: printed(30, falling), 1: printed(30, falling)},
		"one prints":        {0: printed(30, falling), 1: "ready\n", 2: ""},
		"rounded":           {0: printed(30, falling), 1: printed(30, func(i int) float64 { return math.Round(falling(i)*1e4) / 1e4 })},
		"one stopped early": {0: printed(30, falling), 1: printed(7, falling)},
		"the launcher":      {-1: printed(30, func(int) float64 { return 7 }), 0: printed(30, falling)},
	} {
		r := Of("run")
		told(t, r, logs, true)
		if b := r.Of("loss"); b != nil {
			t.Errorf("%s: %s differ", name, names(b))
		}
	}
}

func TestARankWithoutANumberIsFarthest(t *testing.T) {
	r := Of("run")
	told(t, r, map[int]string{0: printed(31, falling), 1: printed(31, func(i int) float64 { return falling(i) * 1.5 }), 2: printed(30, falling) + "step 300: loss nan\n"}, true)
	b := r.Of("loss")
	if b == nil || !b.Lost() || !strings.HasPrefix(names(b), "rank 2") {
		t.Errorf("%s", names(b))
	}
	if v := b.Median.Value(30); math.IsNaN(v) {
		t.Error("the middle of two numbers and none is no number")
	}
}

// What one stream holds of several ranks is told apart by the labels of its lines,
// as torchrun's --tee, mpirun's -tag-output and srun's --label write them.
func TestRanksInOneLogAreToldApart(t *testing.T) {
	for form, label := range map[string]string{"[rank%d]: ": "rank 1", "[1,%d]<stdout>:": "rank 1", "[default%d]:": "rank 1", "(RayTrainWorker pid=22%d, ip=10.0.0.9) ": "RayTrainWorker pid=221, ip=10.0.0.9"} {
		var b strings.Builder
		for i := range 40 {
			for rank := range 3 {
				fmt.Fprintf(&b, form+"step %d: loss %.4f\n", rank, i, falling(i)+float64(rank%2))
			}
		}
		r := Of("run")
		told(t, r, map[int]string{0: b.String()}, true)
		if got := r.Of("loss"); got == nil || got.Count() != 3 || !strings.HasPrefix(names(got), label) {
			t.Errorf("%s: %s, want %s first", form, names(got), label)
		}
	}
}

// The real torchrun wrote this.
func TestRanksOfARealLauncher(t *testing.T) {
	for _, file := range []string{"torchrun-tee-pipe", "torchrun-tee-pty"} {
		text, err := os.ReadFile("../../metrics/testdata/corpus/" + file + ".log")
		if err != nil {
			t.Fatal(err)
		}
		r := Of("run")
		told(t, r, map[int]string{0: string(text)}, true)
		b := r.Of("loss")
		if b == nil || b.Count() != 2 || b.Median.N != 8 || b.Median.X(session.AxisStep, 7) != 16 {
			t.Fatalf("%s: %s", file, names(b))
		}
		if lo, hi := b.Low.Value(0), b.High.Value(0); lo != 1.0136 || hi != 1.0367 {
			t.Errorf("%s: at first from %v to %v", file, lo, hi)
		}
	}
}

func TestUnlabelledLinesAreNoRankBesideLabelledOnes(t *testing.T) {
	var b strings.Builder
	for i := range 20 {
		fmt.Fprintf(&b, "[rank0]: step %d: loss %.4f\n[rank1]: step %d: loss %.4f\nstep %d: loss 99\n", i, falling(i), i, falling(i), i)
	}
	r := Of("run")
	told(t, r, map[int]string{0: b.String()}, true)
	if got := r.Of("loss"); got != nil {
		t.Errorf("%s differ", names(got))
	}
}

// A live run: what a slower rank has not printed yet is waited for, but not for ever.
func TestAPlaceIsComparedWhenAllHavePrintedIt(t *testing.T) {
	fast := printed(100, falling)
	slow := printed(5, func(i int) float64 { return falling(i) + 1 })
	r := Of("run")
	told(t, r, map[int]string{0: printed(15, falling), 1: slow}, false)
	if b := r.Of("loss"); b == nil || b.Median.N != 5 {
		t.Fatalf("%+v", b)
	}
	told(t, r, map[int]string{0: fast, 1: slow}, false)
	if b := r.Of("loss"); b.Median.N < 50 || b.Median.N >= 100 {
		t.Errorf("%d places with a rank that hangs", b.Median.N)
	}
	told(t, r, map[int]string{0: fast, 1: slow + strings.Repeat("step 60: loss 9\n", 3)}, true)
	if b := r.Of("loss"); b.Median.N != 100 || b.High.Value(6) > 5 {
		t.Errorf("%d places; what came late changed one that was compared: %v", b.Median.N, b.High.Value(6))
	}
}

func TestARunThatGoesBackIsComparedAnew(t *testing.T) {
	one := printed(60, falling)
	r := Of("run")
	told(t, r, map[int]string{0: one, 1: printed(60, func(i int) float64 { return falling(i) + 1 })}, false)
	if b := r.Of("loss"); b == nil || b.Median.N != 60 {
		t.Fatal("no band before")
	}
	again := strings.Join(strings.SplitAfter(printed(80, falling), "\n")[30:], "")
	told(t, r, map[int]string{0: one + again, 1: printed(60, func(i int) float64 { return falling(i) + 1 }) + again}, true)
	b := r.Of("loss")
	if b == nil || b.Median.N != 80 || b.High.Value(20)-b.Low.Value(20) < 0.9 || b.High.Value(50) != b.Low.Value(50) {
		t.Errorf("%d places", b.Median.N)
	}
}

func TestOfALogOfDaysTheEndIsRead(t *testing.T) {
	long := printed(400_000, falling)
	r := Of("run")
	told(t, r, map[int]string{0: long, 1: strings.ReplaceAll(long, "loss 0.00", "loss 0.07")}, true)
	if b := r.Of("loss"); b == nil || b.Median.N < 50_000 || b.Median.N > 300_000 {
		t.Errorf("%+v", b)
	}
}

func TestALogThatCanNotBeReadStopsNothing(t *testing.T) {
	s := session.New(1, "c", time.Time{})
	s.State.Run = "run"
	s.State.LogSizes[0] = 100
	r := Of("run")
	for i := range 3 {
		cmd := r.Read(s, func(string, int, int64, []byte) (int, error) { return 0, errors.New("gone") })
		if cmd == nil {
			if i == 0 {
				t.Error("it was not tried")
			}
			return
		}
		r.Take(cmd().(Told))
	}
	t.Error("it is tried for ever")
}

// However the bytes are cut, the ranks are compared alike.
func TestCutsOfTheLogsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		logs := map[int]string{}
		for n := range rapid.IntRange(1, 4).Draw(t, "ranks") {
			var b strings.Builder
			for i := range rapid.IntRange(0, 40).Draw(t, "lines") {
				label := rapid.SampledFrom([]string{"", "[rank0]: ", "[rank1]: "}).Draw(t, "label")
				fmt.Fprintf(&b, "%sstep %d: loss %s\n", label, i, rapid.SampledFrom([]string{"1", "1.5", "nan", "0.25"}).Draw(t, "value"))
			}
			logs[n] = b.String()
		}
		whole, cut := Of("run"), Of("run")
		told(t, whole, logs, true)
		for part := 1; part <= 3; part++ {
			some := map[int]string{}
			for n, text := range logs {
				some[n] = text[:len(text)*part/3]
			}
			told(t, cut, some, part == 3)
			cut.Of("loss")
		}
		a, b := whole.Of("loss"), cut.Of("loss")
		if names(a) != names(b) {
			t.Fatalf("%s at once, %s in pieces", names(a), names(b))
		}
	})
}

func TestNamesThatWaitHaveAReason(t *testing.T) {
	var b strings.Builder
	for i := range 6 {
		fmt.Fprintf(&b, "step %d loss=%.4f knob=0.5\n", 10*i, falling(i))
	}
	r := Of("run")
	told(t, r, map[int]string{0: b.String() + "step 60 loss=0.1 once=0.7\n"}, true)
	got := map[string]Waiting{}
	for _, w := range r.Waiting() {
		got[w.Name] = w
	}
	if w := got["knob"]; !strings.Contains(w.Why, "0.5") || w.Curve.N == 0 {
		t.Errorf("knob: %+v", w)
	}
	if w := got["once"]; w.Why == "" || w.Curve.N != 1 {
		t.Errorf("once: %+v", w)
	}
	if _, is := got["loss"]; is {
		t.Error("a loss waits")
	}
}
