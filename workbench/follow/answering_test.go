package follow

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/dlwb/dlwb/internal/job"
)

// doubted is a replica that fails to answer some times.
type doubted struct {
	job.Replica
	fails int
}

func (d *doubted) State(context.Context) (job.State, error) {
	if d.fails--; d.fails >= 0 {
		return job.State{}, errors.New("503 Service Unavailable")
	}
	return job.State{Phase: job.Running}, nil
}

// What fails to answer once is asked again: a run whose end can be had is not called
// one that could not be watched.
func TestOneFailedCallIsNoSilence(t *testing.T) {
	if silent := Silent(t.Context(), []job.Replica{&doubted{fails: 1}, &doubted{fails: 1}, &doubted{}}); slices.Contains(silent, true) {
		t.Errorf("silent: %v", silent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if silent := Silent(ctx, []job.Replica{&doubted{fails: 1 << 30}}); !silent[0] {
		t.Error("a replica that never answered is there")
	}
}
