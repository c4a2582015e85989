package metrics

import "strings"

// pass is a validation that is going on, as "Test: [ 3/10] Loss 0.3 (0.5)"
// tells. Of it the averages of its last line count.
type pass struct {
	split    string
	rank     int
	complete bool
	values   []value
	shape    uint64
}

// collect keeps what a line of a pass says, instead of the one before.
func (r *Reader) collect(f found, rank int) {
	p := &r.pass
	if p.split != "" && rank > p.rank && p.rank != unlabelled {
		return
	}
	r.counters.take(f.counters)
	r.place()
	p.split, p.rank, p.shape = "val", rank, f.shape
	p.complete = f.pass.n >= f.pass.total-1
	p.values = p.values[:0]
	for _, v := range f.values {
		if v.hasMean {
			v.Value = v.mean
		}
		if f.pass.inEpoch {
			v.show = r.scanner.names.validatedAs("val/", v.show)
		}
		p.values = append(p.values, v)
	}
}

// ofAnotherLoop takes a line that validates and counts its steps of another total
// than the training's, as "Epoch: 1/3 Step: 2/4 val_loss: 0.5" beside a training
// of 8 steps, as one of a pass: its steps are not those of the run.
func (r *Reader) ofAnotherLoop(f *found) {
	if len(f.values) == 0 || r.counters.rawTotal == 0 {
		return
	}
	for _, v := range f.values {
		if split := Split(v.show); split == "" || split == "train" {
			return
		}
	}
	for i, c := range f.counters {
		if c.unit != unitEpoch && !c.global && c.total > 0 && int64(c.total) != r.counters.rawTotal {
			f.pass, f.pass.inEpoch = c, false
			f.counters = append(f.counters[:i:i], f.counters[i+1:]...)
			return
		}
	}
}

// tells reports whether a line of results has a value itself, also as acc@1
// where the pass said acc1.
func (r *Reader) tells(results []value, show string) bool {
	if indexOf(results, show) >= 0 {
		return true
	}
	for _, v := range results {
		if strings.Replace(v.show, "@", "", 1) == show {
			return true
		}
	}
	return false
}

// endPass adds the averages of a pass that has ended, save those that a line of
// results gives itself.
func (r *Reader) endPass(results []value) {
	p := &r.pass
	if p.complete {
		for _, v := range p.values {
			if !r.tells(results, v.show) && v.kind >= weak {
				r.value(v.show, v, AxisEpoch, p.shape, p.rank)
			}
		}
	}
	p.split, p.complete, p.values = "", false, p.values[:0]
}
