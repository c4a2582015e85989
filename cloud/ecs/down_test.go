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
