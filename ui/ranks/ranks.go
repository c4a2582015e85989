// Package ranks compares what the ranks of a run print. The charts are of one of them,
// the lowest; this reads the logs of all in the background, and tells where they
// differ, and which of them is farthest from the rest.
package ranks

import (
	"cmp"
	"errors"
	"io"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
)

const (
	// atOnce is how much is read of all logs before the screen hears of it.
	atOnce = 1 << 20
	// piece is how much is read of one log before the next.
	piece = 64 << 10
	// mostPoints bounds the points of all ranks: some 60 MB.
	mostPoints = 2_000_000
	// mostVoices bounds the ranks that are compared, and mostCurves what they print.
	mostVoices = 1024
	mostCurves = 20_000
)

// ReadLog reads the stored log of a rank.
type ReadLog func(run string, rank int, off int64, p []byte) (int, error)

// Ranks is what all ranks of a run have printed. What reads is with whoever reads in
// the background until it is Taken back.
type Ranks struct {
	run     string
	streams map[int]*stream
	busy    bool
	voices  map[[2]int]*voice // by the log and the rank that its lines name
	order   []*voice
	bands   map[string]*Band
	points  int
	curves  int
	behind  map[int]reading
	turn    int // counts what may have changed the bands
	ended   bool
	waiting []Waiting
}

// voice is one rank: its curves, by the names of the series.
type voice struct {
	log, label int
	name       string
	curves     map[string]*session.Curve
}

// Waiting is a name with numbers of which it is not known whether it is a metric.
type Waiting struct {
	Name, Why string
	Curve     *session.Curve // what came of it, as far as it is kept
}

// Told is what was read.
type Told struct {
	Gen     int
	run     string
	said    []said
	waiting []Waiting
	streams map[int]*stream
	behind  map[int]reading
	readers int // that may still be made
}

// reading is how far a log was read.
type reading struct {
	unread bool // not to its end
	jumped bool // without its middle
}

// Of is a run whose ranks are compared.
func Of(run string) *Ranks {
	return &Ranks{run: run, streams: map[int]*stream{}, voices: map[[2]int]*voice{}, bands: map[string]*Band{}, turn: 1}
}

// Are reports whether they are the ranks of a run.
func (r *Ranks) Are(run string) bool { return r.run == run }

// Read reads on in the logs of which more is stored than was read; nil where there is
// nothing to read, or somebody reads already.
func (r *Ranks) Read(s *session.Session, from ReadLog) tea.Cmd {
	if ended := s.Over() || s.State.Ended != nil; ended != r.ended {
		r.ended = ended
		r.turn++
	}
	if r.busy || r.points >= mostPoints || r.run == "" {
		return nil
	}
	var behind []int
	sizes := map[int]int64{}
	for log, size := range s.State.LogSizes {
		if st := r.streams[log]; log >= 0 && size > 0 && (st == nil || st.off < size) {
			behind = append(behind, log)
			sizes[log] = size
		}
	}
	if len(behind) == 0 {
		return nil
	}
	slices.SortFunc(behind, func(a, b int) int { // who is least far goes first, so that all go on together
		return cmp.Or(cmp.Compare(r.streams[a].read(), r.streams[b].read()), cmp.Compare(a, b))
	})
	first := slices.Min(slices.Collect(keysFrom(s.State.LogSizes)))
	r.busy = true
	t := Told{Gen: s.Gen, run: r.run, streams: r.streams, behind: map[int]reading{}, readers: mostVoices}
	return func() tea.Msg {
		for _, st := range t.streams {
			t.readers -= len(st.by)
		}
		for left, i := atOnce, 0; left > 0 && i < len(behind); i++ {
			left -= t.read(behind[i], sizes[behind[i]], behind[i] == first, from)
		}
		for log, st := range t.streams {
			t.behind[log] = reading{st.off < sizes[log], st.jumped}
			if st.whole != nil {
				t.wait(st.whole)
			}
		}
		for _, log := range behind {
			if t.streams[log] == nil {
				t.behind[log] = reading{unread: true}
			}
		}
		return t
	}
}

// keysFrom are the numbers of logs of ranks.
func keysFrom(sizes map[int]int64) func(func(int) bool) {
	return func(yield func(int) bool) {
		for log := range sizes {
			if log >= 0 && !yield(log) {
				return
			}
		}
	}
}

// read reads a piece of one log; charted says that the charts come from it.
func (t *Told) read(log int, size int64, charted bool, from ReadLog) int {
	s := t.streams[log]
	if s == nil {
		s = &stream{}
		t.streams[log] = s
		if charted {
			s.whole = metrics.NewReader(nil)
		}
	}
	s.start(size)
	p := make([]byte, piece)
	n, err := from(t.run, log, s.off, p)
	if n == 0 || err != nil && !errors.Is(err, io.EOF) {
		s.off = size // the screen of the output says why it can't be read
		return 0
	}
	s.off += int64(n)
	s.feed(p[:n], &t.readers, func(label int, points []metrics.Point) {
		if len(points) > 0 {
			t.said = append(t.said, said{log, label, s.name(log, label), points})
		}
	})
	s.jump()
	return n
}

// wait notes which names wait to be known as metrics.
func (t *Told) wait(r *metrics.Reader) {
	t.waiting = []Waiting{}
	for _, e := range r.Evidence() {
		if e.Confidence != metrics.Waits {
			continue
		}
		w := Waiting{Name: e.Name, Why: e.Why, Curve: session.NewCurve(text.Word(e.Name))}
		for _, p := range e.Held {
			w.Curve.Add(p, p.Time)
		}
		t.waiting = append(t.waiting, w)
	}
}

// Take takes what was read.
func (r *Ranks) Take(t Told) {
	if t.run != r.run {
		return
	}
	r.busy = false
	r.turn++
	r.behind = t.behind
	if t.waiting != nil {
		r.waiting = t.waiting
	}
	for _, s := range t.said {
		if v := r.voiceOf(s); v != nil {
			for _, p := range s.points {
				r.add(v, p)
			}
		}
	}
}

// voiceOf is the rank that said something; nil where there are too many.
func (r *Ranks) voiceOf(s said) *voice {
	key := [2]int{s.log, s.label}
	v := r.voices[key]
	if v == nil && len(r.voices) < mostVoices {
		v = &voice{log: s.log, label: s.label, name: text.Word(s.name), curves: map[string]*session.Curve{}}
		r.voices[key] = v
		r.order = append(r.order, v)
		slices.SortStableFunc(r.order, func(a, b *voice) int {
			if a.log != b.log {
				return a.log - b.log
			}
			return a.label - b.label
		})
	}
	return v
}

func (r *Ranks) add(v *voice, p metrics.Point) {
	name := text.Word(p.Name)
	c := v.curves[name]
	if c == nil && r.curves == mostCurves {
		return
	}
	if c == nil {
		r.curves++
		c = session.NewCurve(name)
		v.curves[name] = c
		delete(r.bands, name) // another rank has it
	}
	c.Add(p, p.Time)
	r.points++
}

// Full reports whether the ranks have printed more points than are kept: what they
// print now is not compared any more.
func (r *Ranks) Full() bool { return r != nil && r.points >= mostPoints }

// Waiting are the names of which it is not known whether they are metrics, and why.
func (r *Ranks) Waiting() []Waiting {
	if r == nil {
		return nil
	}
	return r.waiting
}
