package metrics

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dlwb/dlwb/metrics/order"
)

// model keeps the points of a series as plainly as it can: what is tellings of it
// is what thinning, in whatever order the points come, must not change.
type model struct {
	order  order.Order[Point]
	points []Point
}

func (m *model) Len() int { return len(m.points) }
func (m *model) Place(i int) (float64, uint8) {
	return float64(*m.points[i].Step), uint8(m.points[i].X)
}
func (m *model) Cut(n int)    { m.points = m.points[:n] }
func (m *model) Push(p Point) { m.points = append(m.points, p) }
func (m *model) Insert(i int, p Point) {
	m.points = append(m.points[:i], append([]Point{p}, m.points[i:]...)...)
}

// tellings are x and y of the last, the lowest and the highest value.
type tellings struct{ last, low, high [2]float64 }

func toldOf(n int, at func(int) [2]float64) tellings {
	var t tellings
	some := false
	for i := range n {
		p := at(i)
		t.last = p
		if notNumber(p[1]) {
			continue
		}
		if !some || p[1] < t.low[1] {
			t.low = p
		}
		if !some || p[1] > t.high[1] {
			t.high = p
		}
		some = true
	}
	if t.last[1] != t.last[1] {
		t.last[1] = -1e9 // NaN is itself here
	}
	return t
}

// wander is the steps of a run that resumes, begins anew and has late lines,
// each at a step of its own: of one that comes again it can't be said, when the
// first is not kept, that there was one.
func wander(r *rand.Rand, n int) []int64 {
	var steps []int64
	late := map[int64]bool{}
	calm := 0 // steps since something odd
	for at := int64(100); len(steps) < n; at += 10 {
		calm++
		switch odd := r.IntN(n); {
		case calm < 3 || at < 300:
		case odd < 8: // resumed
			at, calm = at-10*r.Int64N((at-200)/10), 0
		case odd < 9:
			at, calm = 100, 0
		case odd < n/40: // one late, between two others, and then on
			if one := 105 + 10*r.Int64N((at-200)/10); !late[one] {
				steps, late[one], calm = append(steps, one), true, 0
			}
		}
		steps = append(steps, at)
	}
	return steps
}

// However few points are kept and wherever a run resumes, the last, the lowest
// and the highest are those of the whole.
func TestThinningAndResumesTellTheSame(t *testing.T) {
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		set := Set{most: 2000 + r.IntN(3000)}
		want := map[string]*model{"loss": {}, "val/loss": {}}
		steps := wander(r, 3000+r.IntN(20_000))
		down := float64(r.IntN(3))
		for i, step := range steps {
			for name, m := range want {
				if name != "loss" && step%500 != 0 {
					continue
				}
				p := stepped(name, step, 5*math.Exp(-down*float64(step)/1e5)+r.NormFloat64())
				if r.IntN(50) == 0 {
					p.Value = []float64{math.NaN(), math.Inf(1)}[i%2]
				}
				set.Add(p)
				m.order.Add(m, p, float64(step), uint8(p.X))
			}
		}
		for _, s := range set.Series {
			m := want[s.Name]
			got := toldOf(s.Len(), func(i int) [2]float64 { return s.Point(i, AxisStep) })
			if all := toldOf(len(m.points), func(i int) [2]float64 { return [2]float64{float64(*m.points[i].Step), m.points[i].Value} }); got != all {
				t.Fatalf("seed %d: %s: of %d points %d are kept (one of %d): last, lowest, highest are\n%v, want\n%v", seed, s.Name, len(m.points), s.Len(), s.Every(), got, all)
			}
			if s.Name == "val/loss" && s.Every() != 1 {
				t.Errorf("seed %d: %s is thinned", seed, s.Name)
			}
		}
		if kept := set.points(); kept > set.most {
			t.Errorf("seed %d: %d points of at most %d are kept", seed, kept, set.most)
		}
	}
}

// A series that only falls is thinned all the same: all its points are records.
func TestWhatOnlyFallsIsThinned(t *testing.T) {
	set := Set{most: 20_000}
	for i := range int64(400_000) {
		set.Add(stepped("lr", i, 1-float64(i)/400_000))
	}
	s := set.Series[0]
	if s.Len() > 20_000 || s.Point(0, AxisStep) != [2]float64{0, 1} || s.Point(s.Len()-1, AxisStep)[0] != 399_999 {
		t.Errorf("%d points from %v to %v", s.Len(), s.Point(0, AxisStep), s.Point(s.Len()-1, AxisStep))
	}
}
