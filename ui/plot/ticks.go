package plot

import (
	"math"
	"strconv"
)

// tick is one labelled place of an axis.
type tick struct {
	at   float64
	text string
}

// ticks are at most about count round places from lo to hi.
func ticks(lo, hi float64, count int) []tick {
	step := niceStep((hi-lo)/float64(max(count, 1)), lo, hi)
	if step == 0 {
		return []tick{{lo, Short(lo)}, {hi, Short(hi)}}
	}
	var out []tick
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9 && len(out) < 100; i++ {
		v := i * step
		out = append(out, tick{v, axisNumber(v, step, max(math.Abs(lo), math.Abs(hi)))})
	}
	return out
}

// niceStep is the least of 1, 2, 5 times a power of ten that is not below raw,
// or 0 where floating point can't tell the steps apart.
func niceStep(raw, lo, hi float64) float64 {
	if raw <= 0 || !finite(raw) || raw < 1e-290 {
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
	if !finite(step) || step < 1e-12*max(math.Abs(lo), math.Abs(hi)) {
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

// logTicks are powers of ten, or with few of them also twice and five times.
// lo and hi are logarithms.
func logTicks(lo, hi float64, count int) []tick {
	decades := math.Floor(hi) - math.Ceil(lo) + 1
	if decades < 2 {
		return linearOnLog(lo, hi, count)
	}
	stride := math.Ceil(decades / float64(max(count, 1)))
	var out []tick
	for e := math.Ceil(lo); e <= hi && len(out) < 100; e += stride {
		out = append(out, tick{e, Short(math.Pow(10, e))})
	}
	return out
}

// linearOnLog labels a log axis that spans less than two decades.
func linearOnLog(lo, hi float64, count int) []tick {
	var out []tick
	for e := math.Floor(lo); e <= hi; e++ {
		for _, m := range []float64{1, 2, 5} {
			if at := e + math.Log10(m); at >= lo && at <= hi {
				out = append(out, tick{at, Short(m * math.Pow(10, e))})
			}
		}
	}
	if len(out) < 2 {
		out = []tick{{lo, Short(math.Pow(10, lo))}, {hi, Short(math.Pow(10, hi))}}
	}
	if len(out) > count && count > 0 {
		out = []tick{out[0], out[len(out)-1]}
	}
	return out
}

// clockSteps are the steps at which a clock is read, in seconds.
var clockSteps = []float64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800}

// clockTicks are places at whole seconds, minutes, hours or days.
func clockTicks(lo, hi float64, count int) []tick {
	raw := (hi - lo) / float64(max(count, 1))
	for _, step := range clockSteps {
		if step < 0.7*raw || raw < 0.5 {
			continue
		}
		var out []tick
		for at := math.Ceil(lo/step-1e-9) * step; at <= hi+step*1e-9 && len(out) < 100; at += step {
			out = append(out, tick{at + 0, Short(at)})
		}
		return out
	}
	return ticks(lo, hi, count)
}
