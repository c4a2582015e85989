//go:build unix

package local

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// On a machine that is busy enough a look at all processes takes longer than what was
// killed is given: that alone is no reason to call it left.
func TestWhatIsKilledIsLookedForAgainBeforeItCountsAsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		looks int // that find something; below 0: all
		want  error
	}{"it ends": {4, nil}, "it never ends": {-1, errLeft}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looks := 0
				_, err := end(t.Context(), func() ([]process, error) {
					time.Sleep(2 * killLimit)
					if looks++; c.looks >= 0 && looks > c.looks {
						return nil, nil
					}
					return []process{{pid: 1 << 30, start: "never"}}, nil
				}, grace)
				if !errors.Is(err, c.want) {
					t.Errorf("after %d looks: %v", looks, err)
				}
			})
		})
	}
}
