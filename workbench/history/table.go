package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/metrics/goal"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
)

// Query says which runs are wanted, and in which order.
type Query struct {
	// Filter is conditions such as "loss<2 and engine=torchrun"; see
	// Fields for what can be asked. Empty: all runs.
	Filter string
	// Sort is a field or a series, several with commas between, each with "-"
	// in front for the greatest first. Empty: newest first.
	Sort string
	// Limit is how many at most; 0: all.
	Limit int
}

// Table is runs with the series that the question named.
type Table struct {
	Runs []event.RunInfo `json:"runs"`
	// Columns are the series that were asked for, Cells their values, run by
	// run; empty where a run does not have one.
	Columns []string   `json:"columns"`
	Cells   [][]string `json:"cells"`
}

// Field is something of a run that can be asked for by name.
type Field struct {
	Name, Doc string
	get       func(h *History, r event.RunInfo) datum
	words     []string // that it can be, besides those that are on record; nil: any
	also      []string // what people call it elsewhere
}

// datum is a value to compare: a number, or a text.
type datum struct {
	number float64
	text   string
	kind   datumKind
}

type datumKind int

const (
	missing datumKind = iota
	isText
	isAmount
	isSeconds
	isTime // Unix seconds
)

func textOf(s string) datum { return datum{text: s, kind: isText} }

func amount(v float64) datum { return datum{number: v, kind: isAmount} }

// Fields are what can be asked of a run besides the last value of any of its
// series, by its name, and the best one, by "best." before it.
var Fields = []Field{
	{Name: "id", Doc: "the id of the run", get: func(_ *History, r event.RunInfo) datum { return textOf(r.ID) }, also: []string{"run"}},
	{Name: "cluster", Doc: "its cluster", get: func(_ *History, r event.RunInfo) datum { return textOf(r.Cluster) }},
	{Name: "profile", Doc: "the name of its profile", get: func(_ *History, r event.RunInfo) datum { return textOf(r.Profile) }, also: []string{"name"}},
	{Name: "provider", Doc: "where its machines came from: local, hosts, ec2 …", get: func(h *History, r event.RunInfo) datum {
		recipe, err := h.Recipe(r.ID)
		if err != nil || recipe.Provider == "" {
			return datum{}
		}
		return textOf(recipe.Provider)
	}, words: providers.Names(), also: []string{"where"}},
	{Name: "engine", Doc: "torchrun, plain …", get: func(_ *History, r event.RunInfo) datum { return textOf(r.Engine) }, words: engine.Names(), also: []string{"launcher"}},
	{Name: "command", Doc: "the training command", get: func(_ *History, r event.RunInfo) datum { return textOf(r.Command) }},
	{Name: "verdict", Doc: strings.Join(verdicts, ", "), get: func(_ *History, r event.RunInfo) datum { return textOf(runVerdict(r)) }, words: verdicts,
		also: []string{"state", "status", "result", "phase"}},
	{Name: "exit", Doc: "its exit code", also: []string{"code"}, get: func(_ *History, r event.RunInfo) datum {
		if r.ExitCode == nil {
			return datum{}
		}
		return amount(float64(*r.ExitCode))
	}},
	{Name: "world_size", Doc: "how many ranks it has", also: []string{"ranks"}, get: func(_ *History, r event.RunInfo) datum { return amount(float64(r.WorldSize)) }},
	{Name: "started", Doc: "when it began: 2026-03-01, which is all of that day, 2026-03-01T12:00, today, yesterday", also: []string{"date", "day", "when", "created", "time", "since", "on"}, get: func(_ *History, r event.RunInfo) datum {
		return datum{number: float64(r.StartedAt.Unix()), kind: isTime}
	}},
	{Name: "age", Doc: "how long ago that was: 90m, 2h, 3d", get: func(_ *History, r event.RunInfo) datum {
		return datum{number: time.Since(r.StartedAt).Seconds(), kind: isSeconds}
	}},
	{Name: "took", Doc: "how long it took, or has taken: 30s, 2h", also: []string{"duration"}, get: func(_ *History, r event.RunInfo) datum {
		return datum{number: r.Took(now()).Seconds(), kind: isSeconds}
	}},
	{Name: "cost", Doc: "what it cost, in US dollars", also: []string{"price"}, get: func(_ *History, r event.RunInfo) datum { return amount(r.Cost) }},
	{Name: "note", Doc: "its note", get: func(_ *History, r event.RunInfo) datum { return textOf(r.Note) }},
	{Name: "starred", Doc: "yes or no", get: func(_ *History, r event.RunInfo) datum { return textOf(yesNo(r.Starred)) }, words: []string{"yes", "no"}},
	{Name: "commit", Doc: "the git commit of its code", get: func(h *History, r event.RunInfo) datum {
		return h.gitOf(r, func(g *GitState) string { return g.Commit })
	}},
	{Name: "branch", Doc: "the git branch of its code", get: func(h *History, r event.RunInfo) datum {
		return h.gitOf(r, func(g *GitState) string { return g.Branch })
	}},
}

// verdicts are what a run can have come to, in words.
var verdicts = func() []string {
	var words []string
	for _, v := range event.Verdicts {
		words = append(words, string(v))
	}
	return append(words, "running")
}()

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (h *History) gitOf(r event.RunInfo, get func(*GitState) string) datum {
	recipe, err := h.Recipe(r.ID)
	if err != nil || recipe.Git == nil {
		return datum{}
	}
	return textOf(get(recipe.Git))
}

func runVerdict(r event.RunInfo) string {
	if r.EndedAt == nil {
		return "running"
	}
	return string(r.Verdict)
}

// BadQuery says that a question can't be answered as it was asked.
type BadQuery struct{ *event.Fault }

// Unwrap gives the fault.
func (b *BadQuery) Unwrap() error { return b.Fault }

// RunTable lists runs as a question asks for them. The error is a *BadQuery where it
// is the question's.
func (h *History) RunTable(q Query) (Table, error) {
	table := Table{Runs: []event.RunInfo{}, Columns: []string{}, Cells: [][]string{}}
	if q.Limit < 0 {
		return table, &BadQuery{&event.Fault{What: fmt.Sprintf("list %d runs", q.Limit), Node: -1, Why: "that is less than none", Next: "name how many runs at most; 0 is all"}}
	}
	filter, err := parseFilter(q.Filter)
	if err != nil {
		return table, err
	}
	runs, err := h.records.Runs()
	if err != nil {
		return table, err
	}
	keys := sortKeys(q.Sort)
	look := &lookup{h: h, values: map[[2]string]datum{}}
	for _, name := range append(filter.names(), keyNames(keys)...) {
		if fieldOf(name) == nil && !slices.Contains(table.Columns, name) {
			if !look.known(runs, name) {
				return table, unknownField(name, look.names)
			}
			table.Columns = append(table.Columns, name)
		}
	}
	if err := filter.check(look, runs, q.Filter); err != nil {
		return table, err
	}
	for _, r := range runs {
		if filter.accepts(look, r) {
			table.Runs = append(table.Runs, r)
		}
	}
	slices.SortStableFunc(table.Runs, func(a, b event.RunInfo) int { return compareRuns(look, keys, a, b) })
	if q.Limit > 0 {
		table.Runs = table.Runs[:min(q.Limit, len(table.Runs))]
	}
	for _, r := range table.Runs {
		cells := make([]string, len(table.Columns))
		for i, name := range table.Columns {
			if d := look.of(r, name); d.kind != missing {
				cells[i] = strconv.FormatFloat(d.number, 'g', 5, 64)
			}
		}
		table.Cells = append(table.Cells, cells)
	}
	return table, nil
}

// lookup finds the values of runs by name, each once.
type lookup struct {
	h      *History
	values map[[2]string]datum
	names  []string
}

func fieldOf(name string) *Field {
	for i := range Fields {
		if Fields[i].Name == name {
			return &Fields[i]
		}
	}
	return nil
}

func (l *lookup) of(r event.RunInfo, name string) datum {
	key := [2]string{r.ID, name}
	if d, ok := l.values[key]; ok {
		return d
	}
	var d datum
	if f := fieldOf(name); f != nil {
		d = f.get(l.h, r)
	} else {
		d = l.metric(r, name)
	}
	l.values[key] = d
	return d
}

// metric is the last value of a series, or the best one.
func (l *lookup) metric(r event.RunInfo, name string) datum {
	curves, err := l.h.curves(r.ID)
	if err != nil {
		return datum{}
	}
	wanted, best := strings.CutPrefix(name, "best.")
	for _, c := range curves {
		if !slices.Contains(l.names, c.name) {
			l.names = append(l.names, c.name)
		}
		if c.name != wanted {
			continue
		}
		if !best {
			e, err := l.h.endsOf(c, goal.None)
			if err != nil {
				return datum{}
			}
			return amount(e.last.Value)
		}
		if info, err := l.h.seriesInfo(c); err == nil && info.Best != nil {
			return amount(info.Best.Value)
		}
	}
	return datum{}
}

// known reports whether any run has a series.
func (l *lookup) known(runs []event.RunInfo, name string) bool {
	found := len(runs) == 0
	for _, r := range runs {
		found = l.of(r, name).kind != missing || found
	}
	return found
}

// sortKey is one field to sort by.
type sortKey struct {
	name string
	down bool
}

func sortKeys(text string) []sortKey {
	var keys []sortKey
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" {
			name, down := strings.CutPrefix(word, "-")
			keys = append(keys, sortKey{name, down})
		}
	}
	return keys
}

func keyNames(keys []sortKey) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// compareRuns orders two runs; one without a value comes last either way.
func compareRuns(l *lookup, keys []sortKey, a, b event.RunInfo) int {
	for _, k := range keys {
		x, y := l.of(a, k.name), l.of(b, k.name)
		xNone, yNone := x.none(), y.none()
		if xNone || yNone {
			if xNone != yNone {
				return map[bool]int{true: 1, false: -1}[xNone]
			}
			continue
		}
		c := cmp.Compare(x.number, y.number)
		if x.kind == isText {
			c = strings.Compare(strings.ToLower(x.text), strings.ToLower(y.text))
		}
		if k.down {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func (d datum) none() bool { return d.kind == missing || math.IsNaN(d.number) }

func unknownField(name string, known []string) error {
	nearest := nearword.Nearest(name, append(fieldNames(), known...))
	for _, f := range Fields {
		if slices.Contains(f.also, strings.ToLower(name)) {
			nearest = f.Name
		}
	}
	f := &event.Fault{What: fmt.Sprintf("find runs by %q", name), Node: -1, Why: "no run has a series of that name, and it is no field of runs",
		Next: "fields: " + strings.Join(fieldNames(), ", ")}
	if len(known) > 0 {
		slices.Sort(known)
		f.Next += "; series: " + strings.Join(known[:min(len(known), 30)], ", ")
	}
	if nearest != "" {
		f.Next = "did you mean " + nearest + "? " + f.Next
	}
	return &BadQuery{f}
}

func fieldNames() []string {
	var names []string
	for _, f := range Fields {
		names = append(names, f.Name)
	}
	return names
}
