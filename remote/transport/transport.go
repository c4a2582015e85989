// Package transport is a way to a machine: start a command there, get its input
// and output, be told when it ends. The agent needs no more than that.
package transport

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// Machine is an open way to a machine. Its methods may be called from several
// goroutines.
type Machine interface {
	// Start has a command line started by the user's login shell, whichever that
	// is. It returns when the command was started, as far as that is told.
	Start(ctx context.Context, line string) (Command, error)
	// Kill ends the way at once, with everything on it. The first reason is kept.
	Kill(why error)
	// Done is closed when the way has ended, and Err says why then.
	Done() <-chan struct{}
	Err() error
}

// Command is a command that runs on a machine: its output is read, its input
// written. Close ends it here at once, whatever becomes of it there.
type Command interface {
	io.ReadWriteCloser
	// Said is the end of what it wrote to its error output.
	Said() string
}

// Opener opens a way to a machine.
type Opener func(ctx context.Context) (Machine, error)

// tailMost is how much of an error output is kept.
const tailMost = 4 << 10

// Tail keeps the end of what is written to it.
type Tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-tailMost):]...)
	t.kept = t.kept[max(0, len(t.kept)-tailMost):]
	return len(p), nil
}

// ReadFrom takes in what r says, to its end. It is what io.Copy uses: without it a
// buffer of 32 KB would stand by for as long as a command of a node lasts, mostly for
// nothing.
func (t *Tail) ReadFrom(r io.Reader) (read int64, err error) {
	piece := make([]byte, 1<<10)
	for err == nil {
		var k int
		k, err = r.Read(piece)
		_, _ = t.Write(piece[:k])
		read += int64(k)
	}
	if err == io.EOF {
		err = nil
	}
	return read, err
}

// String is what is kept, without blanks around it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
