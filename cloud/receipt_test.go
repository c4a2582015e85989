package cloud

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReceiptsKeepTheirLifetimes(t *testing.T) {
	r := Receipt{Cluster: "c", Provider: "ec2", Lived: 90 * time.Second, Cost: 1.5,
		Resources: []Resource{{Kind: "instance", ID: "i-1", Node: "node0", State: Gone, Proof: "seen", Lived: 1500 * time.Millisecond, Cost: 1.5}}}
	b, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(b), `"lived_s":1.5`) || !strings.Contains(string(b), `"lived_s":90`) {
		t.Fatalf("%s, %v", b, err)
	}
	var again Receipt
	if err := json.Unmarshal(b, &again); err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("%+v is %+v again, %v", r, again, err)
	}
}

func TestNothingLivedLessThanNoTime(t *testing.T) {
	at := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		from, to time.Time
		want     time.Duration
	}{
		"an hour":                           {at, at.Add(time.Hour), time.Hour},
		"the clock was set back":            {at, at.Add(-10 * time.Hour), 0},
		"it is not known when it began":     {time.Time{}, at, 0},
		"it is not known when it was ended": {at, time.Time{}, 0},
	} {
		if got := Lived(c.from, c.to); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
