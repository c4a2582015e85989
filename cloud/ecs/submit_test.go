package ecs

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/rayjobs"
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

// A job whose answer nobody saw is waited for as long as it may come, and no longer.
func TestAJobThatWasAskedForIsWaitedFor(t *testing.T) {
	var looks, from atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if looks.Add(1) < from.Load() {
			http.Error(w, "Job dlwb-run does not exist", http.StatusNotFound)
			return
		}
		fmt.Fprint(w, `{"submission_id":"dlwb-run","status":"PENDING"}`)
	}))
	defer server.Close()
	g := &gate{}
	g.Client = rayjobs.New(func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}, func() (string, error) { return "", nil })
	for name, c := range map[string]struct {
		late  int32
		asked time.Duration
		there bool
		told  int
	}{
		"it comes late":      {2, 0, true, 1},
		"it is there":        {1, 0, true, 0},
		"it can't come":      {3, -2 * comesLimit, false, 0},
		"it came long since": {1, -2 * comesLimit, true, 0},
	} {
		looks.Store(0)
		from.Store(c.late)
		var told []string
		there, err := g.await(t.Context(), "dlwb-run", time.Now().Add(c.asked), func(_ int, text string) { told = append(told, text) })
		if err != nil || there != c.there || len(told) != c.told || c.told > 0 && !strings.Contains(told[0], "may still come") {
			t.Errorf("%s: %v %v %q", name, there, err, told)
		}
	}
}
