package ecs

import (
	"context"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
)

// What AWS has made and named may still not be shown a moment later: not seen is no
// proof before the settle window is over.
func TestWhatIsTooNewToBeShownIsNotTakenForGone(t *testing.T) {
	const kindUnseen = "unseen"
	finders[kindUnseen] = func(context.Context, *door, string) (string, error) { return "", nil }
	const settle = 700 * time.Millisecond
	t.Setenv("DLWB_SETTLE", settle.String())
	t.Cleanup(func() { delete(finders, kindUnseen) })
	for _, id := range []string{"", "sg-1"} {
		e := cloud.Entry{Kind: kindUnseen, ID: id, IntentAt: time.Now()}
		one := &teardown{door: &door{}, e: &e, progress: func(int, string) {}}
		gone, err := one.gone(t.Context())
		if waited := time.Since(e.IntentAt); err != nil || !gone || waited < settle {
			t.Errorf("id %q: gone is %v after %v, %v", id, gone, waited, err)
		}
	}
}

// The clock of this machine was set back while the machines ran.
func TestNoMachineGivesMoneyBack(t *testing.T) {
	began := time.Now().Add(10 * time.Hour)
	closed := began.Add(-5 * time.Hour)
	for _, e := range []cloud.Entry{{IntentAt: began}, {IntentAt: began, ClosedAt: &closed}} {
		d := &teardown{e: &e, d: detail{PerHour: 4}}
		if d.addMachines([]string{"i-1"}, cloud.Gone, "seen"); d.found[0].Cost != 0 || d.found[0].Lived != 0 {
			t.Errorf("%+v", d.found)
		}
	}
}
