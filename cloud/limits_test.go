package cloud

import (
	"errors"
	"testing"
	"time"
)

func TestTheLimitThatIsReachedFirstEndsMachines(t *testing.T) {
	for name, c := range map[string]struct {
		budget   float64
		lifetime time.Duration
		most     float64
		want     Bound
	}{
		"no limit":                                          {0, 0, 2, Bound{}},
		"no limit, no price":                                {0, 0, 0, Bound{}},
		"a lifetime alone":                                  {0, 3 * time.Hour, 2, Bound{"lifetime", 3 * time.Hour, 6}},
		"a lifetime of machines without a price":            {0, 3 * time.Hour, 0, Bound{"lifetime", 3 * time.Hour, 0}},
		"a budget alone":                                    {6, 0, 2, Bound{"budget", 3 * time.Hour, 6}},
		"a budget of machines without a price":              {6, 0, 0, Bound{}},
		"a lifetime, and a budget without a price":          {6, time.Hour, 0, Bound{"lifetime", time.Hour, 0}},
		"the budget is reached first":                       {1, 3 * time.Hour, 2, Bound{"budget", 30 * time.Minute, 1}},
		"the lifetime is reached first":                     {100, 3 * time.Hour, 2, Bound{"lifetime", 3 * time.Hour, 6}},
		"both at once":                                      {6, 3 * time.Hour, 2, Bound{"lifetime", 3 * time.Hour, 6}},
		"a budget below nothing is none":                    {-1, time.Hour, 2, Bound{"lifetime", time.Hour, 2}},
		"a lifetime below nothing is none":                  {0, -time.Hour, 2, Bound{}},
		"a budget that pays for more than there is of time": {1e15, 0, 0.0001, Bound{"budget", time.Duration(longest), 1e15}},
	} {
		if got := LatestEnd(c.budget, c.lifetime, c.most); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// The budget pays for the machines and for the time that they are kept behind it.
func TestTheBudgetPaysForMachinesThatAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		budget float64
		keep   time.Duration
		want   time.Duration // 0: it is refused
	}{
		"no budget":       {0, time.Hour, 12 * time.Hour},
		"the job alone":   {2, 0, 2 * time.Hour},
		"and its pool":    {2, 30 * time.Minute, 90 * time.Minute},
		"the pool alone":  {0.5, 30 * time.Minute, 0},
		"a minute":        {1.0 / 60, 0, time.Minute},
		"half of one":     {0.5 / 60, 0, 0},
		"more than asked": {99, time.Hour, 12 * time.Hour},
	} {
		got, err := PaidFor(Spec{Lifetime: 12 * time.Hour, Budget: c.budget}, 1, c.keep, 28*24*time.Hour)
		unpaid := new(Unpaid)
		if (c.want == 0) != errors.As(err, &unpaid) || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
