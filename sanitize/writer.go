package sanitize

import (
	"io"
	"sync"
	"unicode/utf8"
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

	lost error // the first of the writer behind
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
		return w.pass(p)
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
	_, err := w.pass(w.buf)
	if cap(w.buf) > keptBuffer {
		w.buf = nil
	}
	return err
}

func (w *Writer) pass(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.lost == nil {
		w.lost = err
	}
	return n, err
}

// Lost is the first error of the writer behind: what was written then is missing
// there, whoever saw the error. Nil when all went through.
func (w *Writer) Lost() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// WholeRunes is how much of a piece of text can be written by itself without
// cutting a character in two.
func WholeRunes(b []byte) int {
	for n := len(b) - 1; n > 0 && n > len(b)-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			if utf8.FullRune(b[n:]) {
				break
			}
			return n
		}
	}
	return len(b)
}
