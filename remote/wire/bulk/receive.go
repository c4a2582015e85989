package bulk

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/dlwb/dlwb/remote/wire"
)

// Receiver is a call on which packs come.
type Receiver interface{ Recv(v any) error }

// Sink takes the files that come, one after the other.
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

// Lost makes an error of a call a *LostError, unless it is the other side's word.
func Lost(err error) error {
	if fault := new(wire.Fault); err == nil || errors.As(err, &fault) {
		return err
	}
	return &LostError{err}
}

// errBroken is the error of a pack that makes no sense.
var errBroken = errors.New("what comes is no pack of files")

// idleMost is how many packs may come that have nothing in them: each stands for
// bytes that the other side only read.
const idleMost = 1 << 14

// Receive gives what comes to a sink until the other side ends the call. Errors of
// the sink are returned as they are; a *LostError is the connection's.
func Receive(from Receiver, to Sink) error {
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(wire.PackMost))
	if err != nil {
		return err
	}
	defer unzip.Close()
	for idle := 0; idle < idleMost; idle++ {
		var pack wire.Pack
		if err := from.Recv(&pack); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return Lost(err)
		}
		data, err := open(pack, unzip)
		if err != nil {
			return err
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

// open gives the bytes of a pack in their full form, within its bounds.
func open(pack wire.Pack, unzip *zstd.Decoder) ([]byte, error) {
	if len(pack.Parts) > wire.PageMost || len(pack.Data) > wire.PackMost || pack.Full < 0 || pack.Full > wire.PackMost {
		return nil, errBroken
	}
	if pack.Full == 0 {
		return pack.Data, nil
	}
	full, err := unzip.DecodeAll(pack.Data, make([]byte, 0, pack.Full))
	if err != nil || len(full) != pack.Full {
		return nil, fmt.Errorf("%w: %d bytes become %d, not %d", errBroken, len(pack.Data), len(full), pack.Full)
	}
	return full, nil
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
