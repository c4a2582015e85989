package ranks

import (
	"bytes"
	"fmt"
	"strings"
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

// unlabelled is the label of lines that do not say which rank printed them.
const unlabelled = -1

// stream is the log of one rank, or of several that print into one: each of them
// has a reader of its own, so that one does not speak for another.
type stream struct {
	off    int64
	begun  bool
	to     int64 // where reading goes on behind the first piece: a long log is read at its beginning and its end
	jumped bool
	cut    bool   // what comes begins within a line
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

// start begins the reading of a log. Its beginning is read in any case: it says what
// epochs and columns are counted by, without which the same step of two ranks would
// stand in two places.
func (s *stream) start(size int64) {
	if !s.begun {
		s.begun, s.by = true, map[int]*metrics.Reader{}
		s.to = size - fromEnd
	}
}

// jump leaves out the middle of a log.
func (s *stream) jump() {
	if s.to > s.off {
		s.off, s.jumped, s.cut = s.to, true, true
		s.tail = s.tail[:0]
		if s.whole != nil {
			s.whole.Feed([]byte{'\n'}, time.Time{})
		}
	}
	s.to = 0
}

// read is how much of a log was read; it may be none.
func (s *stream) read() int64 {
	if s == nil {
		return 0
	}
	return s.off
}

// feed takes bytes of the log, and gives what each rank said in them to take. readers
// is how many may still be made.
func (s *stream) feed(p []byte, readers *int, take func(label int, points []metrics.Point)) {
	if s.cut {
		s.cut = false
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
	who := unlabelled
	flush := func() {
		if r := s.reader(who, readers); r != nil && len(some) > 0 {
			take(who, r.Feed(some, time.Time{}))
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

// reader reads what a rank says; nil for one rank too many.
func (s *stream) reader(label int, readers *int) *metrics.Reader {
	r := s.by[label]
	if r == nil && *readers > 0 {
		*readers--
		r = metrics.NewReader(nil)
		s.by[label] = r
	}
	return r
}

// name is how a rank of the log is called; number is the log's.
func (s *stream) name(number, label int) string {
	if label == unlabelled {
		label = number
	} else if name := strings.Trim(s.labels.Name(label), "( "); name != "" {
		return name
	}
	return fmt.Sprint("rank ", label)
}
