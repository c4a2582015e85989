package planning

import (
	"slices"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

func TestTheDirectoriesThatARunWritesToAreKnownBeforeItBegins(t *testing.T) {
	p := &profiles.Profile{}
	p.Results.Paths = []string{"outputs/", "logs/{run}/tb", "run-{run}", "a/b/../c", "outputs", "./"}
	p.Results.Checkpoints = "outputs/ckpt"
	if got := rooms(p); !slices.Equal(got, []string{"outputs", "logs", "a/c", "outputs/ckpt"}) {
		t.Errorf("%q", got)
	}
}
