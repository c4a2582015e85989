package metrics

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// Values are printed in blocks, too, one in each line below a line that says
// what they are of:
//
//	Validation:
//	    loss: 0.4
//	    accuracy: 0.8

// heading is what the lines of a block are of, and how its last line went.
type heading struct {
	split  string // said above; "" when nothing was
	loose  bool   // a sentence said it, of the indented lines below
	title  string // a line above that ends in a colon and says no split
	scored bool   // the line before was a name and a number alone, and a metric
	record bool   // a line that only counts is above, and between the two lines of a name and a text alone
	rows   bool   // or rows of several
	epoch  bool   // that line says which epoch of how many it is
	bare   bool   // or names and numbers with a blank between
	things bool   // it is a list of what has an importance each, and no value of the training
	fresh  bool   // nothing came below it yet, and an empty line does not end it
}

// begins takes a line that is no more than a split, with what people put around
// it, or where a branch of a tree begins; false for any other.
func (h *heading) begins(line string, branch bool) bool {
	if things := remark.Weighs(line, h.things); things || h.things || line == "" || len(line) > 2*longestName {
		h.things = things
		return things
	}
	decorated := branch || strings.IndexByte("-=*#[<+~>", line[0]) >= 0 || strings.HasSuffix(line, ":") || strings.IndexByte(line, ' ') > 0
	text := strings.Trim(line, " -=*#:[]<>+~|.")
	if !decorated || text == "" {
		return false
	}
	split, told := "", false
loop:
	for i, word := range strings.Fields(strings.ToLower(text)) {
		switch {
		case splits[word] != "" && split == "":
			split = splits[word]
		case told && split != "" && ofWhat[word] && line[len(line)-1] == ':' && !strings.ContainsAny(text, "0123456789=:"): // "Test Set Metrics of the initial model:"
			break loop
		case i > 3 || !headingWords[word]:
			return false
		}
		told = told || word == "metrics" || word == "results" || word == "scores" || word == "performance" || word == "statistics"
	}
	if split != "" {
		*h = heading{split: split, fresh: line[0] == '*' || line[0] == '='}
	}
	return split != ""
}

// ofWhat are words behind which a heading says of which model or moment it is.
var ofWhat = set(`of for from after before with`)

// empty takes an empty line, which ends what is above it.
func (h *heading) empty() {
	if split := h.split; h.fresh {
		*h = heading{split: split}
		return
	}
	*h = heading{}
}

// loosely takes a split, or a sentence that begins with one, of what is indented below: "Train phase finished in 3s".
func (h *heading) loosely(line string) bool {
	word, rest, _ := strings.Cut(line, " ")
	split := splits[strings.ToLower(word)]
	if split != "" && (rest == "" || remark.IsSentence(rest)) {
		*h = heading{split: split, loose: true}
		return true
	}
	return false
}

// phase is a validation of which a line has said that it begins, as "Eval begin..."
// does. Its lines name their values as those of the training do.
type phase struct {
	split string
	told  bool            // that a training begins was told as well: only that ends a validation
	after counter         // where it said that it is; no unit: nowhere
	from  int64           // the step at which the training was
	known map[uint64]bool // shapes of lines before the first phase
	last  uint64          // of them
}

// mostKnown bounds the shapes that are remembered.
const mostKnown = 256

// phaseWords say that something begins, beside the name of a split.
var phaseWords = set(`begin begins beginning start starts started starting running run doing performing now on the set data dataset model step loop phase epoch`)

// begins takes a line that says that a validation or a training begins, and perhaps where the
// run is: "EVALUATION | DEV SET | AFTER 100 BATCHES"; false for any other.
func (p *phase) begins(line string, at int64) bool {
	if len(line) > longestName || len(line) < 4 {
		return false
	}
	text := strings.Trim(line, " -=*#:[]<>+~|.!")
	dots := strings.HasSuffix(line, "...") || strings.HasSuffix(line, "…")
	split, said, i := "", dots, 0
	head, number, word := remark.After(text)
	after := counterOf(number, noUnit)
	if after.unit, _ = unitOf(word); after.unit != noUnit {
		text, after.global = head, after.unit != unitEpoch
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(c rune) bool { return c == ' ' || c == ':' }) {
		switch i++; {
		case i == 1 && (word == "evaluate" || word == "evaluating") && strings.IndexByte(text, ':') > 0: // "evaluate:dev"
			said = true
		case split != "" && splits[word] != "" && (split == "eval") != (splits[word] == "eval") && text[0] != line[0] && text[len(text)-1] != line[len(line)-1]: // "*** Test evaluation ***", "=== Evaluation on test ==="
			if said, p.told = true, true; split == "eval" {
				split = splits[word]
			}
		case splits[word] != "" && split == "":
			split = splits[word]
			said = said || i == 1 && strings.HasSuffix(word, "ing") && dots
		case !phaseWords[word] || i > 6:
			return false
		default:
			said = said || strings.HasPrefix(word, "begin") || strings.HasPrefix(word, "start") || strings.HasPrefix(word, "run")
		}
	}
	if split == "" || !said {
		return false
	}
	if p.split, p.from, p.after = split, at, after; split == "train" {
		p.split, p.told = "", true
	}
	return true
}

// of is the split of a line that says none itself: that of the phase, unless the
// line is of the training, which has gone on. Lines of the training have shapes
// that were there before, and count on from where it was.
func (p *phase) of(f *found, before counters) string {
	for _, c := range f.counters {
		if c.unit == unitEpoch || c.unit != unitEpoch && int64(c.n) > before.raw && p.known[f.shape] {
			p.split = ""
			return ""
		}
	}
	if len(f.values) == 0 {
		return ""
	}
	if p.known[f.shape] && len(f.counters) == 0 && !p.told {
		p.split = ""
	}
	return p.split
}

// inPhase names the values of a line as those of the phase that goes on. Its
// steps are not those of the training: its last line counts.
func (r *Reader) inPhase(f *found) bool {
	p := &r.phase
	if p.split == "" {
		if len(f.values) > 0 {
			p.learns(f.shape)
		}
		return false
	}
	for _, v := range f.values {
		if Split(v.show) != "" {
			p.split = ""
			return false
		}
	}
	split := p.of(f, r.counters)
	if split == "" {
		return false
	}
	f.values = slices.Clone(f.values)
	r.scanner.names.ofData(f.values, split)
	if p.after.unit != noUnit && len(f.counters) == 0 {
		f.counters = append(f.counters, p.after)
	}
	for i, c := range f.counters {
		if c.unit != unitEpoch && c.total > 0 {
			f.pass, f.pass.inEpoch = c, false
			f.counters = append(f.counters[:i:i], f.counters[i+1:]...)
			break
		}
	}
	return true
}

// learns remembers the shape of a line that is of no phase.
func (p *phase) learns(shape uint64) {
	if shape == p.last {
		return
	}
	p.last = shape
	if p.known == nil {
		p.known = map[uint64]bool{}
	}
	if len(p.known) < mostKnown {
		p.known[shape] = true
	}
}

// counts takes a line that only counts, and may say of which data the lines below it are:
// "Validation Results - Epoch: 1", "[1] Validation".
func (h *heading) counts(f *found, line string) {
	h.epoch = slices.ContainsFunc(f.counters, func(c counter) bool { return c.unit == unitEpoch && c.total > 0 })
	if h.record = len(f.counters) > 0; !h.record || f.pass.total > 0 {
		return
	}
	if of := cmp.Or(f.split, sense.SplitOf(line)); of != "train" || h.split != "train" {
		h.split = strings.TrimSuffix(of, "train")
	}
}

// headingWords stand beside a split in a heading.
var headingWords = set(`results result metrics metric set phase stage summary scores performance stats statistics error reported on the data dataset report running step history log curve`)

// of is what a line below a heading is of. Another heading, an empty line or a
// line of another form ends the block. pairs says that it is a row of several.
func (h *heading) of(line string) (split string, pairs bool) {
	h.fresh = false
	if h.loose && line[0] != ' ' && line[0] != '\t' {
		*h = heading{}
	}
	if h.split == "" || remark.IsAlone(line) || remark.IsPair(line) || remark.IsTabbed(line) || line[0] == '{' {
		return h.split, h.split != "" && strings.Contains(line, " ..")
	}
	if pairs = remark.IsPairs(line); !pairs {
		*h = heading{}
	}
	return h.split, pairs
}

// recorded is what a line alone, below one that only counts, says of what was measured there:
// no whole number, and no learning rate, which is told as a setting. Below a line that says
// which epoch of how many it is, the rate has to prove itself: it comes again, and moves. Where it is
// indented, it is of that block: it comes again in another.
func (h *heading) recorded(f found, indented bool) []value {
	if len(f.counters) > 0 || len(f.values) == 0 || f.values[0].kind >= weak {
		return f.values
	}
	v := &f.values[0]
	switch {
	case !v.Real:
		return nil
	case h.epoch && v.show == "lr":
		v.kind, v.sure, v.Start = unknown, false, -1 // of this line alone: another like it is a setting
	case v.kind == measure && indented && !strings.HasSuffix(v.show, "norm"):
		v.kind, v.sure, v.recurs, v.Start = unknown, false, true, -1
	case v.kind == measure && !strings.HasSuffix(v.show, "norm") && !sense.OfData[v.show[strings.LastIndexByte(v.show, '/')+1:]]:
		return nil
	}
	return f.values
}
