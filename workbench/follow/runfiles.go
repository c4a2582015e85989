package follow

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// nodeFiles follows the files of metrics that a run writes on one node. What is
// in them goes to the store beside what the run prints; which of the two is
// shown, curvesOf decides. A failure here is no failure of the run.
type nodeFiles struct {
	owner Owner
	run   string
	dir   string // of the run's record
	node  int
	ask   func(context.Context, job.FilesQuery, func(job.FilesNews) error) error
	dirs  []string // to look in, below the home directory
	root  string   // the code directory, which sources are told from
	own   string   // the directory of the run's own; empty: none

	files map[uint64]*nodeFile // by inode
	bases map[uint64]fileBase  // what was there before the run
	fresh bool                 // nobody has looked for bases yet
	now   *nodeFile            // whose bytes come; nil: they are nobody's
	full  bool
	known map[string]map[string][]uint32 // what is stored already, by source

	mu      sync.Mutex
	waiting []filePoint
}

// filePoint is a point to be stored; with back, all of its series from there on
// go first.
type filePoint struct {
	store.Point
	back bool
}

// filesAtOnce is how many points gather before they are stored.
const filesAtOnce = 20_000

// fileNodes are the nodes whose files are read: the head, where results are
// fetched from, and that of the rank which the charts come from.
func (t *Watch) fileNodes() []int {
	nodes := []int{0, t.run.Ranks[0].Node}
	if twin, is := t.run.Replicas[nodes[1]].(job.FileTwin); is {
		nodes[1] = twin.FilesOf()
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// watchFiles begins to follow the files of the run. The function that it
// returns reads what is left of them, when the run is over, and ends it.
func (t *Watch) watchFiles(ctx context.Context) (finish func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	var all []*nodeFiles
	var busy sync.WaitGroup
	for _, node := range t.fileNodes() {
		if reader, can := t.run.Replicas[node].(job.FileReader); can {
			f := newNodeFiles(t.run, t.owner, node, reader.MetricFiles)
			all = append(all, f)
			busy.Go(func() { f.follow(ctx) })
		}
	}
	return func(ctx context.Context) {
		stop()
		busy.Wait()
		lost := t.Lost()
		for _, f := range all {
			if ctx.Err() == nil && !lost[f.node] && !t.nodes[f.node].leaves() {
				f.rest(ctx)
			}
			f.end(ctx.Err() == nil)
			if f.full {
				_ = t.owner.Publish(event.Noticed{Level: "warning", Text: fmt.Sprintf("the files of metrics on node%d are longer than 1 GB together; their rest was not read", f.node)})
			}
		}
	}
}

func newNodeFiles(run Run, owner Owner, node int, ask func(context.Context, job.FilesQuery, func(job.FilesNews) error) error) *nodeFiles {
	f := &nodeFiles{
		owner: owner, run: run.ID, dir: run.Dir, node: node, ask: ask, root: run.Code, dirs: []string{run.Code + "/"}, own: run.Own,
		files: map[uint64]*nodeFile{}, bases: map[uint64]fileBase{}, known: map[string]map[string][]uint32{},
	}
	for _, p := range run.Results {
		f.dirs = append(f.dirs, path.Join(run.Code, filepath.ToSlash(p))+"/") // a link to elsewhere, perhaps
	}
	if run.Own != "" {
		f.dirs = append(f.dirs, run.Own+"/")
	}
	b, err := os.ReadFile(f.basesPath())
	f.fresh = err != nil || json.Unmarshal(b, &f.bases) != nil
	f.recall()
	return f
}

// basesPath is where it is kept what files held before the run: a dlwb that
// comes later can't find out any more.
func (f *nodeFiles) basesPath() string {
	return filepath.Join(f.dir, fmt.Sprintf("files-%d.json", f.node))
}

// recall finds out what of the files is stored already.
func (f *nodeFiles) recall() {
	all, err := f.owner.Store.Series(f.run)
	if err != nil {
		return
	}
	for _, v := range all {
		if v.Source == store.Stdout {
			continue
		}
		points, err := f.owner.Store.SeriesPoints(v, 0, 0)
		if err != nil {
			return
		}
		hashes := make([]uint32, len(points))
		for i, p := range points {
			hashes[i] = pointHash(metrics.Point{Value: p.Value, Step: p.Step, Epoch: p.Epoch})
		}
		if f.known[v.Source] == nil {
			f.known[v.Source] = map[string][]uint32{}
		}
		f.known[v.Source][v.Name] = hashes
	}
}

// filesAgain is the longest pause before a stream that ended is begun again.
const filesAgain = 30 * time.Second

// follow reads the files until ctx ends.
func (f *nodeFiles) follow(ctx context.Context) {
	pause := time.Second
	for ctx.Err() == nil && !f.full {
		began := time.Now()
		err := f.read(ctx, false)
		slog.Debug("files of metrics: stream ended", "run", f.run, "node", f.node, "error", err)
		if time.Since(began) > filesAgain {
			pause = time.Second
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, filesAgain)
	}
}

// restLimit bounds the reading of what is left when the run is over.
const restLimit = 20 * time.Second

// rest reads what is there and not yet read.
func (f *nodeFiles) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, restLimit)
	defer cancel()
	err := f.read(ctx, true)
	slog.Debug("files of metrics: rest", "run", f.run, "node", f.node, "error", err)
}

// read takes what the node tells of its files; once: until all was told.
func (f *nodeFiles) read(ctx context.Context, once bool) error {
	if f.full {
		return nil
	}
	r := job.FilesQuery{Dirs: f.dirs, Bases: f.fresh, Once: once}
	for _, file := range f.files {
		r.Known = append(r.Known, file.at)
	}
	f.now = nil
	return f.ask(ctx, r, f.take)
}

// take takes one thing that the node tells.
func (f *nodeFiles) take(m job.FilesNews) error {
	switch {
	case m.File != nil:
		if f.now = f.file(m.File); f.now != nil {
			f.now.begin(m.File)
		}
		return f.flush(filesAtOnce)
	case m.Base != nil:
		if len(f.bases) < mostBases && len(m.Base.End) <= 64 && m.Base.Size >= 0 {
			f.bases[m.Base.Inode] = fileBase{m.Base.Size, hex.EncodeToString(m.Base.End)}
		}
	case m.Full:
		f.full = true
	case m.Pass:
		f.keepBases()
		return f.flush(0)
	case f.now != nil:
		f.now.data(m.Data)
	}
	return nil
}

const (
	longestPath   = 4096
	mostNodeFiles = 256
	mostBases     = 2000
)

// keepBases writes down what files held before the run, once.
func (f *nodeFiles) keepBases() {
	if !f.fresh {
		return
	}
	f.fresh = false
	if b, err := json.Marshal(f.bases); err == nil {
		_ = os.WriteFile(f.basesPath(), b, 0o600)
	}
}

// file finds or begins a file; nil for one too many.
func (f *nodeFiles) file(h *job.FilePiece) *nodeFile {
	if file := f.files[h.Inode]; file != nil {
		return file
	}
	if len(f.files) >= mostNodeFiles || len(h.Path) > longestPath {
		return nil
	}
	clean := path.Clean(h.Path)
	source := strings.TrimPrefix(clean, f.root+"/")
	if rest, is := strings.CutPrefix(clean, f.own+"/"); is && f.own != "" {
		source = "DLWB_RESULTS/" + rest // the same for each run, so that runs can be compared
	}
	if f.node > 0 {
		source = fmt.Sprintf("node%d:%s", f.node, source)
	}
	if formatOf(clean) == metrics.TrainerState {
		source = trainerSource(source)
	}
	for inode, old := range f.files {
		if old.source == source && old.format != metrics.TrainerState { // another took its place
			old.end(errRewritten)
			delete(f.files, inode)
		}
	}
	file := &nodeFile{at: job.FileAt{Inode: h.Inode}, source: source, format: formatOf(clean), split: splitOf(source, formatOf(clean)),
		base: f.bases[h.Inode], seen: f.seenOf(source), put: f.put}
	f.files[h.Inode] = file
	return file
}

// trainerSource is the one name of a trainer's state, which is in each of its
// checkpoints, the newest with all that the older ones have.
func trainerSource(source string) string {
	dir, base := path.Split(source)
	dir = path.Clean(dir)
	if strings.HasPrefix(path.Base(dir), "checkpoint-") {
		dir = path.Dir(dir)
	}
	return path.Join(dir, base)
}

// seenOf is what is known of a source; files that follow each other in the same
// place share it.
func (f *nodeFiles) seenOf(source string) map[string][]uint32 {
	if f.known[source] == nil {
		f.known[source] = map[string][]uint32{}
	}
	return f.known[source]
}

// put takes a point of a file.
func (f *nodeFiles) put(p store.Point, back bool) {
	f.mu.Lock()
	f.waiting = append(f.waiting, filePoint{p, back})
	f.mu.Unlock()
}

// flush stores the points that wait, when there are more than some.
func (f *nodeFiles) flush(some int) error {
	f.mu.Lock()
	waiting := f.waiting
	if len(waiting) <= some {
		f.mu.Unlock()
		return nil
	}
	f.waiting = nil
	f.mu.Unlock()
	var points []store.Point
	for _, p := range waiting {
		if p.back {
			err := f.owner.Store.AddPoints(f.run, points)
			if err == nil {
				err = f.owner.Store.TakeBack(f.run, p.Name, p.Source, p.Ordinal)
			}
			if err != nil {
				return err
			}
			points = points[:0]
		}
		points = append(points, p.Point)
	}
	if err := f.owner.Store.AddPoints(f.run, points); err != nil {
		return err
	}
	f.owner.Changed()
	return nil
}

// end ends the parsers. When nothing more is to come, the last row of a file
// that has no end counts too.
func (f *nodeFiles) end(complete bool) {
	for _, file := range f.files {
		if complete {
			file.end(nil)
		} else {
			file.end(context.Canceled)
		}
	}
	if err := f.flush(0); err != nil {
		slog.Debug("files of metrics: store", "run", f.run, "node", f.node, "error", err)
	}
}
