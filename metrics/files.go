package metrics

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
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
	show := tidy(strings.TrimSpace(printed))
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

// fileAliases are the columns of stable-baselines' monitor.csv.
var fileAliases = map[string]string{"r": "episode/reward", "l": "episode/length"}

// place is where a row of a file belongs.
type place struct {
	step, epoch float64
	x           Axis
}

// takes takes a column that says where a row belongs, or how much there will
// be; false for one that is a series.
func (p *place) takes(name string, v float64) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	name = strings.TrimPrefix(name[strings.LastIndexByte(name, '/')+1:], "_")
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
	case strings.HasPrefix(name, "total_") && words[name[len("total_"):]] == never, name == "timestamp" || name == "runtime" || name == "wall_time":
	default:
		return false
	}
	return true
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
	c := csv.NewReader(r)
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
		columns[i] = strings.TrimSpace(strings.Clone(header[i]))
	}
	names := fileNames{}
	values := make([]float64, len(columns))
	for {
		cells, err := c.Read()
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read the CSV: %w", err)
		}
		csvRow(columns, cells, values, names, add)
	}
}

func csvRow(columns, cells []string, values []float64, names fileNames, add func(...Point)) {
	at := nowhere()
	for i, name := range columns {
		values[i] = math.NaN()
		if i >= len(cells) {
			continue
		}
		cell := strings.TrimSpace(cells[i])
		f, ok := number(cell, 0)
		columns[i] = name
		if !ok || f.next != len(cell) {
			values[i] = absentValue
			continue
		}
		values[i] = f.value
		if at.takes(name, f.value) {
			values[i] = absentValue
		}
	}
	for i, v := range values {
		if v != absentValue && i < len(cells) && columns[i] != "" {
			at.add(add, names.name(columns[i]), v)
		}
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
		var rest []keyed
		for _, key := range sortedKeys(entry) {
			v, ok := jsonNumber(entry[key])
			if ok && !at.takes(key, v) {
				rest = append(rest, keyed{key: key, value: v})
			}
		}
		for _, k := range rest {
			at.add(add, names.name(k.key), k.value)
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
	f, ok := number(text, 0)
	return f.value, ok && f.next == len(text)
}

// longestRow bounds a line of a file of JSON lines; longer ones are left out.
const longestRow = 1 << 20

// ReadJSONLines reads a file with one JSON object in each line, as
// LLaMA-Factory, OpenMMLab and fairseq write them.
func ReadJSONLines(r io.Reader, add func(...Point)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	names := fileNames{}
	var pairs []keyed
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) <= longestRow {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if found, ok := readDict(strings.TrimSpace(string(line)), pairs); ok {
			pairs = found
			jsonRow(found, names, add)
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

func jsonRow(pairs []keyed, names fileNames, add func(...Point)) {
	at := nowhere()
	rest := pairs[:0:0]
	for _, p := range pairs {
		if p.text == "" && len(p.key) <= 2*longestName && !at.takes(p.key, p.value) {
			rest = append(rest, p)
		}
	}
	for _, p := range rest {
		if at.x != AxisNone || classify(strings.ToLower(p.key)) >= weak {
			at.add(add, names.name(p.key), p.value)
		}
	}
}

// ReadEvents reads the scalars of an event file to its end and returns the
// damage that it passed over. A file that ends inside a record is not damaged:
// its writer is at work.
func ReadEvents(r io.Reader, add func(...Point)) ([]EventFault, error) {
	e := NewEvents(r, 0)
	names := fileNames{}
	for {
		scalars, err := e.Next()
		var fault EventFault
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

func sortedKeys(m map[string]json.RawMessage) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
