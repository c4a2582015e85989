package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/follow"
	"github.com/dlwb/dlwb/workbench/planning"
)

const (
	// ckptEvery is the pause between two looks at the checkpoints of a node,
	// and how long one must stay as it is to count as whole.
	ckptEvery = 5 * time.Second
	// ckptRest is how many times as long as a copy took the next one waits: a
	// run shares the node's disk and network with it.
	ckptRest = 3
	// ckptLookLimit bounds a look, and ckptLastLimit what is done after the end
	// of a run: a node that is taken away has two minutes.
	ckptLookLimit = 30 * time.Second
	ckptLastLimit = 75 * time.Second
)

// ckptLimits bound one checkpoint.
var ckptLimits = transfer.PullLimits{MaxFiles: 10_000, MaxBytes: 50 << 30}

// ckptKeeper brings the checkpoints of a run home while it goes on, so that it
// can go on from one when its machine is taken.
type ckptKeeper struct {
	f   *Fetcher
	at  Site
	run string
	t   *follow.Watch
	dir string // below the code directory
	// again is set where the run is started again when it fails.
	again bool

	away *sender // to S3; nil: nowhere

	mu     sync.Mutex
	record ckptRecord
	last   map[int][]*ckptUnit // by node, as the last look saw them
	lastAt map[int]time.Time   // and when
}

// ckptHome is where a checkpoint lies here.
func (f *Fetcher) ckptHome(c savedCkpt) string { return f.owner.Dir(filepath.FromSlash(c.Dir)) }

func (f *Fetcher) ckptPath(run string) string {
	return filepath.Join(f.owner.Dir(run), "checkpoints.json")
}

func (f *Fetcher) readCkpts(run string) (r ckptRecord) {
	if b, err := os.ReadFile(f.ckptPath(run)); err == nil {
		_ = json.Unmarshal(b, &r)
	}
	return r
}

// KeepCheckpoints begins to bring home the checkpoints of a run that is watched,
// out of a directory below the code directory; empty: none. The function that it
// returns ends that, and looks once more at what a run left that goes on as another
// one: again is set where it does when it fails, it always does when it lost machines.
func (f *Fetcher) KeepCheckpoints(ctx context.Context, at Site, run string, t *follow.Watch, dir string, again bool) (finish func(context.Context)) {
	if dir == "" {
		return func(context.Context) {}
	}
	k := &ckptKeeper{f: f, at: at, run: run, t: t, dir: dir, again: again, record: f.readCkpts(run), last: map[int][]*ckptUnit{}, lastAt: map[int]time.Time{}}
	ctx, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	for i := range at.Nodes {
		if at.Disks.FirstAtCode(i) {
			busy.Go(func() { k.follow(ctx, i) })
		}
	}
	k.away = f.sendAway(at, run)
	return func(ctx context.Context) {
		stop()
		busy.Wait()
		if ctx.Err() == nil {
			k.rest(ctx)
		}
		k.away.finish(ctx)
	}
}

// follow looks at one node again and again.
func (k *ckptKeeper) follow(ctx context.Context, node int) {
	for {
		began := time.Now()
		err := k.round(ctx, node)
		if err != nil && ctx.Err() == nil {
			slog.Debug("checkpoints", "run", k.run, "node", node, "error", err)
		}
		select {
		case <-time.After(max(ckptEvery, ckptRest*time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

func (k *ckptKeeper) look(ctx context.Context, node int) ([]*ckptUnit, error) {
	ctx, cancel := context.WithTimeout(ctx, ckptLookLimit)
	defer cancel()
	return lookForCkpts(ctx, k.at.Nodes[node], k.at.Cluster, k.dir)
}

// round looks at a node and brings the newest whole checkpoint home that is not
// here yet.
func (k *ckptKeeper) round(ctx context.Context, node int) error {
	units, err := k.look(ctx, node)
	if err != nil {
		return err
	}
	k.mu.Lock()
	bound(units, k.last[node], k.lastAt[node], time.Now(), !k.t.Broke())
	k.last[node], k.lastAt[node] = units, time.Now()
	k.mu.Unlock()
	return k.save(ctx, node, units, false)
}

// counts reports whether a checkpoint is whole as far as is known now. Calm is set
// where all that could write it has ended well.
func (k *ckptKeeper) counts(u *ckptUnit, calm bool) bool {
	return !u.open && (calm || whole(u.confirmed, k.t.Trouble()))
}

// save brings home the newest of the checkpoints that are whole, if it is not.
func (k *ckptKeeper) save(ctx context.Context, node int, units []*ckptUnit, calm bool) error {
	for _, u := range units {
		if !k.counts(u, calm) {
			continue
		}
		k.mu.Lock()
		have := k.record.find(node, u.name)
		k.mu.Unlock()
		if have != nil && u.same(&ckptUnit{files: have.Files}) {
			return nil
		}
		return k.bring(ctx, node, u, calm)
	}
	return nil
}

// bring copies a checkpoint. It counts when it is the same after the copy.
func (k *ckptKeeper) bring(ctx context.Context, node int, u *ckptUnit, calm bool) error {
	k.mu.Lock()
	k.record.Serial++
	c := savedCkpt{Node: node, Name: u.name, Dir: fmt.Sprintf("%s/checkpoints/node%d/%d", k.run, node, k.record.Serial),
		In: path.Clean(k.dir), Newest: u.newest, Files: u.files, Confirmed: u.confirmed, Sure: calm}
	k.mu.Unlock()
	to := k.f.ckptHome(c)
	_ = os.RemoveAll(to) // of a dlwb that was killed
	res, err := transfer.PullBy(ctx, k.at.Nodes[node], planning.RemoteCode(k.at.Cluster), []string{path.Join(k.dir, u.name)}, to, transfer.PullRules{Limits: ckptLimits})
	if err == nil && len(res.Skipped) > 0 {
		err = fmt.Errorf("not all of it came: %s", res.Skipped[0])
	}
	if err == nil {
		var now []*ckptUnit
		if now, err = k.look(ctx, node); err == nil && !u.same(findUnit(now, u.name)) {
			err = fmt.Errorf("%s changed while it was copied", u.name)
		}
	}
	if err == nil && !k.counts(u, calm) {
		err = fmt.Errorf("a rank has failed since %s was seen, which may be half", u.name)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(to))
	}
	if err := k.note(c); err != nil {
		return err
	}
	k.away.send(c)
	return k.at.Publish(event.CheckpointSaved{Node: node, Name: u.name, Files: res.Files, Bytes: res.Bytes, Written: u.written()})
}

// note puts a checkpoint on record, and removes what it replaces.
func (k *ckptKeeper) note(c savedCkpt) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	drop := k.record.add(c)
	if err := k.f.keepCkpts(k.run, k.record); err != nil {
		return err
	}
	for _, old := range drop {
		_ = os.RemoveAll(k.f.ckptHome(old))
	}
	return nil
}

// keepCkpts writes down what is known of the checkpoints of a run.
func (f *Fetcher) keepCkpts(run string, r ckptRecord) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = wholefile.Write(f.ckptPath(run), b, 0o600)
	}
	return err
}

// dropCheckpoints removes the copies of a run's checkpoints when they came home
// with its results.
func (f *Fetcher) dropCheckpoints(run Run) {
	covered := &noted{Paths: run.Paths}
	if told, err := f.owner.Told(run.ID); err != nil || run.Checkpoints == "" || told.Ended == nil || told.Ended.Verdict == event.Lost || !covered.covers(path.Clean(run.Checkpoints)) {
		return
	}
	if err := os.RemoveAll(filepath.Join(f.owner.Dir(run.ID), "checkpoints")); err == nil {
		_ = os.Remove(f.ckptPath(run.ID))
	}
}

// rest looks once more at the nodes of a run that goes on as another one. What
// two looks found the same before there was trouble is whole; so is all that ranks
// wrote which ended well. Else it is in doubt.
func (k *ckptKeeper) rest(ctx context.Context) {
	if !k.t.Taken() && !k.again {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, ckptLastLimit)
	defer cancel()
	var busy sync.WaitGroup
	lost := k.t.Lost()
	if err := k.distrust(); err != nil {
		slog.Debug("checkpoints that may be half", "run", k.run, "error", err)
	}
	for i := range k.at.Nodes {
		if !lost[i] && k.at.Disks.FirstAtCode(i) {
			busy.Go(func() {
				if err := k.lastRound(ctx, i); err != nil {
					slog.Debug("the last checkpoints", "run", k.run, "node", i, "error", err)
				}
			})
		}
	}
	busy.Wait()
}

// distrust forgets the checkpoints that a rank may have been writing when another one
// was lost, and takes them back from where they were sent.
func (k *ckptKeeper) distrust() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	dropped := k.record.distrust(k.t.Trouble())
	if len(dropped) == 0 {
		return nil
	}
	for _, c := range dropped {
		_ = os.RemoveAll(k.f.ckptHome(c))
	}
	k.away.withdraw(dropped)
	return k.f.keepCkpts(k.run, k.record)
}

func (k *ckptKeeper) lastRound(ctx context.Context, node int) error {
	units, err := k.look(ctx, node)
	if err != nil {
		return err
	}
	k.mu.Lock()
	bound(units, k.last[node], k.lastAt[node], time.Now(), !k.t.Broke())
	k.mu.Unlock()
	calm := k.t.EndedByItself(node)
	var doubtful []string
	for _, u := range units {
		if !k.counts(u, calm) {
			doubtful = append(doubtful, u.name)
		}
	}
	if len(doubtful) > 0 {
		k.mu.Lock()
		if k.record.Doubtful == nil {
			k.record.Doubtful = map[int][]string{}
		}
		k.record.Doubtful[node] = doubtful
		err = k.f.keepCkpts(k.run, k.record)
		k.mu.Unlock()
	}
	return errors.Join(err, k.save(ctx, node, units, calm))
}
