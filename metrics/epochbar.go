package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/gauge"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// epochBar is a bar without values whose title is the word Epoch: it counts those that are over, and what is printed
// behind it or on the lines below says no epoch itself.
type epochBar struct {
	n, total float64
	places   bool // it is all that has said where the run is
}

// besideBar is of which epoch a series is that is printed beside such a bar.
type besideBar uint8

const (
	bySight besideBar = iota // none came yet
	ofNext                   // its first value came before an epoch was over
	ofLast                   // its first value came when one was: it is told at the end
)

// besideEpochBar places a line of values by the bar that counts epochs, where nothing else places it.
func (r *Reader) besideEpochBar(f *found) {
	e := &r.bars.epochs
	if e.total == 0 || len(f.values) == 0 || len(f.counters) > 0 || f.pass.total > 0 || r.counters.hasStep || r.counters.hasEpoch && !e.places {
		return
	}
	s := r.seriesOf(f.values[0].show)
	if s == nil {
		return
	}
	if s.beside == bySight {
		if s.beside = ofLast; e.n == 0 {
			s.beside = ofNext
		}
	}
	n := e.n
	if s.beside == ofNext {
		n = min(n+1, e.total)
	}
	e.places = true
	f.counters = append(f.counters, counter{unit: unitEpoch, n: n, total: e.total})
}

// isDrawnAgain takes note of a rate that the bars of epochs show, and reports whether a line of this epoch has told it.
func (r *Reader) isDrawnAgain(v value) bool {
	s := r.seriesOf(v.show)
	if s == nil {
		return false
	}
	s.drawn = true
	return r.again(v.show) && sameValue(s.last.Value, v.Value)
}

// isForBar reports whether a line tells of a rate alone that the bar of each epoch shows: what it is changed to at the
// end of an epoch is that of the next.
func (r *Reader) isForBar(f found, show string) bool {
	s := r.series[show]
	return len(f.values) == 1 && f.values[0].kind == measure && s != nil && s.drawn && r.bars.frame.Whole
}

// silentBar is a bar without values: how far the run is, at most.
func (r *Reader) silentBar(b gauge.Bar, epoch counter) {
	if epoch.unit == unitEpoch {
		r.counters.epoch(epoch.n, epoch.total)
	} else if u, _ := unitOf(lexis.WordBefore(b.Title)); u == unitEpoch && b.Total > 0 && !b.Whole {
		r.bars.epochs.n, r.bars.epochs.total = b.N, b.Total
	}
	if b.Title == "" && !b.Whole && b.Total >= r.bars.total && !strings.Contains(b.Body, "B/s") {
		r.bars.n, r.bars.total = b.N, b.Total
	}
}

// outlives takes note that values came. A bar that was at its end before the
// first of them was of something else: a download, data that are prepared.
func (p *bars) outlives() {
	if p.n < p.total {
		p.lived = true
	} else if !p.lived {
		p.n, p.total = 0, 0
	}
}

// placed reports whether anything has said where the run is.
func (r *Reader) placed() bool {
	return r.counters.hasStep || r.counters.hasEpoch || r.bars.pending || r.pass.split != "" || len(r.tables.columns) > 0 || r.bars.epochs.total > 0
}
