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

	"github.com/dlwb/dlwb/metrics"
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

// Of many ranks some are read later than others: none is left out for that.
func TestAllRanksAreReadBeforeTheyAreCompared(t *testing.T) {
	logs := map[int]string{}
	for n := range 40 {
		by := 0.0
		if n == 33 {
			by = 1
		}
		logs[n] = printed(4000, func(i int) float64 { return falling(i) + by })
	}
	r := Of("run")
	s := session.New(1, "c", time.Time{})
	s.State.Run = "run"
	for n, text := range logs {
		s.State.LogSizes[n] = int64(len(text))
	}
	for range 1000 {
		cmd := r.Read(s, func(_ string, log int, off int64, p []byte) (int, error) { return copy(p, logs[log][off:]), nil })
		if cmd == nil {
			break
		}
		r.Take(cmd().(Told))
		r.Of("loss") // as the screen does meanwhile
	}
	b := r.Of("loss")
	if b == nil || !strings.HasPrefix(names(b), "rank 33") || b.Median.N != 4000 || b.High.Value(3000)-b.Low.Value(3000) < 0.9 {
		t.Errorf("ranks %s", names(b))
	}
}

// A log of which the middle is left out counts its steps as one that is read whole.
func TestStepsOfEpochsAreThoseOfTheRunBehindAGap(t *testing.T) {
	log := func(noise string) string {
		var b strings.Builder
		for epoch := range 90 {
			for i := range 200 {
				fmt.Fprintf(&b, "Epoch: [%d][%3d/200] loss %.6f\n%s", epoch, i, falling(200*epoch+i), noise)
			}
		}
		return b.String()
	}
	r := Of("run")
	told(t, r, map[int]string{0: log(""), 1: log(strings.Repeat("x", 700) + "\n")}, true)
	if b := r.Of("loss"); b != nil {
		t.Errorf("%s differ", names(b))
	}
	if c := r.voices[[2]int{1, -1}].curves["loss"]; c.N > 10_000 || c.X(session.AxisStep, c.N-1) != 90*200-1 {
		t.Errorf("%d points to step %v", c.N, c.X(session.AxisStep, c.N-1))
	}
}

// Values that change their sign are as large near zero as elsewhere.
func TestNearZeroValuesDifferByTheirUsualSize(t *testing.T) {
	wave := func(by float64) func(int) float64 {
		return func(i int) float64 { return 100*math.Cos(float64(i)*math.Pi/20) + by }
	}
	r := Of("run")
	told(t, r, map[int]string{0: printed(200, wave(0)), 1: printed(200, wave(0.001))}, true)
	if b := r.Of("loss"); b != nil {
		t.Errorf("%s differ by a hundred thousandth", names(b))
	}
	r = Of("run")
	told(t, r, map[int]string{0: printed(200, wave(0)), 1: printed(200, wave(3))}, true)
	if b := r.Of("loss"); b == nil {
		t.Error("none differ")
	}
}

// A launcher says what the ranks' own logs say: that is no rank more. Ranks of two
// nodes that are called alike are two.
func TestARankThatIsToldTwiceIsOne(t *testing.T) {
	off := func(i int) float64 { return falling(i) + 1 }
	labelled := func(form string, n int) string {
		return form + strings.ReplaceAll(strings.TrimSuffix(printed(30, off), "\n"), "\n", "\n"+form) + "\n"
	}
	r := Of("run")
	told(t, r, map[int]string{0: printed(30, falling), 1: printed(30, off), 2: labelled("[rank1]: ", 30)}, true)
	if b := r.Of("loss"); b == nil || b.Count() != 2 {
		t.Errorf("%s", names(b))
	}
	r = Of("run")
	told(t, r, map[int]string{0: strings.ReplaceAll(labelled("[default0]:", 30), "loss 1.", "loss 2."), 1: labelled("[default0]:", 30)}, true)
	if b := r.Of("loss"); b == nil || b.Count() != 2 || names(b) != "rank 0,rank 0 of log 1" {
		t.Errorf("%s", names(b))
	}
}

func TestRanksAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 3 * mostVoices {
		fmt.Fprintf(&b, "[rank%d]: step 1: loss 2.5\n[rank%d]: step 2: loss 1.5\n", i, i)
	}
	r := Of("run")
	told(t, r, map[int]string{0: b.String(), 1: b.String()}, true)
	readers := 0
	for _, s := range r.streams {
		readers += len(s.by)
	}
	if len(r.voices) > mostVoices || readers > mostVoices || len(r.order) != len(r.voices) {
		t.Errorf("%d ranks with %d readers", len(r.voices), readers)
	}
	r.curves = mostCurves - 3
	r.Take(Told{run: "run", said: []said{{0, 5000, "x", manyNames()}, {0, 0, "x", manyNames()}}})
	if r.curves > mostCurves {
		t.Errorf("%d curves", r.curves)
	}
}

// manyNames are points of ten series.
func manyNames() (points []metrics.Point) {
	for i := range 10 {
		points = append(points, metrics.Point{Name: fmt.Sprint("loss_", i), Value: 1})
	}
	return points
}

// What stops for its bound says so.
func TestRanksThatPrintTooMuchAreToldAsNotCompared(t *testing.T) {
	r := Of("run")
	r.points = mostPoints - 1
	if r.Full() {
		t.Error("full before")
	}
	told(t, r, map[int]string{0: printed(5, falling)}, true)
	if !r.Full() {
		t.Error("nothing says that the ranks are not compared any more")
	}
}
