package cloud

import "time"

// Bound is the limit that ends paid machines at the latest.
type Bound struct {
	Limit string        // "budget" or "lifetime"; empty when nothing ends them
	After time.Duration // of their start
	Cost  float64       // what they may have cost by then, in US dollars
}

// longest is about as long as a time.Duration can be: 290 years.
const longest = 290 * 365 * 24 * float64(time.Hour)

// LatestEnd is the limit that paid machines reach first when they cost the
// highest price they may: the time that the budget pays for, or the lifetime.
// A limit of 0 is none. At a lower price a budget lasts longer, up to the
// lifetime.
func LatestEnd(budget float64, lifetime time.Duration, mostPerHour float64) Bound {
	byTime := Bound{"lifetime", lifetime, mostPerHour * lifetime.Hours()}
	if budget <= 0 || mostPerHour <= 0 {
		if lifetime <= 0 {
			return Bound{}
		}
		return byTime
	}
	paid := time.Duration(min(budget/mostPerHour*float64(time.Hour), longest))
	if lifetime > 0 && lifetime <= paid {
		return byTime
	}
	return Bound{"budget", paid, budget}
}
