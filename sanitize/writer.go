package sanitize

import (
	"io"
	"sync"
)

// Writer is an io.Writer that lets only safe text through to another one. A
// character or an escape sequence may be split between writes: the result is
// the same however the text was cut. It may be used by several goroutines at
// once; what one Write gives stays together.
type Writer struct {
	mu  sync.Mutex
	to  io.Writer
	m   machine
	buf []byte // of the last write, used again
}

// NewWriter returns a Writer that passes printable text, newline and tab, as
// Plain does.
func NewWriter(to io.Writer) *Writer {
	return &Writer{to: to, m: machine{options: options{noSGR: true}}}
}

// NewColourWriter returns a Writer that passes SGR too, as Text does: for the
// output of a program whose colours are wanted.
func NewColourWriter(to io.Writer) *Writer { return &Writer{to: to} }

// keptBuffer bounds the memory that a Writer holds between two writes.
const keptBuffer = 64 << 10

// Write writes what is safe of p. It reports p as written unless the writer
// behind fails. What p leaves incomplete is held back until the next Write or
// Close.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.m.idle() && cleanPrefix(p) == len(p) { // as nearly everything is
		if len(p) > 0 {
			w.m.after(p[len(p)-1])
		}
		return w.to.Write(p)
	}
	w.buf = feed(&w.m, w.buf[:0], p)
	return len(p), w.flush()
}

// Close writes what the end of the text owes: U+FFFD for half a character, and
// a reset where attributes are open. The writer behind stays open, and the
// Writer may be used again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = w.m.finish(w.buf[:0])
	w.m = machine{options: w.m.options}
	return w.flush()
}

func (w *Writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	_, err := w.to.Write(w.buf)
	if cap(w.buf) > keptBuffer {
		w.buf = nil
	}
	return err
}
