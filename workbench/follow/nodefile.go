package follow

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"path"
	"strings"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/store"
)

// nodeFile is one file of metrics on a node, as far as it was read. Its bytes
// go through a pipe to the parser of its format, which keeps the part of a row
// or record that has not come whole yet.
type nodeFile struct {
	at     job.FileAt // how far it was read
	source string     // its path, below the code directory
	format metrics.Format
	split  string // that its directory names

	base   fileBase
	before []byte // what was in it before the run, until it is known to be that

	state []byte // of a trainer: it is parsed when it is whole
	whole int64  // its length
	pipe  *io.PipeWriter
	over  chan struct{} // closed when the parser has ended
	seen  map[string][]uint32
	count map[string]int // of the present reading, by series
	put   func(p store.Point, back bool)
}

// fileBase is what a file held before the run: its length and last bytes.
type fileBase struct {
	Size int64  `json:"size"`
	End  string `json:"end"` // in hex, at most 64 bytes
}

// longestBase bounds what is kept of an older file to see whether it was
// appended to; longer ones are taken to be.
const longestBase = 8 << 20

// longestHeader bounds what is kept of a longer one, for a table's header.
const longestHeader = 8 << 10

// formatOf tells a file's format by its name.
func formatOf(name string) metrics.Format {
	switch base := path.Base(name); {
	case strings.Contains(base, "tfevents"):
		return metrics.EventFile
	case strings.HasSuffix(base, ".csv"):
		return metrics.CSV
	case base == "trainer_state.json":
		return metrics.TrainerState
	}
	return metrics.JSONLines
}

// splitDirs are directories of event files that say which data a series is of:
// Keras has train and validation, TensorFlow's estimators eval, and PyTorch's
// add_scalars makes loss_train and loss_val.
var splitDirs = map[string]string{"train": "train", "training": "train", "val": "val", "valid": "val",
	"validation": "val", "dev": "val", "eval": "eval", "test": "test"}

func splitOf(source string, format metrics.Format) string {
	if format != metrics.EventFile {
		return ""
	}
	dir := path.Base(path.Dir(source))
	return splitDirs[strings.ToLower(dir[strings.LastIndexByte(dir, '_')+1:])]
}

// begin takes the head of the next piece. A piece that does not follow the one
// before it begins the file again.
func (f *nodeFile) begin(h *job.FilePiece) {
	if h.Next != f.at.Next || f.format == metrics.TrainerState || f.pipe == nil && f.state == nil {
		f.end(errRewritten)
		f.at.Next, f.before, f.count = h.Next, nil, map[string]int{}
		if h.Size < f.base.Size {
			f.base = fileBase{} // it was written anew
		}
		if f.format == metrics.TrainerState {
			f.state, f.whole = []byte{}, h.Length
		} else {
			f.parse()
		}
	}
	f.at.Sum = h.Sum
}

var errRewritten = errors.New("the file is read from its beginning again")

// data takes the bytes of a piece.
func (f *nodeFile) data(p []byte) {
	f.at.Next += int64(len(p))
	if f.format == metrics.TrainerState {
		if f.state = append(f.state, p...); int64(len(f.state)) >= f.whole {
			_, _ = metrics.ReadTrainerState(bytes.NewReader(f.state), f.points)
			f.state = nil
		}
		return
	}
	if f.base.Size > 0 {
		if p = f.pass(p); p == nil {
			return
		}
	}
	_, _ = f.pipe.Write(p) // the parser may have had enough of it
}

// pass lets by what was in the file before the run, but for the header of a
// table, and returns what is to be parsed.
func (f *nodeFile) pass(p []byte) []byte {
	if f.base.Size > longestBase {
		over := f.at.Next - f.base.Size
		f.before = append(f.before, p[:min(len(p), max(0, longestHeader-len(f.before)))]...)
		if over <= 0 {
			return nil
		}
		p = p[max(0, len(p)-int(over)):]
		head := header(f.before, f.format)
		f.base = fileBase{}
		return append(head, p...)
	}
	f.before = append(f.before, p...)
	size := int(f.base.Size)
	if len(f.before) < size {
		return nil
	}
	all := f.before
	end, _ := hex.DecodeString(f.base.End)
	if bytes.HasSuffix(all[:size], end) {
		all = append(header(all[:size], f.format), all[size:]...)
	}
	f.base, f.before = fileBase{}, nil
	return all
}

// header is the first line of a table.
func header(text []byte, format metrics.Format) []byte {
	if format != metrics.CSV {
		return nil
	}
	line, _, ok := bytes.Cut(text, []byte{'\n'})
	if !ok {
		return nil
	}
	return append(bytes.Clone(line), '\n')
}

// parse starts the parser.
func (f *nodeFile) parse() {
	r, w := io.Pipe()
	f.pipe, f.over = w, make(chan struct{})
	over := f.over
	go func() {
		defer close(over)
		var err error
		switch f.format {
		case metrics.EventFile:
			_, err = metrics.ReadEvents(r, f.points)
		case metrics.CSV:
			err = metrics.ReadCSV(r, f.points)
		default:
			err = metrics.ReadJSONLines(r, f.points)
		}
		if err == nil {
			err = io.EOF
		}
		_ = r.CloseWithError(err) // what comes behind damage is let by
	}()
}

// end ends the parser: with nil it takes what is left as the file's end.
func (f *nodeFile) end(err error) {
	if f.pipe == nil {
		return
	}
	_ = f.pipe.CloseWithError(err)
	<-f.over
	f.pipe = nil
}

// mostFileSeries bounds the series of one file.
const mostFileSeries = 1024

// points takes what the parser found. Of a file that is read again, points that
// are as they were are passed over; from the first that is not, they replace
// what there was.
func (f *nodeFile) points(points ...metrics.Point) {
	for _, p := range points {
		if f.split != "" && metrics.Split(p.Name) == "" {
			p.Name = f.split + "/" + strings.TrimPrefix(p.Name, "epoch_") // Keras names them so
		}
		hashes, known := f.seen[p.Name]
		if !known && len(f.seen) >= mostFileSeries {
			continue
		}
		n, hash := f.count[p.Name], pointHash(p)
		f.count[p.Name]++
		if n < len(hashes) && hashes[n] == hash {
			continue
		}
		if p.Time.IsZero() {
			p.Time = now()
		}
		f.seen[p.Name] = append(hashes[:n], hash)
		f.put(store.Point{Name: p.Name, Source: f.source, Format: string(f.format), Ordinal: int64(n),
			Step: p.Step, Epoch: p.Epoch, Time: p.Time, Value: p.Value, By: store.Ordinal + store.By(p.X)}, n < len(hashes))
	}
}

func pointHash(p metrics.Point) uint32 {
	h := fnv.New32a()
	write := func(v uint64) {
		for range 8 {
			_, _ = h.Write([]byte{byte(v)})
			v >>= 8
		}
	}
	write(math.Float64bits(p.Value))
	if p.Step != nil {
		write(uint64(*p.Step))
	}
	if p.Epoch != nil {
		write(math.Float64bits(*p.Epoch))
	}
	return h.Sum32()
}
