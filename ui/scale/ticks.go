package scale

import (
	"math"
	"strconv"
)

// Tick is one labelled place of an axis.
type Tick struct {
	At   float64
	Text string
}

// Ticks are at most about count round places from lo to hi.
func Ticks(lo, hi float64, count int) []Tick {
	return apart((hi-lo)/float64(max(count, 1)), lo, hi)
}

// apart are round places from lo to hi, no nearer to each other than raw.
func apart(raw, lo, hi float64) []Tick {
	step := niceStep(raw, lo, hi)
	if step == 0 {
		return []Tick{{lo, Short(lo)}, {hi, Short(hi)}}
	}
	var out []Tick
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9 && len(out) < 100; i++ {
		v := i * step
		out = append(out, Tick{v, axisNumber(v, step, max(math.Abs(lo), math.Abs(hi)))})
	}
	return out
}

// niceStep is the least of 1, 2, 5 times a power of ten that is not below raw,
// or 0 where floating point can't tell the steps apart.
func niceStep(raw, lo, hi float64) float64 {
	if raw <= 0 || !isFinite(raw) || raw < 1e-290 {
		return 0
	}
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * power
	for _, m := range []float64{1, 2, 5} {
		if m*power >= raw*(1-1e-9) {
			step = m * power
			break
		}
	}
	if !isFinite(step) || step < 1e-12*max(math.Abs(lo), math.Abs(hi)) {
		return 0
	}
	return step
}

// axisNumber writes v with the digits that tell it from its neighbours.
func axisNumber(v, step, largest float64) string {
	if math.Abs(v) < step/2 {
		return "0"
	}
	places := -int(math.Floor(math.Log10(step) + 1e-9))
	switch {
	case largest >= 1e15 || places > 6 || largest < 1e-3:
		return exponent(v, 1+max(0, int(math.Floor(math.Log10(math.Abs(v))+1e-9))+places))
	case largest >= 1e4 && step >= 10:
		return suffixed(v, 1+max(0, int(math.Floor(math.Log10(math.Abs(v))+1e-9))+places))
	}
	return strconv.FormatFloat(v, 'f', max(0, places), 64)
}

// LogTicks are powers of ten, or with few of them also twice and five times.
// lo and hi are logarithms.
func LogTicks(lo, hi float64, count int) []Tick {
	decades := math.Floor(hi) - math.Ceil(lo) + 1
	if decades < 2 {
		return linearOnLog(lo, hi, count)
	}
	stride := math.Ceil(decades / float64(max(count, 1)))
	var out []Tick
	for e := math.Ceil(lo); e <= hi && len(out) < 100; e += stride {
		out = append(out, Tick{e, Short(math.Pow(10, e))})
	}
	return out
}

// linearOnLog labels a log axis that spans less than two decades.
func linearOnLog(lo, hi float64, count int) []Tick {
	var out []Tick
	for e := math.Floor(lo); e <= hi; e++ {
		for _, m := range []float64{1, 2, 5} {
			if at := e + math.Log10(m); at >= lo && at <= hi {
				out = append(out, Tick{at, Short(m * math.Pow(10, e))})
			}
		}
	}
	if len(out) < 2 {
		out = []Tick{{lo, Short(math.Pow(10, lo))}, {hi, Short(math.Pow(10, hi))}}
	}
	if len(out) > count && count > 0 {
		out = []Tick{out[0], out[len(out)-1]}
	}
	return out
}

// clockSteps are the steps at which a clock is read, in seconds.
var clockSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800}

// ClockTicks are places at whole seconds, minutes, hours or days.
func ClockTicks(lo, hi float64, count int) []Tick {
	raw := (hi - lo) / float64(max(count, 1))
	for _, step := range clockSteps {
		if step < 0.7*raw || raw < 0.5 {
			continue
		}
		var out []Tick
		for at := math.Ceil(lo/step-1e-9) * step; at <= hi+step*1e-9 && len(out) < 100; at += step {
			out = append(out, Tick{at + 0, Short(at)})
		}
		return out
	}
	return Ticks(lo, hi, count)
}

// WholeTicks are at most about count whole places, where there is more than one
// from lo to hi: there is no half epoch between two that were told.
func WholeTicks(lo, hi float64, count int) []Tick {
	raw := (hi - lo) / float64(max(count, 1))
	if math.Floor(hi)-math.Ceil(lo) >= 1 {
		raw = max(raw, 1)
	}
	return apart(raw, lo, hi)
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
