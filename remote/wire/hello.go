package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// An agent begins what it writes with its hello: a line that nothing else on the
// node can write by chance, as it holds a word that was made for this one start.
// Whatever a login shell prints before it is skipped.

// helloMost is how much is read in search of a hello.
const helloMost = 1 << 20

// Hello is the line. The word comes in two parts, so that a shell that prints
// the command which it runs does not print the whole.
func Hello(first, second string) string {
	return fmt.Sprintf("\n\x01dlwb %s%s %d\n", first, second, Version)
}

// ErrEndless says that what comes before a hello does not end.
var ErrEndless = fmt.Errorf("it printed more than %d bytes before anything began", helloMost)

// NoHelloError says that a hello did not come.
type NoHelloError struct {
	Said []byte // what came instead, the end of it
	Err  error
}

// Error tells what happened to the stream.
func (e *NoHelloError) Error() string {
	if errors.Is(e.Err, io.EOF) {
		return "it ended before the agent began"
	}
	return e.Err.Error()
}

// Unwrap is the stream's error.
func (e *NoHelloError) Unwrap() error { return e.Err }

// AwaitHello reads until one of some marks has come, and tells which: marks are
// whole lines or beginnings of lines. The rest of the stream is the reader's.
func AwaitHello(r *bufio.Reader, marks ...string) (which int, err error) {
	var tail []byte
	keep := 0
	for _, m := range marks {
		keep = max(keep, len(m))
	}
	for range helloMost {
		b, err := r.ReadByte()
		if err != nil {
			return -1, &NoHelloError{tail, err}
		}
		if tail = append(tail, b); len(tail) > 8<<10 {
			tail = append(tail[:0], tail[len(tail)-max(keep, 2<<10):]...)
		}
		for i, m := range marks {
			if bytes.HasSuffix(tail, []byte(m)) {
				return i, nil
			}
		}
	}
	return -1, &NoHelloError{tail, ErrEndless}
}
