package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-yamux/v5"
)

// What the other side sends and nobody has taken yet lies in memory here. How
// much that can be is bounded for the whole session: by the windows that are
// granted, and by the number of small pieces, of which each costs far more than
// its bytes.

// room is by how much the windows of a session's calls may grow together.
type room struct{ left atomic.Int64 }

// errNoRoom keeps a window as it is.
var errNoRoom = errors.New("the windows of all calls together are as large as they may be")

// span is what one call has of a room.
type span struct {
	of   *room
	mu   sync.Mutex
	used int
	over bool
}

func (r *room) span() (yamux.MemoryManager, error) { return &span{of: r}, nil }

// ReserveMemory lets a window grow. What a call has from its beginning, which is
// asked for with the highest priority, is bounded by the number of calls.
func (s *span) ReserveMemory(size int, priority uint8) error {
	if priority == 255 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.of.left.Add(-int64(size)) < 0 {
		s.of.left.Add(int64(size))
		return errNoRoom
	}
	s.used += size
	return nil
}

// ReleaseMemory gives some of it back.
func (s *span) ReleaseMemory(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size = min(size, s.used)
	s.used -= size
	s.of.left.Add(int64(size))
}

// Done gives all of it back.
func (s *span) Done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of.left.Add(int64(s.used))
	s.used, s.over = 0, true
}

const (
	// smallPiece is below what a piece of data is small.
	smallPiece = 512
	// smallMost is how many small pieces may wait to be taken. An honest agent's
	// are messages of many bytes: the windows hold fewer of them.
	smallMost = 1 << 17
)

// errCrumbs ends a session.
var errCrumbs = errors.New("the other side sends too many small pieces that nobody takes")

// pieces counts, in what is read from a connection, the small pieces of data
// that wait for each call.
type pieces struct {
	io.ReadWriteCloser
	heard atomic.Int64 // when something last came, in nanoseconds
	head  []byte       // of a frame, as far as it has come
	body  uint32       // of a frame, which is still to come

	mu      sync.Mutex
	waiting map[uint32]int // by call; only those that are under way
	all     int
}

// frameHead is the length of a frame's head: version, kind, flags, stream and
// length, see yamux's specification.
const frameHead = 12

// Read reads what comes, and ends where too much waits.
func (c *pieces) Read(p []byte) (int, error) {
	n, err := c.ReadWriteCloser.Read(p)
	c.heard.Store(time.Now().UnixNano())
	for rest := p[:n]; len(rest) > 0; {
		if c.body > 0 {
			skipped := min(uint32(len(rest)), c.body)
			c.body -= skipped
			rest = rest[skipped:]
			continue
		}
		part := min(len(rest), frameHead-len(c.head))
		c.head, rest = append(c.head, rest[:part]...), rest[part:]
		if len(c.head) == frameHead {
			if !c.began() {
				return 0, errCrumbs
			}
			c.head = c.head[:0]
		}
	}
	return n, err
}

// began notes the beginning of a frame. It reports false when too much waits.
func (c *pieces) began() bool {
	const data = 0
	length := binary.BigEndian.Uint32(c.head[8:])
	if c.head[1] != data || length == 0 {
		return true
	}
	c.body = length
	if length >= smallPiece {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := binary.BigEndian.Uint32(c.head[4:])
	if _, known := c.waiting[call]; known {
		c.waiting[call]++
		c.all++
	}
	return c.all <= smallMost
}

// watch begins to count for a call, forget ends that.
func (c *pieces) watch(call uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[call] = 0
}

func (c *pieces) forget(call uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all -= c.waiting[call]
	delete(c.waiting, call)
}

// took notes that so many bytes were taken at once: fewer than a small piece are
// one, as a reading gives no more than one piece.
func (c *pieces) took(call uint32, n int) {
	if n == 0 || n >= smallPiece {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[call] > 0 {
		c.waiting[call]--
		c.all--
	}
}
