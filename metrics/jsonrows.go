package metrics

import (
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/sense"
)

// jsonRows reads rows that are objects. Where nothing but a total of steps may say where one
// belongs, the first waits until the next shows whether it goes up.
type jsonRows struct {
	run    counters
	names  fileNames
	add    func(...Point)
	held   []jsonRow
	ranks  ranks
	judged bool
	runs   bool
}

// jsonRow is the numbers of a row beside where it belongs.
type jsonRow struct {
	at    place
	said  string // the data that it is of
	pairs []braces.Pair
}

func (t *jsonRows) read(pairs []braces.Pair) {
	row := jsonRow{at: nowhere(), said: eventOf(pairs, "", "")}
	for _, p := range pairs {
		if p.Text == "" && len(p.Key) <= 2*longestName && !row.at.takes(p.Key, p.Value) {
			row.pairs = append(row.pairs, p)
		}
	}
	if t.ranks.passes(&row.at) {
		return
	}
	row.at.inRun(&t.run)
	if !t.judged && row.at.mayRun() && len(t.held) == 0 {
		t.held = append(t.held, row)
		return
	}
	if !t.judged {
		t.runs = len(t.held) > 0 && row.at.runsFrom(t.held[0].at)
		t.end()
	}
	t.tell(row)
}

// end tells of the row that waits.
func (t *jsonRows) end() {
	t.judged = true
	for _, row := range t.held {
		t.tell(row)
	}
	t.held = nil
}

func (t *jsonRows) tell(row jsonRow) {
	at := row.at
	if t.runs && at.mayRun() {
		at.step, at.x = at.total, AxisStep
	}
	for _, p := range row.pairs {
		if kind := sense.Of(strings.ToLower(p.Key)); t.runs && at.x == AxisStep && kind < weak {
			if u, _ := unitOf(p.Key); u != noUnit || kind == never {
				continue
			}
		}
		if at.x != AxisNone || sense.Vouches(strings.ToLower(p.Key)) {
			name := t.names.name(p.Key)
			if row.said != "" && Split(name) == "" && sense.Of(strings.ToLower(p.Key)) >= weak {
				name = row.said + "/" + name
			}
			at.add(t.add, name, p.Value)
		}
	}
}

// ranks tells apart the processes that write into one file: of those that tell of one place the
// lowest counts, when it comes first.
type ranks struct {
	told place
	any  bool
}

// passes reports whether a row is of a higher rank than the one before it, of the same place.
func (r *ranks) passes(at *place) bool {
	if r.any && at.rank > r.told.rank && at.x != AxisNone && at.x == r.told.x && at.step == r.told.step && (at.epoch == r.told.epoch || math.IsNaN(at.epoch)) {
		return true
	}
	r.told, r.any = *at, true
	return false
}
