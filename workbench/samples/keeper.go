package samples

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/store"
)

// Keeper stores the telemetry of the nodes of one life of a cluster. What comes is
// gathered and written a few times a second: with many nodes a write for each sample
// costs more than all the rest.
type Keeper struct {
	Pace *job.Pace // at which samples are wanted

	db      *store.Store
	dir     string // of the state
	cluster string
	life    int64
	stored  func() // is called when something was stored
	thinner *Thinner

	mu       sync.Mutex
	gathered []store.Sample
}

// NewKeeper makes a keeper; dir is the state directory, and stored is called when
// something was stored.
func NewKeeper(db *store.Store, dir, cluster string, life int64, stored func()) *Keeper {
	return &Keeper{Pace: job.NewPace(), db: db, dir: dir, cluster: cluster, life: life, stored: stored, thinner: NewThinner(db, life)}
}

// Thin thins what is old; Keep does so now and then.
func (k *Keeper) Thin() { k.thinner.Thin(time.Now().UTC().Round(0)) }

// Take takes a sample of a node, which has come now.
func (k *Keeper) Take(node int, body []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gathered = append(k.gathered, store.Sample{Cluster: k.cluster, Life: k.life, Node: node, Time: time.Now().UTC().Round(0), Body: body})
}

const (
	// flushEvery is how often gathered samples are stored.
	flushEvery = 250 * time.Millisecond
	// nobodyAfter is how long after the last look at the samples their pace
	// is lowered.
	nobodyAfter = 15 * time.Second
)

// Keep stores what was gathered, sets the pace, and thins what is old, until ctx ends.
func (k *Keeper) Keep(ctx context.Context) {
	flush, thin := time.NewTicker(flushEvery), time.NewTicker(ThinEvery)
	defer flush.Stop()
	defer thin.Stop()
	looks, looked := Looks(k.dir, k.life), time.Now()
	k.Thin()
	for {
		select {
		case <-flush.C:
			k.Flush()
			if l := Looks(k.dir, k.life); l != looks {
				looks, looked = l, time.Now()
			}
			if time.Since(looked) > nobodyAfter {
				k.Pace.Set(SlowPace)
			} else {
				k.Pace.Set(time.Second)
			}
		case <-thin.C:
			k.Thin()
		case <-ctx.Done():
			k.Flush()
			return
		}
	}
}

// Flush stores what was gathered. What can't be stored is a gap.
func (k *Keeper) Flush() {
	k.mu.Lock()
	gathered := k.gathered
	k.gathered = nil
	k.mu.Unlock()
	if len(gathered) == 0 {
		return
	}
	if err := k.db.AddSamples(gathered); err != nil {
		slog.Debug("telemetry not stored", "cluster", k.cluster, "samples", len(gathered), "error", err)
		return
	}
	k.stored()
}
