package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// fetchLimits bounds what one fetch may bring home.
var fetchLimits = transfer.PullLimits{MaxFiles: 250_000, MaxBytes: 50 << 30}

// fetching is one bringing home of a run's results.
type fetching struct {
	fetcher *Fetcher
	at      Site
	run     Run
	dest    string
	home    homeRecord
	own     *ownership
	got     event.ResultsFetched
}

// homeRecord is what of a run came home, by the directory here and the path on
// the node.
type homeRecord map[string]map[string]transfer.Placed

func (f *Fetcher) homePath(run string) string { return filepath.Join(f.owner.Dir(run), "home.json") }

func (f *Fetcher) readHome(run string) homeRecord {
	home := homeRecord{}
	if b, err := os.ReadFile(f.homePath(run)); err == nil {
		_ = json.Unmarshal(b, &home)
	}
	return home
}

// in is the part of one directory, which a pull adds to.
func (h homeRecord) in(dir string) map[string]transfer.Placed {
	if h[dir] == nil {
		h[dir] = map[string]transfer.Placed{}
	}
	return h[dir]
}

// below sums up what came into a directory and those in it.
func (h homeRecord) below(dir string) (files int, bytes int64) {
	for at, placed := range h {
		if at != dir && !strings.HasPrefix(at, dir+string(filepath.Separator)) {
			continue
		}
		for _, p := range placed {
			files++
			bytes += p.Size
		}
	}
	return files, bytes
}

// Placed are the files of a run that came home, by the directory here and the
// path on the node.
func (f *Fetcher) Placed(run string) map[string]map[string]transfer.Placed { return f.readHome(run) }

// fetch copies what a run wrote into a directory here: what is below the paths
// of its results on the head, and the directory of its own of every node.
func (f *Fetcher) fetch(ctx context.Context, at Site, run Run, dest string) (event.ResultsFetched, error) {
	own, err := f.ownershipOf(run)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	now := &fetching{fetcher: f, at: at, run: run, dest: dest, home: f.readHome(run.ID), own: own, got: event.ResultsFetched{Dir: dest}}
	err = now.paths(ctx)
	for i := range at.Nodes {
		if err == nil {
			err = now.ownDir(ctx, i)
		}
	}
	keepErr := now.keep()
	if err != nil {
		return now.got, now.failed(ctx, err)
	}
	if text := own.left(); text != "" {
		now.got.Left = append(now.got.Left, text)
	}
	for _, m := range now.got.Left {
		_ = at.Publish(event.Noticed{Level: "warning", Text: "results: " + m})
	}
	if now.got.Files == 0 && len(run.Paths) == 0 {
		return now.got, keepErr // there is nothing to tell
	}
	return now.got, errors.Join(keepErr, at.Publish(now.got))
}

// paths fetches what the run wrote below the paths of its results.
func (f *fetching) paths(ctx context.Context) error {
	if len(f.run.Paths) == 0 {
		return nil
	}
	res, err := f.pull(ctx, 0, planning.RemoteCode(f.at.Cluster), f.run.Paths, f.dest, f.own.owns)
	for _, m := range res.Missing {
		f.got.Left = append(f.got.Left, m+" does not exist on node0")
	}
	f.got.Older = max(0, res.Others-f.own.rewritten)
	return err
}

// ownDir fetches the directory of the run's own on one node. Where the profile
// names no results, a run may well have none, and a node that can't be asked is
// only told of; so is one beside the head.
func (f *fetching) ownDir(ctx context.Context, node int) error {
	if f.run.OwnDir == "" {
		return nil
	}
	name := fmt.Sprintf("node%d", node)
	_, err := f.pull(ctx, node, f.run.OwnDir, []string{"."}, filepath.Join(f.dest, name), nil)
	if err == nil || node == 0 && len(f.run.Paths) > 0 || ctx.Err() != nil {
		return err
	}
	f.got.Left = append(f.got.Left, fmt.Sprintf("what %s has in DLWB_RESULTS, if anything: %v", name, err))
	return nil
}

func (f *fetching) pull(ctx context.Context, node int, from string, paths []string, to string, own func(string, string) bool) (transfer.PullResult, error) {
	res, err := transfer.PullBy(ctx, f.at.Nodes[node], from, paths, to,
		transfer.PullRules{Limits: fetchLimits, Own: own, Placed: f.home.in(to), Mark: f.run.ID})
	f.got.New += res.Files
	f.got.Left = append(append(f.got.Left, res.Skipped...), res.Moved...)
	return res, err
}

// keep writes down what is home now.
func (f *fetching) keep() error {
	maps.DeleteFunc(f.home, func(_ string, placed map[string]transfer.Placed) bool { return len(placed) == 0 })
	f.got.Files, f.got.Bytes = f.home.below(f.dest)
	b, err := json.Marshal(f.home)
	if err == nil && len(f.home) > 0 {
		err = wholefile.Write(f.fetcher.homePath(f.run.ID), b, 0o600)
	}
	return err
}

const (
	// lostWait is how long a provider is asked whether a node that broke off is
	// gone: a machine that shuts down takes a while to be seen so.
	lostWait  = 20 * time.Second
	lostEvery = time.Second
)

// failed says what becomes of results that did not come. That they are lost
// takes proof that their machine is gone.
func (f *fetching) failed(ctx context.Context, cause error) error {
	fault := &event.Fault{What: "bring the results home", Node: 0, Why: cause.Error(),
		Next: "dlwb pull " + f.run.ID + " tries again while its cluster is there"}
	if limit := new(transfer.LimitError); errors.As(cause, &limit) || ctx.Err() != nil || !f.headGone(ctx) {
		return fault
	}
	lost := event.ResultsLost{Node: 0, Paths: f.run.Paths, Home: f.dest, Files: f.got.Files,
		Why: "node0 is gone, and what it had not sent went with it"}
	fault.Why = "results are lost: " + lost.Why
	fault.Next = fmt.Sprintf("%s that came before are in %s", units.Count(f.got.Files, "file"), f.dest)
	if f.got.Files == 0 {
		fault.Next = "nothing came home; results.s3 or results.checkpoints in the profile save results while a run goes on"
	}
	return errors.Join(fault, f.at.Publish(lost))
}

// headGone reports whether node 0 is proven gone, and its disk with it. One that
// can still be reached is not; what a node of another provider has outlives it.
func (f *fetching) headGone(ctx context.Context) bool {
	if !f.at.Leased {
		return false
	}
	for deadline := time.Now().Add(lostWait); ; {
		if f.at.Gone(ctx)[0] {
			return true
		}
		limited, cancel := context.WithTimeout(ctx, lostEvery)
		err := f.at.Nodes[0].Connect(limited)
		cancel()
		if err == nil || time.Now().After(deadline) {
			return false
		}
		select {
		case <-time.After(lostEvery):
		case <-ctx.Done():
			return false
		}
	}
}

// Step brings the results of a run home as a step of its own.
func (f *Fetcher) Step(ctx context.Context, at Site, id string) error {
	run, err := f.owner.Run(id)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := at.Publish(event.StepStarted{Step: event.StepFetch, Text: "what the run wrote"}); err != nil {
		return err
	}
	active, enough := context.WithCancel(ctx)
	at.KeepActive(active) // a long copy is no idleness
	got, err := f.fetch(ctx, at, run, f.Dir(run))
	enough()
	nothing := len(run.Paths) == 0 && got.Files == 0
	took := max(0, time.Since(began).Seconds())
	end := event.StepEnded{Step: event.StepFetch, OK: err == nil, Skipped: nothing, Duration: took, Text: fetchText(got, run.Paths)}
	if err != nil {
		end.Failure = event.FaultOf(err)
		end.Text = end.Failure.Why
	} else {
		f.dropCheckpoints(run)
	}
	slog.Debug("fetched", "run", id, "files", got.Files, "error", err)
	return errors.Join(err, at.Publish(end))
}

func fetchText(got event.ResultsFetched, asked []string) string {
	if len(asked) == 0 && got.Files == 0 {
		return "the profile names no results.paths, and nothing was written to DLWB_RESULTS"
	}
	return got.Text()
}

// Pull brings the results of a run home again. To is the directory for them;
// empty: where they go by themselves.
func (f *Fetcher) Pull(ctx context.Context, id, to string) (event.ResultsFetched, error) {
	run, err := f.owner.Run(id)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	dest := f.Dir(run)
	if to != "" {
		if dest, err = filepath.Abs(to); err != nil {
			return event.ResultsFetched{}, err
		}
	}
	c, err := f.db.ClusterLife(run.Life)
	if err == nil {
		err = f.owner.Readable(c)
	}
	if err != nil {
		return event.ResultsFetched{}, err
	}
	if len(run.Paths) == 0 && run.OwnDir == "" {
		return event.ResultsFetched{}, &event.Fault{What: "bring results home", Node: -1, Why: "the profile names none",
			Next: "set results.paths in the profile"}
	}
	if c.EndedAt != nil {
		return event.ResultsFetched{}, f.goneFault(id, c)
	}
	at, err := f.owner.Reach(c, id)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	return f.fetch(ctx, at, run, dest)
}

// goneFault says of a run whose cluster is gone what there is of its results.
func (f *Fetcher) goneFault(run string, c store.Cluster) error {
	fault := &event.Fault{What: "bring results home", Node: -1, Why: "cluster " + c.Name + " is gone"}
	for dir, placed := range f.readHome(run) {
		fault.Next += fmt.Sprintf("; %s that came before: %s", units.Count(len(placed), "file"), dir)
	}
	if fault.Next = strings.TrimPrefix(fault.Next, "; "); fault.Next == "" {
		fault.Why += ", and nothing of run " + run + " came home before"
	}
	return fault
}
