package bulk

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/dlwb/dlwb/remote/wire"
)

// Sink takes the files that come, one after the other. The bytes that it is given
// are used again.
type Sink interface {
	Head(h wire.Head) error // of what comes next, where the sender tells it
	Data(p []byte) error    // some of a file
	End(e wire.End) error   // the file has come
}

// LostError says that a call was cut off.
type LostError struct{ Err error }

// Error tells what became of the connection.
func (e *LostError) Error() string { return "the connection was lost: " + e.Err.Error() }

// Unwrap is the connection's error.
func (e *LostError) Unwrap() error { return e.Err }

// Lost makes an error of a call a *LostError, unless it is the other side's doing:
// its word, or what is none.
func Lost(err error) error {
	if err == nil || errors.As(err, new(*wire.Fault)) || errors.As(err, new(*wire.ProtocolError)) {
		return err
	}
	return &LostError{err}
}

// errBroken is the error of a pack that makes no sense.
var errBroken = &wire.ProtocolError{Err: errors.New("what comes is no pack of files")}

// idleMost is how many packs may come that have nothing in them: each stands for
// bytes that the other side only read.
const idleMost = 1 << 14

// Receive gives what comes to a sink until the other side ends the call. Errors of
// the sink are returned as they are; a *LostError is the connection's.
func Receive(from Call, to Sink) error {
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(wire.PackMost))
	if err != nil {
		return err
	}
	defer unzip.Close()
	raw, full := make([]byte, wire.PackMost), make([]byte, 0, wire.PackMost)
	for idle := 0; idle < idleMost; idle++ {
		var pack wire.Pack
		if err := from.Recv(&pack); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return Lost(err)
		}
		if len(pack.Parts) > wire.PageMost || pack.Len < 0 || pack.Len > wire.PackMost || pack.Full < 0 || pack.Full > wire.PackMost {
			return errBroken
		}
		data := raw[:pack.Len]
		if _, err := io.ReadFull(from.Raw(), data); err != nil {
			return Lost(err)
		}
		if pack.Full > 0 {
			if data, err = unzip.DecodeAll(data, full); err != nil || len(data) != pack.Full {
				return fmt.Errorf("%w: %d bytes become %d, not %d", errBroken, pack.Len, len(data), pack.Full)
			}
		}
		for _, part := range pack.Parts {
			if part.N > 0 || part.End != nil {
				idle = 0
			}
			if data, err = pass(part, data, to); err != nil {
				return err
			}
		}
		if len(data) > 0 {
			return errBroken
		}
	}
	return fmt.Errorf("%w: %d in a row were empty", errBroken, idleMost)
}

// pass gives one part to the sink, and the rest of the bytes back.
func pass(part wire.Part, data []byte, to Sink) ([]byte, error) {
	if part.N < 0 || part.N > len(data) {
		return nil, errBroken
	}
	var err error
	if part.Head != nil {
		err = to.Head(*part.Head)
	}
	if err == nil && part.N > 0 {
		err = to.Data(data[:part.N])
	}
	if err == nil && part.End != nil {
		err = to.End(*part.End)
	}
	return data[part.N:], err
}
