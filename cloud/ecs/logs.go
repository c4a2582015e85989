package ecs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
)

// lateLimit is how long after the end of a job its last line may take to come.
const lateLimit = 20 * time.Second

// cutNote is the reason in a note, if it is of the job.
func cutNote(text, name string) string {
	why, is := strings.CutPrefix(text, name+" ")
	if !is {
		return ""
	}
	return why
}

// spool is the log of a job as far as it has come. Ray gives a log from its beginning
// on alone: one connection reads it for all replicas, and what it has read is in a
// file without a name.
type spool struct {
	ref ref

	mu      sync.Mutex
	file    *os.File
	size    int64
	last    []byte // the line that is not whole yet
	said    map[int]int
	whole   bool // nothing more comes
	closed  bool // its file is
	readers int
	reading bool
	more    chan struct{} // closed when something has come
}

// spool gives the log of a job.
func (p *Provider) spool(r ref) (*spool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.logs[r.Name]; s != nil {
		return s, nil
	}
	f, err := os.CreateTemp("", "dlwb-log-")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where that can't be, it is removed with the other temporary files
	s := &spool{ref: r, file: f, more: make(chan struct{})}
	for name, old := range p.logs {
		// A cluster has one job at a time: those before are over.
		if old.ref.Cluster == r.Cluster && old.over() {
			old.close()
			delete(p.logs, name)
		}
	}
	p.logs[r.Name] = s
	return s, nil
}

// over reports whether nothing more comes of a log, and nobody reads it.
func (s *spool) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole && s.readers == 0
}

func (s *spool) reader(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers += more
}

// close gives the file back. Who follows the log is told.
func (s *spool) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		_ = s.file.Close()
		s.wake()
	}
}

// errClosed is that the log is not kept here any more.
var errClosed = errors.New("the log of the job is not followed here any more")

// follow has the log read as long as somebody waits for it.
func (s *spool) follow(ctx context.Context, g *gate) error {
	s.mu.Lock()
	if s.reading || s.whole {
		s.mu.Unlock()
		return nil
	}
	s.reading = true
	skip := s.size
	s.mu.Unlock()
	whole, err := g.Tail(ctx, s.ref.Name, func(text []byte) error {
		if int64(len(text)) <= skip {
			skip -= int64(len(text))
			return nil
		}
		text, skip = text[skip:], 0
		return s.add(text)
	})
	over := false
	if whole {
		j, look := g.Look(context.WithoutCancel(ctx), s.ref.Name)
		over = look == nil && (j == nil || j.Over())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = false
	if over {
		s.whole = true
	}
	s.wake()
	if over {
		return nil
	}
	return err
}

func (s *spool) wake() {
	close(s.more)
	s.more = make(chan struct{})
}

func (s *spool) add(text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if _, err := s.file.WriteAt(text, s.size); err != nil {
		return err
	}
	s.size += int64(len(text))
	s.last = append(s.last, text...)
	for {
		line, rest, found := bytes.Cut(s.last, []byte("\n"))
		if !found {
			break
		}
		if ends, is := pack.EndsFrom(string(line)); is {
			s.said = ends
		}
		s.last = rest
	}
	if len(s.last) > 64<<10 {
		s.last = s.last[:0] // no line of the driver's is as long
	}
	s.wake()
	return nil
}

// ends is how the ranks ended, as far as the driver has told; it reads what there is
// to read of a job that is over.
func (s *spool) ends(g *gate) map[int]int {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	_ = s.follow(ctx, g)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.said
}

// settled reports whether nothing more is to be expected of a job that ended then.
func (s *spool) settled(at time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole || s.said != nil || time.Since(at) > lateLimit+callLimit
}

// since gives whole lines from an offset on, and the channel that tells of more.
func (s *spool) since(at int64) (text []byte, more chan struct{}, whole bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	more, whole = s.more, s.whole
	if s.closed {
		return nil, more, false, errClosed
	}
	if at > s.size {
		if whole {
			return nil, more, true, fmt.Errorf("the log of job %s has %d bytes, and %d were read before", s.ref.Name, s.size, at)
		}
		return nil, more, false, nil // it is read anew, and not as far yet
	}
	text = make([]byte, min(s.size-at, 1<<20))
	if _, err := s.file.ReadAt(text, at); err != nil {
		return nil, more, whole, err
	}
	if end := bytes.LastIndexByte(text, '\n'); !whole || at+int64(len(text)) < s.size {
		if end < 0 && len(text) == 1<<20 {
			end = len(text) - 1 // a line of no driver
		}
		text = text[:end+1]
	}
	return text, more, whole && at+int64(len(text)) == s.size, nil
}

// cursor is a place in the log of a job, which all its replicas share.
func cursorAt(offset int64) job.Cursor { return job.Cursor("ray:" + strconv.FormatInt(offset, 10)) }

func readCursor(c job.Cursor) (int64, error) {
	if c == "" {
		return 0, nil
	}
	text, is := strings.CutPrefix(string(c), "ray:")
	n, err := strconv.ParseInt(text, 10, 64)
	if !is || err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no place in the log of a Ray job", string(c))
	}
	return n, nil
}

// sinkError is an error of whoever takes a log: trying again does not mend it.
type sinkError struct{ error }

// FollowLog picks the lines of one log out of that of the job.
func (r *replica) FollowLog(ctx context.Context, log string, from job.Cursor, sink func(job.Chunk) error) error {
	at, err := readCursor(from)
	if err != nil {
		return err
	}
	s, err := r.p.spool(r.ref)
	if err != nil {
		return err
	}
	s.reader(1)
	defer s.reader(-1)
	f := &follower{spool: s, pick: r.pick(log), at: at, last: from, sink: sink}
	for wait := firstLook; ; {
		done, more, err := f.pass()
		var failed sinkError
		if errors.As(err, &failed) {
			return failed.error
		}
		if done || err != nil {
			return err
		}
		g, err := r.p.gateOf(ctx, r.life, r.ref)
		if err == nil {
			go func() { _ = s.follow(ctx, g) }() // unless another does
		} else if permanent(err) {
			return err
		}
		if g != nil && r.gone(ctx, g) {
			return nil
		}
		select {
		case <-more:
			wait = firstLook
		case <-time.After(wait):
			wait = min(2*wait, lookEvery)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// gone reports whether the log can't be had any more.
func (r *replica) gone(ctx context.Context, g *gate) bool {
	j, err := g.see(ctx, r.ref.Name)
	if err == nil {
		return j == nil
	}
	all, _, other := r.fate(ctx, g, err)
	return other == nil && len(all) > 0
}

// follower reads one log.
type follower struct {
	*spool
	pick func([]byte) ([]byte, bool)
	at   int64
	last job.Cursor
	sink func(job.Chunk) error
}

// pass hands over what has come; done: nothing more does.
func (f *follower) pass() (done bool, more chan struct{}, err error) {
	for {
		text, more, done, err := f.since(f.at)
		if err != nil || len(text) == 0 {
			return done, more, err
		}
		var out []byte
		for line := range bytes.Lines(text) {
			if _, is := pack.EndsFrom(strings.TrimSuffix(string(line), "\n")); is {
				continue
			}
			if mine, is := f.pick(line); is {
				out = append(out, pack.Original(mine)...)
			}
		}
		f.at += int64(len(text))
		next := cursorAt(f.at)
		if len(out) > 0 {
			if err := f.sink(job.Chunk{From: f.last, Next: next, Data: out}); err != nil {
				return false, more, sinkError{err}
			}
			f.last = next
		}
		if done {
			return true, more, nil
		}
	}
}

// pick tells which lines are of a log. What no rank has printed has the number of its
// replica in front, and is of the log of that one's launcher; without one it is of the
// driver, which is the first replica's.
func (r *replica) pick(log string) func([]byte) ([]byte, bool) {
	if strings.HasPrefix(log, "rank-") {
		ranks := pack.Lines(log, true)
		first := len(r.mine()) > 0 && log == fmt.Sprintf("rank-%d.log", r.mine()[0])
		mark := fmt.Appendf(nil, "[node%d] ", r.number)
		return func(line []byte) ([]byte, bool) {
			if text, is := ranks(line); is || !first {
				return text, is
			}
			return bytes.CutPrefix(line, mark) // what the launcher itself says, of a replica that has no log for it
		}
	}
	mark := fmt.Appendf(nil, "[node%d] ", r.number)
	return func(line []byte) ([]byte, bool) {
		if text, is := bytes.CutPrefix(line, mark); is {
			return text, true
		}
		return line, r.number == 0 && !bytes.HasPrefix(line, []byte("[node")) && !bytes.HasPrefix(line, []byte("[rank"))
	}
}

// HasAll reports whether the whole log of the job has come, and nothing of it lies
// behind the cursors but what is of other logs.
func (r *replica) HasAll(_ context.Context, logs map[string]job.Cursor) (bool, error) {
	s, err := r.p.spool(r.ref)
	if err != nil {
		return false, err
	}
	for log, from := range logs {
		at, err := readCursor(from)
		if err != nil {
			return false, err
		}
		found := false
		f := &follower{spool: s, pick: r.pick(log), at: at, sink: func(job.Chunk) error { found = true; return nil }}
		done, _, err := f.pass()
		if err != nil || found || !done && !s.settledLong() {
			return false, err
		}
	}
	return true, nil
}

// settledLong reports whether the log is whole.
func (s *spool) settledLong() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole
}
