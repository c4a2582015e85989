package metrics

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/loghead"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// Bounds of a table.
const (
	mostColumns = 64
	mostRows    = 256 // of a box of names and values
	longestWait = 400 // lines between a header and its rows
)

// tables reads tables that are printed line by line: a header with rows of
// numbers below it, and boxes with a name and a value in each row.
type tables struct {
	columns []column
	waited  int
	evals   bool // rows are of classes: that of all counts
	section string
	guess   []string     // the cells of a line that may be a header, until the next
	guessed bool         // nothing but its form told the header
	comma   byte         // what is between the cells; 0: bars or wide gaps
	top     string       // the line of the header or the guess,
	ruled   grid.Columns // and where a rule below it says that the columns begin
	splits  []string     // of the columns, of a table whose rows are metrics
	of      string       // what a title above a header says that its rows are of
	groups  []string     // what the line above a header calls its groups of columns
	rows    []row
	paired  bool // the lines are rows of names and numbers without walls
	headed  bool // a logger printed the header, and so the rows
}

// message is what a logger printed of a table, each line of which has a head: that of the header
// shows it. Without one, what looks like a head is the first cell of a row.
func (t *tables) message(line string) string {
	line = strings.TrimSuffix(line, ` \`) // a data frame that goes on below: it is no name, and the index of the rows has none
	from := loghead.Title(line)
	if t.guess == nil && len(t.columns) == 0 {
		t.headed = from > 0
	}
	if !t.headed {
		return line
	}
	return line[from:]
}

type column struct {
	term
	unit unit
}

type row struct {
	key   string
	value float64
	real  bool
	in    string // the section
}

// firstColumns are what the first column of a table of results is called.
var firstColumns = map[string]unit{
	"epoch": unitEpoch, "epochs": unitEpoch, "e": unitEpoch, "iter": unitStep, "iteration": unitStep, "step": unitStep, "steps": unitStep, "round": unitStep, "it": unitStep, "it.": unitStep,
	"#": unitStep, "class": noUnit, "classes": noUnit,
}

// mayBeHeader looks cheaply whether a line can be the header of a table.
func mayBeHeader(line string) bool {
	i := len(line) - len(strings.TrimLeft(line, " \t|│┃║"))
	if i >= len(line) || strings.IndexByte("eEiIsSrRcC#", line[i]) < 0 {
		return false
	}
	end := i
	for end < len(line) && (lexis.IsLetter(line[end]) || line[end] == '#') {
		end++
	}
	if _, ok := firstColumns[strings.ToLower(line[i:end])]; !ok {
		return false
	}
	return end < len(line) && (line[end] == '\t' || strings.HasPrefix(line[end:], "  ") || strings.ContainsAny(line[end:], grid.Walls))
}

// header takes a line as the header of the rows to come.
func (t *tables) header(line string, names understood) bool {
	found := grid.Cells(line)
	if len(found) < 2 || len(found) > mostColumns {
		return false
	}
	_, evals := map[string]bool{"class": true, "classes": true}[strings.ToLower(found[0])]
	if evals && strings.IndexByte(line, '|') < 0 { // "mAP@.5 mAP@.5:.95": wide names are a blank apart
		found = strings.Fields(line)
	}
	columns := make([]column, 0, len(found))
	scores := 0
	group := ""
	for i, name := range found {
		name, group = grid.Group(strings.TrimSuffix(name, ":"), group)
		if len(name) > 40 || strings.ContainsAny(name, "=") || strings.Contains(name, ": ") || grid.HasValue(name) {
			return false
		}
		u, first := firstColumns[strings.ToLower(name)]
		if i == 0 && !first {
			return false
		}
		said := t.of
		if evals {
			said = "val"
		}
		c := column{term: names.term(strings.Clone(name), said), unit: u}
		if len(name) == 1 && u == noUnit {
			c.kind = unknown
			c.show = lexis.Tidy(strings.TrimPrefix(said+"/"+name, "/"))
		}
		if group != "" && slices.ContainsFunc(columns, func(before column) bool { return before.show == c.show }) {
			c.term = names.term(group+"_"+name, said)
		}
		if c.kind >= weak {
			scores++
		}
		if columns = append(columns, c); i == 0 && u == noUnit {
			columns[0].kind = never
		}
	}
	t.distinct(columns, names)
	if scores == 0 && !(columns[0].unit == unitEpoch && strings.HasSuffix(strings.ToLower(found[1]), "mem")) {
		return false
	}
	t.columns, t.waited, t.evals, t.guessed, t.comma, t.ruled, t.top = columns, 0, evals, false, 0, nil, strings.Clone(line)
	return true
}

// cut cuts a row as its header was cut.
func (t *tables) cut(line string) []string {
	if t.ruled != nil {
		return t.ruled.Cut(line)
	}
	if t.comma == 0 {
		got := grid.Cells(grid.Apart(grid.Open(line)))
		if n := max(len(t.guess), len(t.columns)); n > len(got) { // a sign fills the gap, or the wall is behind the first only
			if all := grid.Spread(line, n); all != nil {
				return all
			}
			if placed := grid.Under(t.top, line); len(placed) == n {
				return placed
			}
		}
		return got
	}
	got := strings.Split(line, string(t.comma))
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	return got
}

// fewestCells are those of a header that only its form tells.
const fewestCells = 3

// mayBeGuessed keeps a line of names alone, which the line behind it may make a
// header.
func (t *tables) mayBeGuessed(line string) {
	line = grid.Headed(line)
	i := lexis.SkipBlanks(line, 0)
	if i < len(line) && line[i] == '|' {
		i = lexis.SkipBlanks(line, i+1)
	}
	if i >= len(line) || !lexis.IsLetter(line[i]) && line[i] != '#' || strings.ContainsAny(line, ":={}\"'") {
		return
	}
	comma := byte(0)
	for _, c := range [...]byte{',', ';'} {
		if strings.Count(line, string(c)) >= fewestCells-1 {
			comma = c
		}
	}
	if comma == 0 && t.spaced(line) {
		return
	}
	if comma == 0 && !strings.Contains(line, "  ") && strings.IndexByte(line, '|') < 0 && strings.IndexByte(line, '\t') < 0 {
		return
	}
	before := t.comma
	t.comma, t.ruled = comma, nil
	found := t.cut(line)
	if len(found) < fewestCells && !(len(found) == 2 && line[0] == ' ') || len(found) > mostColumns {
		t.comma = before
		return
	}
	for _, name := range found {
		if name == "" || grid.HasValue(name) || len(name) > 24 || strings.Count(name, " ") > 2 {
			t.comma = before
			return
		}
	}
	t.guess, t.columns, t.top = nil, nil, strings.Clone(line)
	for _, name := range found {
		t.guess = append(t.guess, strings.Clone(name))
	}
}

// proven makes a header of the line before when this one is a row of it: a count
// first, and numbers in most of the other cells. A rule between the two is passed.
func (t *tables) proven(line string, names understood) {
	if strings.Trim(line, " -=+|:─━┼_") == "" {
		t.rule(line)
		return
	}
	guess, got := t.guess, t.cut(line)
	t.guess = nil
	if len(got) == len(guess) && strings.EqualFold(got[0], "value") { // all that there is: names, and below them values
		for i, cell := range got[1:] {
			if f, ok := grid.Number(cell); ok {
				t.rows = append(t.rows, row{key: guess[i+1], value: f.Value, real: f.Real})
			}
		}
		return
	}
	rows := len(got) > 1 && splits[strings.ToLower(got[0])] != ""             // of data, each by its name
	if len(got) == len(guess)+1 && (rows || strings.HasSuffix(got[0], ":")) { // rows have a number or a name before them that no column names
		guess = slices.Insert(guess, 0, "#")
	}
	if cells := grid.Spread(line, len(guess)); len(got) != len(guess) && cells != nil {
		got, t.comma = cells, 0
	}
	if len(got) != len(guess) && t.comma == 0 {
		guess, got = grid.Words(t.top, line)
	}
	if len(got) != len(guess) || len(got) == 0 {
		return
	}
	counts := countsIn(guess, got)
	if strings.ContainsAny(line, grid.Walls) && !slices.ContainsFunc(got, grid.IsNumber) { // the names go on
		for i, more := range got {
			guess[i] = strings.TrimSpace(guess[i] + " " + strings.Clone(more))
		}
		if t.guess = guess; len(strings.Join(guess, "")) > mostColumns*longestName {
			t.guess = nil
		}
		return
	}
	if names := strings.ToLower(guess[0]); ofThings[names] || strings.HasSuffix(names, "_id") {
		return
	}
	measured := !rows && t.onlyMeasures(guess, names)
	if c, next, ok := ofTotal(got[counts], 0); !rows && !measured && (!ok || next != len(strings.TrimSuffix(got[counts], ":")) || c.n != float64(int64(c.n))) {
		return
	}
	reals, numbers := 0, 0
	for _, cell := range got[1:] {
		if grid.Numbers(cell) > 1 || strings.Contains(cell, " = ") { // columns that are a blank apart: none can be told
			return
		}
		if f, ok := grid.Number(cell); ok {
			numbers++
			if f.Real {
				reals++
			}
		}
	}
	if reals == 0 || 2*numbers < len(got)-1 {
		return
	}
	columns := make([]column, len(guess))
	for i, name := range guess {
		columns[i].term = names.term(name, t.of)
		columns[i].measured(name)
		if u, _ := unitOf(name); i > 0 && (u == unitBatch || firstColumns[strings.ToLower(name)] == unitStep && len(name) > 1) {
			columns[i].unit = max(u, unitStep)
		}
	}
	t.distinct(columns, names)
	if measured { // what a row is of is told elsewhere, or by its order
	} else if columns[counts].unit = unitStep; rows {
		columns[0] = column{term: term{kind: never}}
	} else if counts < 2 || grid.IsMoment(got[0]) {
		columns[0].kind = never
	}
	if strings.HasPrefix(strings.ToLower(strings.TrimLeft(guess[0], "# ")), "ep") && !rows {
		columns[0].unit = unitEpoch
	}
	t.columns, t.waited, t.evals, t.guessed = columns, 0, false, true
}

// rule takes the line between a header and its rows: names and numbers that are only a blank
// apart are cut where its dashes are.
func (t *tables) rule(line string) {
	ruled := grid.Ruled(line)
	names := ruled.Cut(t.top)
	if len(names) < fewestCells || slices.Contains(names, "") || slices.Equal(names, t.guess) {
		return
	}
	t.guess, t.ruled = names, ruled
}

// spaced keeps a line of names that are only a blank apart: it begins with a word that counts,
// and names scores.
func (t *tables) spaced(line string) bool {
	line = strings.TrimPrefix(line, "# ")
	names := strings.Fields(line)
	if len(names) < 2 || len(names) > mostColumns || firstColumns[strings.ToLower(names[0])] == noUnit || len(names) != strings.Count(line, " ")+1 {
		return false
	}
	for _, name := range names[1:] {
		if len(name) > longestName || sense.Of(lexis.Snake(name)) < weak {
			return false
		}
	}
	t.guess, t.columns, t.top, t.ruled = strings.Fields(strings.Clone(line)), nil, "", nil
	t.comma = 0
	return true
}

// ofThings are what the first column is called where each row is of a thing, and not
// of a moment.
var ofThings = set("id ids pid uid rank worker node gpu device class index idx layer fold species trial_id job no. nr")

// ofSettings are names that stand in a sentence for what was set. A column of
// rows that count has what was measured.
var ofSettings = set("target goal value min max best")

// measured lets the values of a column prove themselves whose name alone says
// nothing in a table: a letter, or what stands in a sentence for a setting, also
// behind what it is of (f_min).
func (c *column) measured(name string) {
	name = strings.Trim(name, "|")
	last := strings.ToLower(name[strings.LastIndexAny(name, "_ ")+1:])
	if c.kind == never && (len(name) == 1 && lexis.IsLetter(name[0]) || ofSettings[last]) {
		c.kind, c.show = unknown, lexis.Tidy(name)
	}
}

// read takes a line as a row of the table whose header came before.
func (t *tables) read(s *scanner, line string) (found, bool) {
	if t.waited++; t.waited > longestWait {
		t.columns = nil
		return found{}, false
	}
	got := t.cut(strings.TrimRight(line, " *!"))
	if c := t.columns; len(got) > 1 && (len(got) < len(c) || got[0] == "") && c[0].show == "" && c[0].unit == unitStep && c[1].unit != noUnit { // the sign of a comment
		t.columns, t.top = c[1:], strings.Replace(t.top, "#", " ", 1)
		got = t.cut(line)
	}
	for len(got) > len(t.columns) && remark.IsMark(got[len(got)-1]) {
		got = got[:len(got)-1]
	}
	if len(got) < 2 || len(got) > len(t.columns) || len(got) < len(t.columns)-1 {
		return found{}, false
	}
	if t.evals && got[0] != "all" {
		return found{}, false
	}
	s.found = found{counters: s.found.counters[:0], values: s.found.values[:0], shape: 14695981039346656037}
	for i, cell := range got {
		c := t.columns[i]
		if c.unit != noUnit && strings.Trim(cell, "-") != "" {
			n, next, ok := ofTotal(cell, 0)
			if !ok || next != len(strings.TrimSuffix(cell, ":")) {
				return found{}, false
			}
			n.unit, n.global, n.inEpoch = c.unit, c.unit == unitStep, c.unit == unitBatch
			s.found.counters = append(s.found.counters, n)
			continue
		}
		if split := splits[strings.ToLower(cell)]; split != "" { // the row is of that
			s.found.split = split
		}
		if c.kind == never {
			continue
		}
		f, ok := grid.Number(cell)
		if !ok {
			continue
		}
		s.found.values = append(s.found.values, value{term: c.term, figure: f, sure: !t.guessed || c.kind >= measure})
		s.mark(c.show)
	}
	s.names.ofData(s.found.values, s.found.split)
	t.waited = 0
	return s.found, len(s.found.values) > 0
}

// box takes a line as a row of a box of names and values, as stable-baselines
// and Ray print it. It reports whether the line belongs to a box, and whether
// it ends one.
func (t *tables) box(line string) (inside, ended bool) {
	i := lexis.SkipBlanks(line, 0)
	if i >= len(line) {
		return false, len(t.rows) > 0
	}
	rest := line[i:]
	if t.paired = t.paired && len(t.columns) == 0; grid.IsPairRule(rest) && len(t.columns) == 0 && t.guess == nil {
		ended = len(t.rows) > 0
		t.paired = true
		return true, ended
	}
	if t.paired {
		if name, n, ok := grid.Pair(rest); ok && len(name) <= longestName && len(t.rows) < mostRows {
			t.rows = append(t.rows, row{key: strings.Clone(strings.ReplaceAll(name, " ", "_")), value: n.Value, real: n.Real})
			return true, false
		}
		t.paired = len(grid.Cells(rest)) == 2
		return t.paired, !t.paired && len(t.rows) > 0
	}
	bar := strings.HasPrefix(rest, "│") || strings.HasPrefix(rest, "┃") || rest[0] == '|' && len(rest) > 1 && rest[len(rest)-1] == '|'
	if !bar {
		return false, len(t.rows) > 0
	}
	got := grid.Cells(rest)
	if len(t.rows) == 0 && (len(got) > 2 || slices.ContainsFunc(got, grid.HasPair) || mayBeHeader(line) && !grid.IsRow(got) || len(got) == len(t.columns)) {
		return false, false
	}
	if len(got) == 1 {
		got = grid.Sides(got[0])
	}
	if len(got) != 2 || got[0] == "" || len(got[0]) > longestName || len(t.rows) >= mostRows {
		return bar, false
	}
	if got[1] == "" && strings.HasSuffix(got[0], "/") {
		t.section = strings.Clone(got[0])
		return true, false
	}
	if f, _ := lexis.Number(got[1], 0); grid.IsRow(got) {
		t.rows = append(t.rows, row{key: strings.Clone(got[0]), value: f.Value, real: f.Real, in: t.section})
	}
	return true, false
}

// boxed reads the rows of a box that has ended. Boxes with sections are the
// reports of a training; others have settings too.
func (t *tables) boxed(s *scanner) found {
	s.found = found{counters: s.found.counters[:0], values: s.found.values[:0], shape: 14695981039346656037}
	report := false
	for _, r := range t.rows {
		report = report || r.in != ""
		if c, ok := dictCounter(braces.Pair{Key: r.key, Value: r.value}); ok {
			s.found.counters = append(s.found.counters, c)
		}
	}
	for _, r := range t.rows {
		if _, ok := dictCounter(braces.Pair{Key: r.key, Value: r.value}); ok {
			continue
		}
		v := value{term: s.names.term(r.in+r.key, ""), figure: figure{Value: r.value, Real: r.real}}
		if r.in == "time/" {
			if v.kind = sense.Of(strings.ToLower(r.key)); v.kind == unknown {
				continue
			}
		} else if v.kind == never && r.in != "" {
			v.kind = unknown
		}
		if v.kind == never && grid.IsBound(r.key, len(t.rows), func(i int) string { return t.rows[i].key }) {
			v.kind, v.show = unknown, r.key
		}
		if v.kind == never || v.show == "" {
			continue
		}
		v.sure = r.in != ""
		s.found.values = append(s.found.values, v)
		s.mark(v.show)
	}
	if s.assumed = false; !report {
		s.found.values = s.judged()
	}
	t.rows, t.section = t.rows[:0], ""
	return s.found
}
