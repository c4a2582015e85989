package ec2

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// A clean region is looked at less and less often, and once more when the settle
// window ends; whatever shows up is waited for at the usual pace again.
func TestACleanRegionIsLookedAtLessAndLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sweep{p: &Provider{settle: 2 * time.Minute}, known: map[string]*trace{}, looks: 1, news: time.Now()}
		began, last := time.Now(), time.Duration(0)
		looks := 0
		for ; time.Since(began) < s.p.settle; looks++ {
			rest := s.rest()
			if left := s.p.settle - time.Since(began); rest <= 0 || rest < last && rest != left {
				t.Fatalf("look %d, %v before the end: a pause of %v after one of %v", looks, left, rest, last)
			}
			last = rest
			time.Sleep(rest)
		}
		if took := time.Since(began); took != s.p.settle || looks < 8 || looks > 14 {
			t.Errorf("%d looks in %v", looks, took)
		}
		s.known["late"] = &trace{thing: thing{kind: kindInstance, id: "i-1"}, look: s.looks}
		if rest := s.rest(); rest != s.p.poll() {
			t.Errorf("a pause of %v while a machine is there", rest)
		}
		delete(s.known, "late")
		s.news = time.Now()
		if rest := s.rest(); rest != s.p.poll() {
			t.Errorf("a first pause of %v", rest)
		}
	})
}

// AWS does not always say when a machine has shut itself down. Looked at four
// minutes after a lease of 80 s it has not cost four minutes.
func TestAMachineThatItsLeaseEndedCostsNothingAfterIt(t *testing.T) {
	made := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	ends, looked := made.Add(80*time.Second), made.Add(244*time.Second)
	s := &sweep{life: cloud.Life{Ends: ends}}
	for name, c := range map[string]struct {
		t    trace
		want time.Time
	}{
		"nobody asked for its end":       {trace{last: looked}, ends},
		"AWS says when":                  {trace{last: looked, thing: thing{ended: made.Add(70 * time.Second)}}, made.Add(70 * time.Second)},
		"it was up until we asked":       {trace{last: looked, asked: made.Add(200 * time.Second)}, looked},
		"it ended before its lease ends": {trace{last: made.Add(time.Minute)}, made.Add(time.Minute)},
	} {
		if got := s.endOf(&c.t); !got.Equal(c.want) {
			t.Errorf("%s: it ended %s, want %s", name, got, c.want)
		}
	}
}
