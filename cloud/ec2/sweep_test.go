package ec2

import (
	"testing"
	"testing/synctest"
	"time"
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
