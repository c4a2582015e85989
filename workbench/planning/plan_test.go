package planning

import (
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

func TestEveryIdleKeyIsAKey(t *testing.T) {
	known := map[string]bool{}
	for _, f := range profiles.Fields {
		known[f.Key] = true
	}
	for _, k := range idleKeys {
		if !known[k.key] {
			t.Errorf("profiles have no key %s", k.key)
		}
	}
}
