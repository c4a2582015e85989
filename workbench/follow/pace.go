package follow

import (
	"time"

	"github.com/dlwb/dlwb/metrics"
)

const (
	// atOnce is how soon after its launch a run must be watched for the time
	// at which it is seen to do something to be the time at which it did it.
	atOnce = 10 * time.Second
	// paceNeeds is how long a run must have been seen to go on before anything
	// is said of how fast it does.
	paceNeeds = time.Second
)

// Pace tells how fast a run goes on: from when it was seen to, and the share
// that was done then. What came before is no work of this run: Python and
// PyTorch begin, data are read, and the steps of a resumed training are those
// of another run.
type Pace struct {
	Since time.Time `json:"since,omitzero"`
	Share float64   `json:"share,omitempty"`
}

// left is how many seconds are left when a share is done at a moment and what
// is to come goes as fast as what was seen; 0 when that can't be told yet.
func (p Pace) left(done float64, at time.Time) float64 {
	seen := at.Sub(p.Since)
	if done <= p.Share || seen < paceNeeds {
		return 0
	}
	return seen.Seconds() * (1 - done) / (done - p.Share)
}

// left is how many seconds the run still needs, when it says that it is so far;
// 0 when that can't be told.
func (t *Watch) left(p metrics.Progress, at time.Time) float64 {
	done, known := p.Share()
	if !known {
		return 0
	}
	switch {
	case t.run.Pace.Since.IsZero():
		t.run.Pace = t.firstPace(at)
	case done < t.run.Pace.Share: // it goes back to a checkpoint, or counts otherwise than it seemed
		t.run.Pace = Pace{at, done}
	}
	return t.run.Pace.left(done, at)
}

// firstPace is the pace of a run that has just been seen to go on.
func (t *Watch) firstPace(at time.Time) Pace {
	began := t.reader.Began()
	share, _ := began.Share()
	switch {
	case began.Steps == 0 && began.Epoch == 1 && !began.Begun:
		// The first epoch of a run that counts nothing less is over. How long
		// it took is worth more than to wait for another one.
		return Pace{t.run.StartedAt, 0}
	case t.late:
		// When it began to go on nobody saw; not before its launch.
		return Pace{t.run.StartedAt, share}
	}
	return Pace{at, share}
}
