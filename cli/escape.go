package cli

import (
	"bytes"
	"context"
	"io"
)

// escape is the input of a shell on a node. The terminal is the node's, so
// Ctrl-C goes there: with a node that hangs there must be another way out. It is
// that of ssh(1): ~. at the beginning of a line. And until the node has said its
// first word, Ctrl-C is for us.
type escape struct {
	from  io.Reader
	heard func() bool // whether the node has said something
	leave context.CancelFunc

	fresh bool // a line begins
	tilde bool // a line began with ~
}

// ctrlC is what a terminal in raw mode gives for Ctrl-C.
const ctrlC = 3

// Read passes on what was typed.
func (e *escape) Read(p []byte) (int, error) {
	n, err := e.from.Read(p)
	if n > 0 && e.asksOut(p[:n]) {
		e.leave()
		return 0, io.EOF
	}
	return n, err
}

// asksOut looks for a way out in what was typed.
func (e *escape) asksOut(typed []byte) bool {
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

// ahead reads what is typed before anybody wants it, so that a way out is seen
// while the node does not even give a terminal.
func (e *escape) ahead() io.Reader {
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
