package console

import (
	"bytes"
	"io"
)

// Escape is the input of a shell on a node. The terminal is the node's, so
// Ctrl-C goes there: with a node that hangs there must be another way out. It is
// that of ssh(1): ~. at the beginning of a line. And until the node has said its
// first word, Ctrl-C is for us.
type Escape struct {
	from  io.Reader
	heard func() bool // whether the node has said something
	leave func()

	fresh bool // a line begins
	tilde bool // a line began with ~
}

// NewEscape reads from a terminal. heard says whether the node has said something;
// leave is called once when the way out was typed.
func NewEscape(from io.Reader, heard func() bool, leave func()) *Escape {
	return &Escape{from: from, heard: heard, leave: leave, fresh: true}
}

// ctrlC is what a terminal in raw mode gives for Ctrl-C.
const ctrlC = 3

// Read passes on what was typed.
func (e *Escape) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if n > 0 && e.asksOut(p[:n]) {
		e.leave()
		return 0, io.EOF
	}
	return n, err
}

// asksOut looks for a way out in what was typed.
func (e *Escape) asksOut(typed []byte) bool {
	if !e.heard() && bytes.IndexByte(typed, ctrlC) >= 0 {
		return true
	}
	for _, c := range typed {
		switch {
		case e.tilde && c == '.':
			return true
		case c == '\r' || c == '\n':
			e.fresh, e.tilde = true, false
		default:
			e.tilde = e.fresh && c == '~'
			e.fresh = false
		}
	}
	return false
}

// typedAhead is how many pieces of what was typed wait for a shell that is not
// there yet.
const typedAhead = 64

// Ahead reads what is typed before anybody wants it, so that a way out is seen
// while the node does not even give a terminal.
func (e *Escape) Ahead() io.Reader {
	pieces := make(chan []byte, typedAhead)
	go func() {
		defer close(pieces)
		for {
			piece := make([]byte, 4<<10)
			n, err := e.Read(piece)
			if n > 0 {
				pieces <- piece[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	return &pieceReader{pieces: pieces}
}

// pieceReader reads pieces one after the other.
type pieceReader struct {
	pieces <-chan []byte
	left   []byte
}

// Read takes of the next piece.
func (r *pieceReader) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		piece, ok := <-r.pieces
		if !ok {
			return 0, io.EOF
		}
		r.left = piece
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}
