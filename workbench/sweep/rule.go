package sweep

import (
	"fmt"
	"math"
	"slices"
)

// Course is a trial as far as its metric goes.
type Course struct {
	Trial  int
	Values []float64 // in the order in which they came
	Over   bool      // it has ended
}

// better reports whether one value is better than another. What is no number is
// worse than any.
func better(mode string, a, b float64) bool {
	switch {
	case math.IsNaN(a):
		return false
	case math.IsNaN(b):
		return true
	case mode == "max":
		return a > b
	}
	return a < b
}

// bestOf is the best of some values; NaN for none.
func bestOf(mode string, values []float64) float64 {
	best := math.NaN()
	for _, v := range values {
		if better(mode, v, best) {
			best = v
		}
	}
	return best
}

// Losers are the trials to end early, each with the reason.
func Losers(rule, mode string, warmup int, all []Course) map[int]string {
	losers := map[int]string{}
	for _, c := range all {
		if c.Over || len(c.Values) < warmup {
			continue
		}
		why := ""
		switch rule {
		case "median":
			why = belowMedian(mode, warmup, c, all)
		case "halving":
			why = halved(mode, warmup, c, all)
		}
		if why != "" {
			losers[c.Trial] = why
		}
	}
	return losers
}

// least is how many trials there must be at a point for a comparison.
const least = 3

// belowMedian says why a trial falls behind the others that came as far as it has;
// empty where it does not.
func belowMedian(mode string, warmup int, c Course, all []Course) string {
	n := common(c, all)
	if n < warmup {
		return ""
	}
	var others []float64
	for _, o := range all {
		if o.Trial != c.Trial && len(o.Values) >= n {
			others = append(others, bestOf(mode, o.Values[:n]))
		}
	}
	slices.SortFunc(others, func(a, b float64) int { return order(mode, a, b) })
	middle := others[len(others)/2]
	if best := bestOf(mode, c.Values[:n]); better(mode, middle, best) {
		return fmt.Sprintf("its best of %d values, %s, is behind the median of the others, %s", n, text(best), text(middle))
	}
	return ""
}

// common is the last number of values that a trial and enough of the others have
// reached; 0: there are too few others.
func common(c Course, all []Course) int {
	var reached []int
	for _, o := range all {
		if o.Trial != c.Trial {
			reached = append(reached, len(o.Values))
		}
	}
	if len(reached) < least {
		return 0
	}
	slices.Sort(reached)
	return min(len(c.Values), reached[len(reached)-least])
}

// halved says why a trial is not in the better half at the last rung that it has
// reached: warmup values, and each doubling of it.
func halved(mode string, warmup int, c Course, all []Course) string {
	rung := warmup
	for rung*2 <= len(c.Values) {
		rung *= 2
	}
	own := bestOf(mode, c.Values[:rung])
	reached, ahead := 0, 0
	for _, o := range all {
		if len(o.Values) < rung {
			continue
		}
		reached++
		if o.Trial != c.Trial && better(mode, bestOf(mode, o.Values[:rung]), own) {
			ahead++
		}
	}
	if reached > least && ahead >= (reached+1)/2 {
		return fmt.Sprintf("at %d values %d of %d trials are ahead of it", rung, ahead, reached)
	}
	return ""
}

// order sorts values, the best first.
func order(mode string, a, b float64) int {
	switch {
	case better(mode, a, b):
		return -1
	case better(mode, b, a):
		return 1
	}
	return 0
}
