package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/remote"
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
	silent  []bool        // nodes that are not waited for: whoever watched the run has, or they are gone
	away    map[int]error // nodes that could not be reached
	got     event.ResultsFetched
}

// homeRecord is what of a run came home, by the directory here and the path on
// the node.
type homeRecord map[string]map[string]transfer.Placed

// MarshalJSON writes the names so that they come back byte for byte: a file whose name
// is another one in the record would come home again with each pull.
func (h homeRecord) MarshalJSON() ([]byte, error) { return json.Marshal(h.coded(namejson.Encode)) }

// UnmarshalJSON reads what MarshalJSON has written, also that of an earlier dlwb.
func (h *homeRecord) UnmarshalJSON(text []byte) error {
	var m map[string]map[string]transfer.Placed
	err := json.Unmarshal(text, &m)
	*h = homeRecord(m).coded(namejson.Decode)
	return err
}

func (h homeRecord) coded(code func(string) string) map[string]map[string]transfer.Placed {
	to := map[string]map[string]transfer.Placed{}
	for dir, placed := range h {
		in := map[string]transfer.Placed{}
		for name, p := range placed {
			p.As = code(p.As)
			in[code(name)] = p
		}
		to[code(dir)] = in
	}
	return to
}

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
	now := &fetching{fetcher: f, at: at, run: run, dest: dest, home: f.readHome(run.ID), own: own, silent: f.silent(ctx, at, run.ID), away: map[int]error{}, got: event.ResultsFetched{Dir: dest}}
	err = now.all(ctx)
	keepErr := now.keep()
	if err != nil {
		if now.got.Partial = now.got.New > 0; now.got.Partial {
			keepErr = errors.Join(keepErr, at.Publish(now.got))
		}
		return now.got, errors.Join(err, keepErr)
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

// silent are the nodes from which nothing is expected. Whether one is gone is asked where
// it would take its disk with it, and where the provider had said so when the run ended:
// nobody waits for that one again. One that was only not heard of is known from the end.
func (f *Fetcher) silent(ctx context.Context, at Site, run string) []bool {
	silent := make([]bool, len(at.Nodes))
	copy(silent, at.Silent)
	ask := at.Leased
	if told, err := f.owner.Told(run); err == nil && told.Ended != nil {
		ask = ask || told.Ended.Verdict == event.Lost && len(told.Ended.Silent) == 0
		for _, i := range told.Ended.Silent {
			if i >= 0 && i < len(silent) {
				silent[i] = true
			}
		}
	}
	if ask {
		for i, gone := range at.Gone(ctx) {
			silent[i] = silent[i] || gone
		}
	}
	return silent
}

// paths fetches what the run wrote below the paths of its results.
func (f *fetching) paths(ctx context.Context) error {
	if len(f.run.Paths) == 0 {
		return nil
	}
	res, err := f.pull(ctx, 0, planning.RemoteCode(f.at.Cluster), f.run.Paths, f.dest, f.own.owns)
	for _, m := range res.Missing {
		f.got.Left = append(f.got.Left, m+" does not exist on "+event.NodeText(0, f.at.Names.Of(0)))
	}
	f.got.Older = max(0, res.Others-f.own.rewritten)
	return err
}

// all fetches everything that can be had: what does not come from one node keeps
// nothing of another from coming.
func (f *fetching) all(ctx context.Context) error {
	if f.at.Kept != nil {
		return f.kept(ctx)
	}
	var errs []error
	if err := f.paths(ctx); err != nil {
		errs = append(errs, f.failed(ctx, err))
	}
	for i := range f.at.Nodes {
		if err := f.ownDir(ctx, i); err != nil && ctx.Err() == nil {
			errs = append(errs, f.ownFailed(ctx, i, err))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// kept fetches what a service keeps of the run.
func (f *fetching) kept(ctx context.Context) error {
	came := f.home.in(f.dest)
	res, err := transfer.Gather(f.dest, transfer.PullRules{Placed: came, Mark: f.run.ID}, func(into *os.Root) error {
		left, err := f.at.Kept(ctx, into)
		f.got.Left = append(f.got.Left, left...)
		return err
	})
	f.got.New += res.Files
	f.got.Left = append(append(f.got.Left, res.Skipped...), res.Moved...)
	for _, asked := range f.run.Paths {
		if err == nil && !anyBelow(came, path.Clean(asked)) {
			f.got.Left = append(f.got.Left, asked+": the run wrote nothing there")
		}
	}
	if err != nil {
		return &event.Fault{What: "bring the results home", Node: -1, Why: err.Error(), Next: nextOf(err, "dlwb pull "+f.run.ID+" tries again")}
	}
	return nil
}

func anyBelow(came map[string]transfer.Placed, dir string) bool {
	for name := range came {
		if dir == "." || name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// ownDir fetches the directory of the run's own on one node.
func (f *fetching) ownDir(ctx context.Context, node int) error {
	if f.run.OwnDir == "" {
		return nil
	}
	_, err := f.pull(ctx, node, f.at.Disks.OwnDir(f.run.OwnDir, node), []string{"."}, filepath.Join(f.dest, fmt.Sprintf("node%d", node)), nil)
	return err
}

// ownFailed says what becomes of a directory that did not come. A machine that is
// proven gone has nothing any more that could be asked for.
func (f *fetching) ownFailed(ctx context.Context, node int, cause error) error {
	if f.at.Leased && f.at.Gone(ctx)[node] {
		f.got.Left = append(f.got.Left, fmt.Sprintf("what %s had in DLWB_RESULTS, if anything: %v", event.NodeText(node, f.at.Names.Of(node)), cause))
		return nil
	}
	return &event.Fault{What: "bring the results home", Node: node, Host: f.at.Names.Of(node), Why: "what it has in DLWB_RESULTS, if anything, did not come: " + cause.Error(),
		Next: "dlwb pull " + f.run.ID + " tries again while its cluster is there"}
}

func (f *fetching) pull(ctx context.Context, node int, from string, paths []string, to string, own func(string, string) bool) (transfer.PullResult, error) {
	if err := f.away[node]; err != nil {
		return transfer.PullResult{}, err
	}
	patience := f.run.Lost
	if f.silent[node] {
		if !f.answers(ctx, node) {
			f.away[node] = errors.New("it can't be reached")
			return transfer.PullResult{}, f.away[node]
		}
		patience = 0
	}
	res, err := transfer.PullBy(ctx, f.at.Nodes[node], from, paths, to,
		transfer.PullRules{Limits: fetchLimits, Own: own, Placed: f.home.in(to), Mark: f.run.ID, Patience: patience})
	if out := new(remote.UnreachableError); errors.As(err, &out) {
		f.away[node] = err
	}
	f.got.New += res.Files
	f.got.Unfetched += res.Unfetched
	f.got.Left = append(append(f.got.Left, res.Skipped...), res.Moved...)
	return res, err
}

// silentLimit is how long a node has to answer that was given up before.
const silentLimit = 3 * time.Second

// answers reports whether a node that did not answer before does now. One that has
// just been given up is not asked.
func (f *fetching) answers(ctx context.Context, node int) bool {
	if node < len(f.at.Silent) && f.at.Silent[node] {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, silentLimit)
	defer cancel()
	_, err := f.at.Nodes[node].RunState(ctx, f.run.ID)
	return err == nil
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
	fault := &event.Fault{What: "bring the results home", Node: 0, Host: f.at.Names.Of(0), Why: cause.Error(),
		Next: "dlwb pull " + f.run.ID + " tries again while its cluster is there"}
	if ctx.Err() != nil {
		fault.Why = "interrupted"
	}
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
	end := event.StepEnded{Step: event.StepFetch, OK: err == nil, Skipped: nothing, Duration: took, Text: fetchText(got, run.Paths, at.Own)}
	if err != nil {
		end.Failure = event.FaultOf(err)
		end.Text = end.Failure.Why
	} else {
		f.dropCheckpoints(run)
		f.keepInS3(ctx, at, run)
	}
	slog.Debug("fetched", "run", id, "files", got.Files, "error", err)
	return errors.Join(err, at.Publish(end))
}

func fetchText(got event.ResultsFetched, asked []string, own string) string {
	if len(asked) == 0 && got.Files == 0 {
		if own != "" {
			return "nothing was written to " + own
		}
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
	if kept := f.owner.Kept; c.EndedAt != nil && (kept == nil || !kept(c)) {
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
