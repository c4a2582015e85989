package transfer

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// A list of what is wanted from a node may be long, and is read twice in its order:
// it lies in a file, but for its beginning and its end.
const (
	// listMost is how long it may be, in bytes: 250,000 files have 110 each for the part
	// of a name that the one before does not have, and 16 for the rest.
	listMost = 32 << 20
	// listHeld is how much of its beginning is in memory: most lists are no longer.
	listHeld = 1 << 20
	// chunkBytes is how much is allocated, written and read at a time; no thing takes
	// more.
	chunkBytes = 64 << 10
)

// errListFull says that there is no room for more.
var errListFull = errors.New("the list is full")

// thingList is what a fetch needs of things of a node, in few bytes: a name without
// what it has in common with the one before it, and numbers as long as they have to be.
type thingList struct {
	spill func() (*os.File, error) // makes the file, which is removed by who made it
	file  *os.File                 // nil: there is none yet
	held  [][]byte                 // the first chunks
	sizes []int                    // of those in the file
	chunk []byte                   // the last
	count int
	last  string // the name that was added last
}

// add adds a thing, whose name has NameMost bytes at most. The error is errListFull, or
// that of the file.
func (l *thingList) add(t wire.Thing) error {
	common := 0
	for common < min(len(l.last), len(t.Name)) && l.last[common] == t.Name[common] {
		common++
	}
	b := binary.AppendUvarint(make([]byte, 0, 256), uint64(common))
	b = binary.AppendUvarint(b, uint64(len(t.Name)-common))
	b = append(b, t.Name[common:]...)
	b = binary.AppendUvarint(b, uint64(t.Mode))
	b = binary.AppendVarint(binary.AppendVarint(b, t.Size), t.MTime.Sec)
	if len(l.chunk)+len(b) > chunkBytes {
		if err := l.putAway(); err != nil {
			return err
		}
	}
	if l.chunk == nil {
		l.chunk = make([]byte, 0, chunkBytes)
	}
	l.chunk = append(l.chunk, b...)
	l.last = t.Name
	l.count++
	return nil
}

// putAway makes room for another chunk.
func (l *thingList) putAway() (err error) {
	switch n := len(l.held) + len(l.sizes) + 1; {
	case n <= listHeld/chunkBytes:
		l.held, l.chunk = append(l.held, l.chunk), nil
		return nil
	case n == listMost/chunkBytes:
		return errListFull
	}
	if l.file == nil {
		if l.file, err = l.spill(); err != nil {
			return err
		}
	}
	if _, err = l.file.WriteAt(l.chunk, int64(len(l.sizes))*chunkBytes); err == nil {
		l.sizes, l.chunk = append(l.sizes, len(l.chunk)), l.chunk[:0]
	}
	return err
}

// read gives a chunk, which must not be written to.
func (l *thingList) read(chunk int) ([]byte, error) {
	if chunk < len(l.held) {
		return l.held[chunk], nil
	}
	if chunk -= len(l.held); chunk == len(l.sizes) {
		return l.chunk, nil
	}
	b := make([]byte, l.sizes[chunk])
	_, err := l.file.ReadAt(b, int64(chunk)*chunkBytes)
	return b, err
}

func (l *thingList) close() {
	if l != nil && l.file != nil {
		_ = l.file.Close()
	}
}

// thingReader is a place in a list to which nothing is added any more.
type thingReader struct {
	list  *thingList
	bytes []byte // of the chunk, from here on
	chunk int    // so many were begun
	read  int    // so many things are behind it
	last  string // the name of the last of them
}

// next reads a thing; false: there are no more. The error is that of the file.
func (r *thingReader) next() (t wire.Thing, ok bool, err error) {
	if r.read == r.list.count {
		return t, false, nil
	}
	if len(r.bytes) == 0 {
		if r.bytes, err = r.list.read(r.chunk); err != nil {
			return t, false, err
		}
		r.chunk++
	}
	unsigned := func() uint64 {
		n, size := binary.Uvarint(r.bytes)
		r.bytes = r.bytes[size:]
		return n
	}
	signed := func() int64 {
		n, size := binary.Varint(r.bytes)
		r.bytes = r.bytes[size:]
		return n
	}
	common, own := int(unsigned()), int(unsigned())
	t.Name = r.last[:common] + string(r.bytes[:own])
	r.bytes = r.bytes[own:]
	t.Mode = uint32(unsigned())
	t.Size, t.MTime.Sec = signed(), signed()
	r.last = t.Name
	r.read++
	return t, true, nil
}

func (r *thingReader) left() int { return r.list.count - r.read }

// permissions are those that a file has there: what nobody else may read there nobody
// else may read here. The bits by which a program runs as its owner stay behind.
func permissions(t wire.Thing) fs.FileMode { return fs.FileMode(t.Mode) & fs.ModePerm }

// ownerMay is what the user may do with a file that has come, whatever its mode there;
// dirMay is that of a directory.
const (
	ownerMay = 0o600
	dirMay   = 0o700
)

func writtenAt(t wire.Thing) time.Time { return time.Unix(t.MTime.Sec, 0) }
