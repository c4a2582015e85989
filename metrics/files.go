package metrics

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/csvhead"
	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
	"github.com/dlwb/dlwb/metrics/tfevent"
	"github.com/dlwb/dlwb/metrics/wandb"
)

// Names in files are those that a program chose, so that all but the columns
// that say where a row belongs are series.

// fileNames gives the names of a file the form split/base.
type fileNames map[string]string

func (n fileNames) name(printed string) string {
	if show, ok := n[printed]; ok {
		return show
	}
	if len(n) >= mostTerms {
		clear(n)
	}
	// What Ray Tune writes as loss into progress.csv it writes under a name of its
	// own into the event file beside it.
	show := lexis.Tidy(strings.TrimPrefix(strings.TrimSpace(printed), "ray/tune/"))
	if s := lexis.Snake(show); s != strings.ToLower(show) && splits[s[:max(0, strings.IndexByte(s, '_'))]] != "" { // trainLoss
		show = s
	}
	if split, base := cutSplit(show); show != "" && split != "" && strings.IndexByte("_/", show[len(show)-len(base)-1]) >= 0 && strings.HasSuffix(show, base) {
		show = split + "/" + base
	}
	if alias, ok := aliases[strings.ToLower(show)]; ok {
		show = alias
	} else if alias, ok := fileAliases[show]; ok {
		show = alias
	}
	n[strings.Clone(printed)] = show
	return show
}

// fileAliases are columns as files name them, and as they are shown, by recipes.
var fileAliases = map[string]string{}

// ofRay are columns of Ray Tune about the trial, which say nothing of the training.
var ofRay = set(`time_this_iter_s time_total_s time_since_restore iterations_since_restore timesteps_since_restore done pid`)

// place is where a row of a file belongs.
type place struct {
	step, epoch float64
	x           Axis

	batch   float64
	inEpoch bool // the row counts batches

	total float64 // of steps: so many there will be or, where it goes up, there were
	rank  float64 // which process wrote the row; 0: the first, or it does not say
}

var timeName = pattern.New(`(time|date|stamp|^ts|_ts|_at)$`)

// takes takes a column that says where a row belongs, or how much there will
// be; false for one that is a series.
func (p *place) takes(name string, v float64) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	of := strings.LastIndexByte(name, '/')
	if of > 0 && sense.Of(name[:of]) >= weak { // loss/epoch
		return false
	}
	name = strings.TrimPrefix(name[of+1:], "_")
	if u, _ := unitOf(name); u == unitBatch && v == math.Trunc(v) { // counts anew in each epoch
		p.batch, p.inEpoch = v, true
		return true
	}
	switch {
	case name == "step" || globalWords[name]:
		p.step, p.x = v, AxisStep
	case name == "iter" || name == "iteration" || name == "num_batches_tracked":
		if p.x != AxisStep {
			p.step, p.x = v, AxisStep
		}
	case name == "epoch":
		p.epoch = v
		p.x = max(p.x, AxisEpoch)
	case lexis.MayRun(name):
		p.total = v
	case (name == "rank" || name == "global_rank" || name == "process_index") && v == math.Trunc(v):
		p.rank = v
	case name == "nevals" || name == "n_parameters" || name == "num_parameters" || name == "num_params": // of the model, or of what was tried for a row
	case strings.HasPrefix(name, "total_") && sense.Words[name[len("total_"):]] == never, name == "timestamp" || timeName.MatchString(name) && lexis.IsTimestamp(v) || name == "runtime" || name == "wall_time" || name == "wall time", ofRay[name]:
	default:
		return false
	}
	return true
}

// mayRun reports whether nothing says where a row belongs but for a total of steps.
func (p *place) mayRun() bool {
	return p.x == AxisNone && !p.inEpoch && math.IsNaN(p.epoch) && p.total > 0 && p.total == math.Trunc(p.total)
}

// runsFrom reports whether the total of steps is more than that of the row before.
func (p *place) runsFrom(before place) bool {
	return p.mayRun() && before.mayRun() && p.total > before.total
}

// inRun makes a step of the run of a batch in an epoch.
func (p *place) inRun(run *counters) {
	if !p.inEpoch || p.x == AxisStep {
		return
	}
	var found []counter
	if !math.IsNaN(p.epoch) {
		found = append(found, counter{unit: unitEpoch, n: p.epoch})
	}
	p.x = run.take(append(found, counter{unit: unitStep, n: p.batch}))
	if run.hasStep {
		p.step, p.x = float64(run.progress.Step), AxisStep
	}
}

func (p *place) point(name string, v float64) Point {
	q := Point{Name: name, Value: v, X: p.x}
	if p.x == AxisStep && math.Abs(p.step) <= largestCount {
		q.Step = new(int64(p.step))
	}
	if !math.IsNaN(p.epoch) {
		q.Epoch = new(p.epoch)
	}
	return q
}

// add adds a value of a row, when it has a name.
func (p *place) add(add func(...Point), name string, v float64) {
	if name != "" {
		add(p.point(name, v))
	}
}

func nowhere() place { return place{epoch: math.NaN()} }

// ReadCSV reads a table of metrics with a header: Lightning's metrics.csv,
// timm's summary.csv, Ultralytics's results.csv, stable-baselines's monitor.csv.
// Empty cells are no values.
func ReadCSV(r io.Reader, add func(...Point)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	start := csvhead.Until(in)
	c := csv.NewReader(io.MultiReader(bytes.NewReader(start), in))
	c.Comma = csvhead.Separator(start)
	c.Comment, c.FieldsPerRecord, c.LazyQuotes, c.ReuseRecord, c.TrimLeadingSpace = '#', -1, true, true, true
	header, err := c.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("read the header of the CSV: %w", err)
	}
	columns := make([]string, min(len(header), mostSeries))
	for i := range columns {
		columns[i] = grid.Column(strings.TrimSpace(strings.Clone(header[i])))
	}
	rows := csvRows{columns: columns, long: longOf(columns), names: fileNames{}, add: add}
	defer rows.end()
	for {
		cells, err := c.Read()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read the CSV: %w", err)
		}
		rows.read(cells)
	}
}

// absentValue marks a cell without a value; no metric is this number.
const absentValue = -math.MaxFloat64

// ReadTrainerState reads the trainer_state.json of transformers: its log_history.
func ReadTrainerState(r io.Reader, add func(...Point)) (Progress, error) {
	var state struct {
		Epoch      *float64                     `json:"epoch"`
		Epochs     float64                      `json:"num_train_epochs"`
		Step       float64                      `json:"global_step"`
		Steps      float64                      `json:"max_steps"`
		LogHistory []map[string]json.RawMessage `json:"log_history"`
	}
	if err := json.NewDecoder(r).Decode(&state); err != nil {
		return Progress{}, fmt.Errorf("read the state of the trainer: %w", err)
	}
	names := fileNames{}
	for _, entry := range state.LogHistory {
		if entry["train_runtime"] != nil { // of the whole run
			continue
		}
		at := nowhere()
		var rest []braces.Pair
		for _, key := range slices.Sorted(maps.Keys(entry)) {
			v, ok := jsonNumber(entry[key])
			if ok && !at.takes(key, v) {
				rest = append(rest, braces.Pair{Key: key, Value: v})
			}
		}
		for _, k := range rest {
			at.add(add, names.name(k.Key), k.Value)
		}
	}
	p := Progress{Epochs: state.Epochs, Step: count(state.Step), Steps: count(state.Steps)}
	if state.Epoch != nil {
		p.Epoch = *state.Epoch
	}
	return p, nil
}

func count(v float64) int64 {
	if !(v >= 0 && v <= largestCount) {
		return 0
	}
	return int64(v)
}

// jsonNumber reads a number, also as a string ("0.25", "nan").
func jsonNumber(raw json.RawMessage) (float64, bool) {
	text := strings.Trim(string(raw), `"`)
	f, ok := lexis.Number(text, 0)
	return f.Value, ok && f.Next == len(text)
}

// longestRow bounds a line of a file of JSON lines; longer ones are left out.
const longestRow = 1 << 20

// ReadJSONLines reads a file with one JSON object in each line, as
// LLaMA-Factory, OpenMMLab and fairseq write them.
func ReadJSONLines(r io.Reader, add func(...Point)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	rows := jsonRows{names: fileNames{}, add: add}
	defer rows.end()
	var pairs []braces.Pair
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) <= longestRow {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if found, ok := braces.Read(strings.TrimSpace(string(line)), pairs); ok {
			pairs = found
			rows.read(found)
		}
		line = line[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the JSON lines: %w", err)
		}
	}
}

// ReadWandB reads the file that W&B keeps of a run. It returns the damage that was
// passed over.
func ReadWandB(r io.Reader, add func(...Point)) ([]tfevent.Fault, error) {
	names := fileNames{}
	return wandb.Read(r, func(values []wandb.Value) {
		at, stamp := nowhere(), time.Time{}
		rest := values[:0]
		for _, v := range values {
			if v.Key == "_timestamp" {
				stamp = time.Unix(0, int64(min(max(v.Number, 0), 9e9)*1e9))
			} else if len(v.Key) <= 2*longestName && !at.takes(v.Key, v.Number) {
				rest = append(rest, v)
			}
		}
		for _, v := range rest {
			if name := names.name(v.Key); name != "" {
				p := at.point(name, v.Number)
				p.Time = stamp
				add(p)
			}
		}
	})
}

// mostJSON bounds a file that is one JSON value.
const mostJSON = 64 << 20

// ReadJSON reads a file that is one JSON value: a list with an object for each
// row, or the lists by name that Keras keeps as its history.
func ReadJSON(r io.Reader, add func(...Point)) error {
	text, err := io.ReadAll(io.LimitReader(r, mostJSON))
	if err != nil {
		return fmt.Errorf("read the JSON: %w", err)
	}
	names := fileNames{}
	var rows []json.RawMessage
	if json.Unmarshal(text, &rows) == nil {
		all := jsonRows{names: names, add: add}
		for _, row := range rows {
			if pairs, ok := braces.Read(oneLine(row), nil); ok {
				all.read(pairs)
			}
		}
		all.end()
		return nil
	}
	var lists map[string]json.RawMessage
	if err := json.Unmarshal(text, &lists); err != nil {
		return fmt.Errorf("read the JSON: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		var values []json.RawMessage
		if json.Unmarshal(lists[name], &values) != nil || new(place).takes(name, 0) {
			continue
		}
		for i, raw := range values {
			if v, ok := jsonNumber(raw); ok {
				add(Point{Name: names.name(name), Value: v, Epoch: new(float64(i)), X: AxisEpoch})
			}
		}
	}
	return nil
}

// oneLine is a JSON value without the line ends between its members.
func oneLine(raw json.RawMessage) string {
	return strings.Join(strings.FieldsFunc(string(raw), func(c rune) bool { return c == '\n' || c == '\r' }), " ")
}

// ReadEvents reads the scalars of an event file to its end and returns the
// damage that it passed over. A file that ends inside a record is not damaged:
// its writer is at work.
func ReadEvents(r io.Reader, add func(...Point)) ([]tfevent.Fault, error) {
	e := tfevent.New(r, 0)
	names := fileNames{}
	for {
		scalars, err := e.Next()
		var fault tfevent.Fault
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return e.Faults, nil
		case errors.As(err, &fault):
			return append(e.Faults, fault), nil
		default:
			return e.Faults, err
		}
		for _, s := range scalars {
			if name := names.name(s.Tag); name != "" && (s.Tag != "hp_metric" || s.Value != -1) { // Lightning writes that before there is a result
				add(Point{Name: name, Step: new(s.Step), Value: s.Value, Time: s.Time, X: AxisStep})
			}
		}
	}
}
