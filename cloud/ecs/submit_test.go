package ecs

import (
	"testing"

	"github.com/dlwb/dlwb/cloud"
)

// Where the price of one part is not known, that of the other is not what the job
// costs.
func TestAPartWithoutAPriceLeavesTheCostUnknown(t *testing.T) {
	for _, c := range []struct{ head, worker, want float64 }{{0.25, 8, 32.25}, {0.25, 0, 0}, {0, 8, 0}} {
		m := &maker{door: &door{region: "us-east-1"}, life: cloud.Life{Name: "c", ID: "l"}, spec: cloud.Spec{Count: 4}, prices: map[string]float64{head: c.head, worker: c.worker}}
		s := m.ref(cloud.Job{Run: "run", Spec: m.spec}).submitted()
		if s.PricePerHour != c.want || (len(s.Costs) > 0) != (c.want > 0) {
			t.Errorf("%+v: %v an hour, %+v", c, s.PricePerHour, s.Costs)
		}
	}
}
