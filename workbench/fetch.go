package workbench

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

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// fetchLimits bounds what one fetch may bring home.
var fetchLimits = remote.PullLimits{MaxFiles: 250_000, MaxBytes: 50 << 30}

// resultsDir is where the results of a run go when nothing else is said.
func (w *Workbench) resultsDir(run string, data runData) string {
	if data.To != "" {
		return data.To
	}
	return filepath.Join(w.runDir(run), "results")
}

// fetching is one bringing home of a run's results.
type fetching struct {
	w    *Workbench
	s    scope
	l    *link
	data runData
	dest string
	home homeRecord
	own  *ownership
	got  event.ResultsFetched
}

// homeRecord is what of a run came home, by the directory here and the path on
// the node.
type homeRecord map[string]map[string]remote.Placed

func (w *Workbench) homePath(run string) string { return filepath.Join(w.runDir(run), "home.json") }

func (w *Workbench) readHome(run string) homeRecord {
	home := homeRecord{}
	if b, err := os.ReadFile(w.homePath(run)); err == nil {
		_ = json.Unmarshal(b, &home)
	}
	return home
}

// in is the part of one directory, which a pull adds to.
func (h homeRecord) in(dir string) map[string]remote.Placed {
	if h[dir] == nil {
		h[dir] = map[string]remote.Placed{}
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

// fetch copies what a run wrote into a directory here: what is below the paths
// of its results on the head, and the directory of its own of every node.
func (w *Workbench) fetch(ctx context.Context, s scope, l *link, data runData, dest string) (event.ResultsFetched, error) {
	own, err := w.ownershipOf(s.run, s.life, s.cluster)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	f := &fetching{w: w, s: s, l: l, data: data, dest: dest, home: w.readHome(s.run), own: own, got: event.ResultsFetched{Dir: dest}}
	err = f.paths(ctx)
	for i := range l.nodes {
		if err == nil {
			err = f.ownDir(ctx, i)
		}
	}
	keepErr := f.keep()
	if err != nil {
		return f.got, f.failed(ctx, err)
	}
	if text := own.left(); text != "" {
		f.got.Left = append(f.got.Left, text)
	}
	for _, m := range f.got.Left {
		_ = w.publish(s, event.Noticed{Level: "warning", Text: "results: " + m})
	}
	if f.got.Files == 0 && len(data.Results) == 0 {
		return f.got, keepErr // there is nothing to tell
	}
	return f.got, errors.Join(keepErr, w.publish(s, f.got))
}

// paths fetches what the run wrote below the paths of its results.
func (f *fetching) paths(ctx context.Context) error {
	if len(f.data.Results) == 0 {
		return nil
	}
	res, err := f.pull(ctx, 0, planning.RemoteCode(f.s.cluster), f.data.Results, f.dest, f.own.owns)
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
	if f.data.OwnDir == "" {
		return nil
	}
	name := fmt.Sprintf("node%d", node)
	_, err := f.pull(ctx, node, f.data.OwnDir, []string{"."}, filepath.Join(f.dest, name), nil)
	if err == nil || node == 0 && len(f.data.Results) > 0 || ctx.Err() != nil {
		return err
	}
	f.got.Left = append(f.got.Left, fmt.Sprintf("what %s has in DLWB_RESULTS, if anything: %v", name, err))
	return nil
}

func (f *fetching) pull(ctx context.Context, node int, from string, paths []string, to string, own func(string, string) bool) (remote.PullResult, error) {
	res, err := remote.PullBy(ctx, f.l.nodes[node], from, paths, to,
		remote.PullRules{Limits: fetchLimits, Own: own, Placed: f.home.in(to), Mark: f.s.run})
	f.got.New += res.Files
	f.got.Left = append(append(f.got.Left, res.Skipped...), res.Moved...)
	return res, err
}

// keep writes down what is home now.
func (f *fetching) keep() error {
	maps.DeleteFunc(f.home, func(_ string, placed map[string]remote.Placed) bool { return len(placed) == 0 })
	f.got.Files, f.got.Bytes = f.home.below(f.dest)
	b, err := json.Marshal(f.home)
	if err == nil && len(f.home) > 0 {
		err = wholefile.Write(f.w.homePath(f.s.run), b, 0o600)
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
		Next: "dlwb pull " + f.s.run + " tries again while its cluster is there"}
	if limit := new(remote.LimitError); errors.As(cause, &limit) || ctx.Err() != nil || !f.headGone(ctx) {
		return fault
	}
	lost := event.ResultsLost{Node: 0, Paths: f.data.Results, Home: f.dest, Files: f.got.Files,
		Why: "node0 is gone, and what it had not sent went with it"}
	fault.Why = "results are lost: " + lost.Why
	fault.Next = fmt.Sprintf("%s that came before are in %s", count(f.got.Files, "file"), f.dest)
	if f.got.Files == 0 {
		fault.Next = "nothing came home; results.s3 or results.checkpoints in the profile save results while a run goes on"
	}
	return errors.Join(fault, f.w.publish(f.s, lost))
}

// headGone reports whether node 0 is proven gone, and its disk with it. One that
// can still be reached is not; what a node of another provider has outlives it.
func (f *fetching) headGone(ctx context.Context) bool {
	if !traits(f.l.cluster.Provider).Leased {
		return false
	}
	for deadline := time.Now().Add(lostWait); ; {
		if f.l.gone(ctx)[0] {
			return true
		}
		limited, cancel := context.WithTimeout(ctx, lostEvery)
		err := f.l.nodes[0].Connect(limited)
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

// fetchStep brings the results of a run home as a step of its own.
func (w *Workbench) fetchStep(ctx context.Context, s scope, l *link) error {
	_, data, err := w.runRecord(s.run)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := w.publish(s, event.StepStarted{Step: event.StepFetch, Text: "what the run wrote"}); err != nil {
		return err
	}
	active, enough := context.WithCancel(ctx)
	w.background(func(context.Context) { l.keepActive(active) }) // a long copy is no idleness
	got, err := w.fetch(ctx, s, l, data, w.resultsDir(s.run, data))
	enough()
	nothing := len(data.Results) == 0 && got.Files == 0
	end := event.StepEnded{Step: event.StepFetch, OK: err == nil, Skipped: nothing, Duration: since(began), Text: fetchText(got, data.Results)}
	if err != nil {
		end.Failure = event.FaultOf(err)
		end.Text = end.Failure.Why
	} else {
		w.dropCheckpoints(s.run, data)
	}
	slog.Debug("fetched", "run", s.run, "files", got.Files, "error", err)
	return errors.Join(err, w.publish(s, end))
}

func fetchText(got event.ResultsFetched, asked []string) string {
	if len(asked) == 0 && got.Files == 0 {
		return "the profile names no results.paths, and nothing was written to DLWB_RESULTS"
	}
	return got.Text()
}

// Pull brings the results of a run home again. To is the directory for them;
// empty: where they go by themselves.
func (w *Workbench) Pull(ctx context.Context, run, to string) (event.ResultsFetched, error) {
	r, data, err := w.runRecord(run)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	dest := w.resultsDir(run, data)
	if to != "" {
		if dest, err = filepath.Abs(to); err != nil {
			return event.ResultsFetched{}, err
		}
	}
	c, err := w.db.ClusterLife(r.Life)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	if made, err := w.clusterData(c); err == nil {
		if err := lacks("bring results home", made.Cluster, job.Files); err != nil {
			return event.ResultsFetched{}, err
		}
	}
	if len(data.Results) == 0 && data.OwnDir == "" {
		return event.ResultsFetched{}, &event.Fault{What: "bring results home", Node: -1, Why: "the profile names none",
			Next: "set results.paths in the profile"}
	}
	if c.EndedAt != nil {
		return event.ResultsFetched{}, w.goneFault(run, data, c)
	}
	l, err := w.open(c)
	if err != nil {
		return event.ResultsFetched{}, err
	}
	return w.fetch(ctx, scope{cluster: c.Name, life: c.ID, run: run}, l, data, dest)
}

// goneFault says of a run whose cluster is gone what there is of its results.
func (w *Workbench) goneFault(run string, data runData, c store.Cluster) error {
	f := &event.Fault{What: "bring results home", Node: -1, Why: "cluster " + c.Name + " is gone"}
	for dir, placed := range w.readHome(run) {
		f.Next += fmt.Sprintf("; %s that came before: %s", count(len(placed), "file"), dir)
	}
	if f.Next = strings.TrimPrefix(f.Next, "; "); f.Next == "" {
		f.Why += ", and nothing of run " + run + " came home before"
	}
	return f
}
