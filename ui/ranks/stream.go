package ranks

import (
	"bytes"
	"time"

	"github.com/dlwb/dlwb/metrics"
)

const (
	// fromEnd is how much of the end of a log is read when it is first looked at: it
	// may be of days.
	fromEnd = 4 << 20
	// longestLine bounds what is kept of a line that has not ended.
	longestLine = 64 << 10
)

// stream is the log of one rank, or of several that print into one: each of them
// has a reader of its own, so that one does not speak for another.
type stream struct {
	off    int64
	begun  bool
	tail   []byte // of a line that has not ended
	labels metrics.Labels
	by     map[int]*metrics.Reader // by the rank that lines name
	whole  *metrics.Reader         // of the log that the charts come from: what waits there
}

// said is what one rank printed.
type said struct {
	log, label int
	name       string
	points     []metrics.Point
}

// start is where the reading of a log begins.
func (s *stream) start(size int64) {
	if !s.begun {
		s.begun, s.by = true, map[int]*metrics.Reader{}
		s.off = max(size-fromEnd, 0)
	}
}

// feed takes bytes of the log, and gives what each rank said in them to take.
func (s *stream) feed(p []byte, cut bool, take func(label int, points []metrics.Point)) {
	if cut { // begins within a line
		p = p[bytes.IndexByte(p, '\n')+1:]
	}
	if s.whole != nil {
		s.whole.Feed(p, time.Time{})
	}
	s.tail = append(s.tail, p...)
	end := bytes.LastIndexByte(s.tail, '\n') + 1
	if end == 0 && len(s.tail) < longestLine {
		return
	} else if end == 0 {
		end = len(s.tail)
	}
	// What one rank says in lines that follow each other is read in one go.
	var some []byte
	who := metrics.Unlabelled
	flush := func() {
		if len(some) > 0 {
			take(who, s.reader(who).Feed(some, time.Time{}))
		}
		some = some[:0]
	}
	for line := range bytes.Lines(s.tail[:end]) {
		rest, rank := s.labels.Off(string(line))
		if rank != who {
			flush()
			who = rank
		}
		some = append(some, rest...)
	}
	flush()
	s.tail = append(s.tail[:0], s.tail[end:]...)
}

// mostVoices bounds the ranks that one log may name.
const mostVoices = 1024

func (s *stream) reader(label int) *metrics.Reader {
	r := s.by[label]
	if r == nil {
		r = metrics.NewReader(nil)
		if len(s.by) < mostVoices {
			s.by[label] = r
		}
	}
	return r
}

// name is how a rank of the log is called; number is the log's.
func (s *stream) name(number, label int) string {
	if label == metrics.Unlabelled {
		return s.labels.Name(number)
	}
	return s.labels.Name(label)
}
