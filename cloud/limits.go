package cloud

import (
	"fmt"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

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

// dayOfPay is the lifetime of paid machines that end by themselves where the profile has
// none.
const dayOfPay = 24 * time.Hour

// leastPaid is the least time that is worth a start: no machine is ready in less.
const leastPaid = time.Minute

// PaidFor is how long machines may be there that end by themselves: their lifetime, or
// what the budget pays for with the time for which they are kept behind that. most is what
// the service takes; perHour is what all of them cost, 0 where that is not known.
func PaidFor(spec Spec, perHour float64, kept, most time.Duration) (time.Duration, error) {
	limit := spec.Lifetime
	if limit <= 0 {
		limit = dayOfPay
	}
	if spec.Budget > 0 {
		if perHour <= 0 {
			return 0, &advisedError{fmt.Sprintf("limits.budget can't be held: the price of %s is not known", spec.Instance),
				"leave limits.budget out and set limits.lifetime; or let dlwb read the price list (pricing:GetProducts)"}
		}
		paid := LatestEnd(spec.Budget, limit+kept, perHour).After - kept
		if paid < leastPaid {
			return 0, unpaid(spec.Budget, perHour, kept)
		}
		limit = min(limit, paid)
	}
	if limit > most {
		return 0, &advisedError{fmt.Sprintf("limits.lifetime is %s, and this provider gives %s at most", units.Duration(limit), units.Duration(most)), "limits.lifetime: " + units.Duration(most)}
	}
	return max(limit.Truncate(time.Second), leastPaid), nil
}

func unpaid(budget, perHour float64, kept time.Duration) error {
	text := fmt.Sprintf("limits.budget: %s pays for less than a minute at %s", units.USD(budget), units.PerHour(perHour))
	if kept > 0 {
		text += ", and the " + units.Duration(kept) + " for which the machines are kept behind it"
	}
	return &Unpaid{&advisedError{text, "raise limits.budget"}}
}

// advisedError is what is wrong, with what to do about it.
type advisedError struct{ text, next string }

func (e *advisedError) Error() string { return e.text }

// Advice says what to do.
func (e *advisedError) Advice() string { return e.next }
