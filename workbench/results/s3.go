package results

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud/objects"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// What comes home goes to results.s3 from here, with the user's own credentials: no
// node gets any for it. Below PREFIX/CLUSTER/LIFE/RUN there are results and checkpoints,
// each a set of package objects: who finds no manifest has no whole one. The life is
// what keeps two people with one profile apart: their runs can have the same id.

// s3Limit bounds the sending of a run's results, s3Last the wait for its last checkpoint
// after it has ended: that is home, and goes on being sent.
const (
	s3Limit = 6 * time.Hour
	s3Last  = 2 * time.Minute
)

func (r Run) s3Results() string { return path.Join(r.Cluster, r.LifeID, r.ID, "results") }

func (r Run) s3Checkpoints() string { return path.Join(r.Cluster, r.LifeID, r.ID, "checkpoints") }

// keepInS3 sends what of a run came home to its results.s3. They are here, so that
// nothing is lost where it fails: it is said.
func (f *Fetcher) keepInS3(ctx context.Context, at Site, run Run) {
	files := f.homeFiles(run)
	if run.S3 == "" || len(files) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s3Limit)
	defer cancel()
	name := run.s3Results()
	b, err := objects.Open(ctx, run.S3)
	var saved objects.Saved
	if err == nil {
		_ = b.Sweep(ctx, name)
		saved, err = b.Save(ctx, name, files, map[string]string{"run": run.ID, "cluster": run.Cluster, objects.Life: run.LifeID})
	}
	if err != nil {
		_ = at.Publish(event.Noticed{Level: "warning", Text: "the results are not in " + run.S3 + ": " + err.Error(),
			Next: nextOf(err, "dlwb pull "+run.ID+" tries again")})
		return
	}
	text := fmt.Sprintf("the results are in %s: %s", b.Address(name), units.Count(saved.Files, "file"))
	if saved.Sent < saved.Files {
		text += fmt.Sprintf(", %d of them sent now", saved.Sent)
	}
	_ = at.Publish(event.Noticed{Level: "info", Text: text})
}

// nextOf is the advice that an error brings, before the usual one.
func nextOf(err error, usual string) string {
	if next := event.NextOf(err); next != "" {
		return next + "; then " + usual
	}
	return usual
}

// homeFiles are the files of a run that came home, by their path in its results.
func (f *Fetcher) homeFiles(run Run) map[string]string {
	files, dest := map[string]string{}, f.Dir(run)
	for dir, placed := range f.readHome(run.ID) {
		for _, p := range placed {
			at := filepath.Join(dir, filepath.FromSlash(p.As))
			rel, err := filepath.Rel(dest, at)
			if err != nil || !filepath.IsLocal(rel) {
				continue // it was pulled somewhere else besides
			}
			if info, err := os.Lstat(at); err == nil && info.Mode().IsRegular() {
				files[filepath.ToSlash(rel)] = at
			}
		}
	}
	return files
}

// sender sends checkpoints to S3 while a run goes on: of each node the newest that
// is home, when there is time for it.
type sender struct {
	f    *Fetcher
	at   Site
	run  Run
	wake chan struct{} // closed: no more come
	done chan struct{}

	mu   sync.Mutex
	next map[int]savedCkpt
	back []savedCkpt // that may be half: what of them was sent is removed
}

// sendAway begins to send; nil where a run keeps nothing in S3.
func (f *Fetcher) sendAway(at Site, id string) *sender {
	run, err := f.owner.Run(id)
	if err != nil || run.S3 == "" {
		return nil
	}
	s := &sender{f: f, at: at, run: run, wake: make(chan struct{}, 1), done: make(chan struct{}), next: map[int]savedCkpt{}}
	go s.loop()
	return s
}

// send puts a checkpoint in the place of one of its node that is still waiting.
func (s *sender) send(c savedCkpt) {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.next[c.Node] = c
	s.mu.Unlock()
	s.rouse()
}

// withdraw takes checkpoints back that turned out to be in doubt: a run would go on
// from them where its record here is gone. One that is being sent is removed behind
// that.
func (s *sender) withdraw(all []savedCkpt) {
	if s == nil {
		return
	}
	s.mu.Lock()
	for _, c := range all {
		if s.next[c.Node].Dir == c.Dir {
			delete(s.next, c.Node)
		}
	}
	s.back = append(s.back, all...)
	s.mu.Unlock()
	s.rouse()
}

func (s *sender) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// finish waits until the last one is sent, for a while.
func (s *sender) finish(ctx context.Context) {
	if s == nil {
		return
	}
	close(s.wake)
	select {
	case <-s.done:
	case <-ctx.Done():
	case <-time.After(s3Last):
	}
}

func (s *sender) loop() {
	defer close(s.done)
	ctx, cancel := context.WithTimeout(context.Background(), s3Limit*24)
	defer cancel()
	var b *objects.Bucket
	told := ""
	for more := true; more; {
		_, more = <-s.wake
		s.mu.Lock()
		due, back := s.next, s.back
		s.next, s.back = map[int]savedCkpt{}, nil
		s.mu.Unlock()
		for _, c := range back {
			s.remove(ctx, &b, c)
		}
		for _, c := range due {
			var err error
			if err = s.ready(ctx, &b); err == nil {
				err = s.one(ctx, b, c)
			}
			// The same trouble every five seconds is told once.
			if err != nil && err.Error() != told && !errors.Is(err, fs.ErrNotExist) {
				told = err.Error()
				_ = s.at.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf("checkpoint %s is not in %s: %v", c.Name, s.run.S3, err), Next: event.NextOf(err)})
			}
		}
	}
}

// ready opens the bucket, unless it is open.
func (s *sender) ready(ctx context.Context, b **objects.Bucket) (err error) {
	if *b == nil {
		*b, err = s.open(ctx)
	}
	return err
}

// remove takes one checkpoint back. That it could not be is told each time: the next
// run may go on from it.
func (s *sender) remove(ctx context.Context, b **objects.Bucket, c savedCkpt) {
	set := s.setOf(c)
	err := s.ready(ctx, b)
	if err == nil {
		err = (*b).Drop(ctx, set)
	}
	if err != nil {
		at := strings.TrimRight(s.run.S3, "/") + "/" + set
		_ = s.at.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf("checkpoint %s may be half, and was not removed from %s: %v", c.Name, at, err),
			Next: nextOf(err, "aws s3 rm "+at+".manifest.json")})
	}
}

// setOf is the name of a checkpoint there.
func (s *sender) setOf(c savedCkpt) string {
	serial, _ := strconv.Atoi(path.Base(c.Dir))
	return ckptSet(path.Join(s.run.s3Checkpoints(), nodeDir(c.Node)), serial)
}

// open finds the bucket, and clears away what an earlier dlwb has left that was
// killed: one process watches a run at a time.
func (s *sender) open(ctx context.Context) (*objects.Bucket, error) {
	b, err := objects.Open(ctx, s.run.S3)
	if err != nil {
		return nil, err
	}
	below := s.run.s3Checkpoints()
	err = b.Sweep(ctx, below)
	for i := range s.at.Nodes {
		err = errors.Join(err, b.SweepSets(ctx, path.Join(below, nodeDir(i))))
	}
	if err != nil {
		slog.Debug("sweep in S3", "run", s.run.ID, "error", err) // it costs a little, and nothing is wrong by it
	}
	return b, nil
}

func nodeDir(node int) string { return "node" + strconv.Itoa(node) }

// one sends a checkpoint under a name that it has alone, and removes what it
// replaces: the one before the last of its node.
func (s *sender) one(ctx context.Context, b *objects.Bucket, c savedCkpt) error {
	files, home, there := map[string]string{}, s.f.ckptHome(c), 0
	err := filepath.WalkDir(home, func(at string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			there++
		}
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(home, at)
			files[filepath.ToSlash(rel)] = at
		}
		return err
	})
	if err == nil && there < c.Files.Count {
		err = fmt.Errorf("%d of its %d files are here: %w", there, c.Files.Count, fs.ErrNotExist) // it makes room for newer ones
	}
	if err != nil {
		return err
	}
	about := map[string]string{"run": s.run.ID, objects.Life: s.run.LifeID, "node": strconv.Itoa(c.Node), "checkpoint": c.Name, "in": c.In,
		"newest": strconv.FormatFloat(c.Newest, 'f', -1, 64)}
	set := s.setOf(c)
	if _, err := b.Save(ctx, set, files, about); err != nil {
		return err
	}
	sets, err := ckptSetsOf(ctx, b, path.Dir(set))
	for len(sets) > keptInS3 && err == nil {
		err = b.Drop(ctx, sets[0])
		sets = sets[1:]
	}
	return err
}

// keptInS3 is how many checkpoints of a node stay there.
const keptInS3 = 2

// fromS3 brings the checkpoints to go on from back here where none of a run came
// home, or its record was removed. Only what is whole counts.
func (f *Fetcher) fromS3(ctx context.Context, at Site, id string) ckptRecord {
	run, err := f.owner.Run(id)
	if err != nil || run.S3 == "" {
		return ckptRecord{}
	}
	r, err := f.loadCkpts(ctx, run)
	if err != nil {
		_ = at.Publish(event.Noticed{Level: "warning", Text: "no checkpoint of run " + id + " came from " + run.S3 + ": " + err.Error(), Next: event.NextOf(err)})
	}
	return r
}

// ckptSets are the whole checkpoints of a run there, of all its nodes.
func ckptSets(ctx context.Context, b *objects.Bucket, run Run) (all []string, err error) {
	dirs, err := b.Dirs(ctx, run.s3Checkpoints())
	for _, dir := range dirs {
		node, bad := strconv.Atoi(strings.TrimPrefix(path.Base(dir), "node"))
		if err != nil || bad != nil || nodeDir(node) != path.Base(dir) {
			continue
		}
		var sets []string
		sets, err = ckptSetsOf(ctx, b, dir)
		all = append(all, sets...)
	}
	return all, err
}

// ckptSetsOf are those of one node, the oldest first: what has a name that one gives
// them.
func ckptSetsOf(ctx context.Context, b *objects.Bucket, below string) ([]string, error) {
	sets, err := b.Sets(ctx, below)
	return slices.DeleteFunc(sets, func(set string) bool {
		serial, bad := strconv.Atoi(path.Base(set))
		return bad != nil || ckptSet(below, serial) != set
	}), err
}

// ckptSet is the name of a checkpoint of a node there.
func ckptSet(below string, serial int) string { return fmt.Sprintf("%s/%06d", below, serial) }

func (f *Fetcher) loadCkpts(ctx context.Context, run Run) (r ckptRecord, err error) {
	b, err := objects.Open(ctx, run.S3)
	if err != nil {
		return r, err
	}
	sets, err := ckptSets(ctx, b, run)
	if err != nil {
		return r, err
	}
	names := map[string]string{} // of sets, by directory here
	for _, set := range sets {
		m, found, err := b.Manifest(ctx, set)
		if err != nil || !found {
			continue
		}
		node, bad := strconv.Atoi(m.About["node"])
		newest, worse := strconv.ParseFloat(m.About["newest"], 64)
		if errors.Join(bad, worse) != nil || !filepath.IsLocal(m.About["in"]) || nodeDir(node) != path.Base(path.Dir(set)) {
			continue
		}
		c := savedCkpt{Node: node, Name: m.About["checkpoint"], In: m.About["in"], Newest: newest,
			Dir: fmt.Sprintf("%s/checkpoints/%s/%s", run.ID, nodeDir(node), path.Base(set))}
		r.Saved, names[c.Dir] = append(r.Saved, c), set
	}
	parts := r.restorable()
	r = ckptRecord{}
	for _, c := range parts {
		home := f.ckptHome(*c)
		_ = os.RemoveAll(home)
		if _, err := b.Load(ctx, names[c.Dir], home); err != nil {
			return ckptRecord{}, err
		}
		r.Saved = append(r.Saved, *c)
		r.Serial, _ = strconv.Atoi(path.Base(c.Dir))
	}
	return r, f.keepCkpts(run.ID, r)
}
