package slurm

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/slurm/options"
)

// The shorter of machines.time and a lifetime that the profile itself has becomes
// --time, and only one that a partition gives is asked for.
func TestTheLifetimeOfAProfileBecomesTheTimeLimitOfItsJob(t *testing.T) {
	hour := partition{name: "gpu", most: time.Hour}
	usual := partition{name: "gpu", most: 100 * time.Hour, usual: 30 * time.Minute}
	none := partition{name: "gpu"}
	for _, c := range []struct {
		name           string
		time           string
		lifetime       time.Duration
		asked          bool
		part           partition
		want, key, bad string
	}{
		{name: "neither is given", lifetime: 24 * time.Hour, part: hour},
		{name: "the partition has an own default", lifetime: 24 * time.Hour, part: usual},
		{name: "nothing would end it", lifetime: 24 * time.Hour, part: none, want: "1-00:00:00"},
		{name: "a lifetime", lifetime: 20 * time.Minute, asked: true, part: hour, want: "0-00:20:00", key: "limits.lifetime"},
		{name: "a lifetime above an own default", lifetime: 2 * time.Hour, asked: true, part: usual, want: "0-02:00:00", key: "limits.lifetime"},
		{name: "the time is shorter", time: "10m", lifetime: 20 * time.Minute, asked: true, part: hour, want: "0-00:10:00", key: "machines.time"},
		{name: "the lifetime is shorter", time: "1-00", lifetime: 20 * time.Minute, asked: true, part: hour, want: "0-00:20:00", key: "limits.lifetime"},
		{name: "too long", lifetime: 2 * time.Hour, asked: true, part: hour, want: "0-02:00:00", bad: "limits.lifetime is 2h, and partition gpu gives 1h at most"},
		{name: "too long a time", time: "2h", lifetime: 24 * time.Hour, part: hour, want: "0-02:00:00", bad: "machines.time is 2h, and partition gpu gives 1h at most"},
	} {
		own := &options.Machines{Time: c.time}
		spec := cloud.Spec{Count: 1, Own: own, Lifetime: c.lifetime, LifetimeAsked: c.asked}
		if o := orderOf(cloud.Job{Spec: spec}, "", "", "").endless(spec, c.part); o.time != c.want {
			t.Errorf("%s: --time=%s, not %s", c.name, o.time, c.want)
		}
		f := (&cluster{}).time(spec, *own, c.part)
		if f.OK != (c.bad == "") || !strings.Contains(f.Text, c.bad) || f.OK && !strings.Contains(f.Text, c.key) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
