package follow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/workbench/event"
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

// crammed is a replica that has ended, on a disk that got full after the last look.
type crammed struct{ job.Replica }

func (crammed) State(context.Context) (job.State, error) {
	return job.State{Begun: true, Phase: job.Over, Clock: time.Now(), Free: 1 << 30, Full: "rank-0.log the disk was full"}, nil
}

func (crammed) Stop(context.Context, time.Duration, string) (int, error) { return 0, nil }

// Ranks that end with code 0 may have printed and written what is nowhere.
func TestARunThatEndsWellTellsThatItsOutputIsMissing(t *testing.T) {
	r := watchOf(t, 1)
	r.owner.End = func(event.RunEnded) error { return nil }
	r.run.Replicas[0] = crammed{}
	r.nodes[0] = nodeEnd{begun: true, ended: true}
	r.ends[0] = rankEnd{}
	ended, err := r.conclude(t.Context())
	if err != nil || ended.Verdict != event.Succeeded || !strings.Contains(ended.Cause, "node0 had no room to write: rank-0.log the disk was full") {
		t.Errorf("%+v, %v", ended, err)
	}
	if got := r.notices(); len(got) != 1 || !strings.Contains(got[0], "output on node0 was lost") {
		t.Errorf("told %q", got)
	}
}
