package transfer

import (
	"encoding/binary"
	"io/fs"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// listMost is how much memory the list of what is wanted from a node may take: that
// of 200,000 files, each with 44 bytes of a name that the one before it does not
// have, and 16 for the rest.
const listMost = 12 << 20

// thingList is what a fetch needs of things of a node, in little memory: a name
// without what it has in common with the one before it, and numbers as long as they
// have to be.
type thingList struct {
	chunks [][]byte
	count  int
	last   string // the name that was added last
}

// chunkBytes is how much is allocated at a time; no thing takes more.
const chunkBytes = 64 << 10

// add adds a thing, whose name has NameMost bytes at most. False: there is no room.
func (l *thingList) add(t wire.Thing) bool {
	common := 0
	for common < min(len(l.last), len(t.Name)) && l.last[common] == t.Name[common] {
		common++
	}
	b := binary.AppendUvarint(make([]byte, 0, 256), uint64(common))
	b = binary.AppendUvarint(b, uint64(len(t.Name)-common))
	b = append(b, t.Name[common:]...)
	b = binary.AppendUvarint(b, uint64(t.Mode))
	b = binary.AppendVarint(binary.AppendVarint(b, t.Size), t.MTime.Sec)
	end := len(l.chunks) - 1
	if end < 0 || cap(l.chunks[end])-len(l.chunks[end]) < len(b) {
		if len(l.chunks) == listMost/chunkBytes {
			return false
		}
		l.chunks, end = append(l.chunks, make([]byte, 0, chunkBytes)), end+1
	}
	l.chunks[end] = append(l.chunks[end], b...)
	l.last = t.Name
	l.count++
	return true
}

// thingReader is a place in a list.
type thingReader struct {
	list  *thingList
	chunk int
	at    int
	read  int    // so many things are behind it
	last  string // the name of the last of them
}

// next reads a thing; false: there are no more.
func (r *thingReader) next() (t wire.Thing, ok bool) {
	if r.read == r.list.count {
		return t, false
	}
	if r.at == len(r.list.chunks[r.chunk]) {
		r.chunk, r.at = r.chunk+1, 0
	}
	b := r.list.chunks[r.chunk]
	unsigned := func() uint64 {
		n, size := binary.Uvarint(b[r.at:])
		r.at += size
		return n
	}
	signed := func() int64 {
		n, size := binary.Varint(b[r.at:])
		r.at += size
		return n
	}
	common, own := int(unsigned()), int(unsigned())
	t.Name = r.last[:common] + string(b[r.at:r.at+own])
	r.at += own
	t.Mode = uint32(unsigned())
	t.Size, t.MTime.Sec = signed(), signed()
	r.last = t.Name
	r.read++
	return t, true
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
