package wire

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// Sync makes a directory of the node hold what a project holds. The request is a
// SyncLook. The agent answers with what lies there: SyncViews, of which the last
// one has no More. Then the caller sends SyncSteps, until it ends the call. What
// the agent answers to some of them is a SyncAnswer.
const Sync = "sync"

const (
	// SyncListMost is about how many bytes of a list go into one message.
	SyncListMost = 256 << 10
	// SyncPathMost bounds a path and the target of a link.
	SyncPathMost = 4096
	// SyncDataMost bounds the content in one step, packed or not.
	SyncDataMost = 768 << 10
	// SyncEntriesMost bounds the things of a project.
	SyncEntriesMost = 4 << 20
	// SyncBatchMost bounds the things of a batch.
	SyncBatchMost = 1 << 16
	// SyncPeersMost bounds the nodes that one stream goes to.
	SyncPeersMost = 4096
)

// SyncOverrun is the kind of the fault that another sync of the same directory
// came first: looking again helps.
const SyncOverrun = "sync-overrun"

// The kinds of things that a project has.
const (
	SyncFile = byte('f')
	SyncDir  = byte('d')
	SyncLink = byte('l')
)

// Bytes is text that need not be UTF-8.
type Bytes = cbor.ByteString

// SyncEntry is one thing of a project.
type SyncEntry struct {
	_     struct{} `cbor:",toarray"`
	Path  Bytes
	Kind  byte
	Mode  uint32 // permissions
	Size  int64
	Mtime int64 // in nanoseconds
	Value Bytes // a file's SHA-256, a link's target
}

// Same reports whether two entries have the same content. The time does not
// count: a file that was only touched is not sent again.
func (e SyncEntry) Same(o SyncEntry) bool {
	return e.Kind == o.Kind && e.Mode == o.Mode && e.Value == o.Value
}

// Valid reports whether an entry can be one of a project.
func (e SyncEntry) Valid() bool {
	if !LocalPath(string(e.Path)) || e.Size < 0 || e.Mode > 0o777 {
		return false
	}
	switch e.Kind {
	case SyncDir:
		return true
	case SyncLink:
		return len(e.Value) > 0 && len(e.Value) < SyncPathMost && !strings.Contains(string(e.Value), "\x00")
	}
	return e.Kind == SyncFile && len(e.Value) == sha256.Size
}

// LocalPath reports whether a path is clean and stays below where it starts.
func LocalPath(p string) bool {
	if p == "" || len(p) >= SyncPathMost || p[0] == '/' || strings.Contains(p, "\x00") {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

// SyncDigest is equal for lists of the same content. It sorts the list.
func SyncDigest(list []SyncEntry) []byte {
	slices.SortFunc(list, func(a, b SyncEntry) int { return strings.Compare(string(a.Path), string(b.Path)) })
	sum := sha256.New()
	var line []byte
	for _, e := range list {
		line = binary.AppendUvarint(append(line[:0], e.Kind), uint64(e.Mode))
		for _, text := range []Bytes{e.Path, e.Value} {
			line = append(binary.AppendUvarint(line, uint64(len(text))), text...)
		}
		_, _ = sum.Write(line) // a hash takes all
	}
	return sum.Sum(nil)
}

// SyncLists cuts a list into ones that go into a message each.
func SyncLists[T any](list []T, size func(T) int) (parts [][]T) {
	from, bytes := 0, 0
	for i := range list {
		if bytes += size(list[i]); bytes > SyncListMost {
			parts, from, bytes = append(parts, list[from:i+1]), i+1, 0
		}
	}
	return append(parts, list[from:])
}

// SyncSize is about how long an entry is in a message.
func SyncSize(e SyncEntry) int { return len(e.Path) + len(e.Value) + 32 }

// SyncLook asks what lies in a directory.
type SyncLook struct {
	Dir string `cbor:"d"` // absolute, or below the home
	ID  string `cbor:"i"` // the name of its state
	// Want is the digest of what should lie there; Heart is that of what the
	// caller takes for what dlwb has put there last, and knows.
	Want    []byte `cbor:"w"`
	Heart   []byte `cbor:"h,omitempty"`
	Preview bool   `cbor:"p,omitempty"` // nothing is to be changed
	Stamp   string `cbor:"s"`           // names what has to make way
	Large   int64  `cbor:"l"`           // from what size on the beginning of a file is kept
}

// SyncView is what lies in a directory.
type SyncView struct {
	Same    bool        `cbor:"s,omitempty"` // what should; nothing else is told
	Digest  []byte      `cbor:"d,omitempty"` // of what dlwb has put there
	Entries []SyncEntry `cbor:"e,omitempty"` // that; not where Digest is Heart
	Odd     []SyncOdd   `cbor:"o,omitempty"` // what lies there otherwise
	Halfway bool        `cbor:"h,omitempty"` // a sync was stopped while it put things in place
	Parts   []SyncPart  `cbor:"p,omitempty"` // large files that have come in part
	// Pairing names the nodes that this one takes files from; empty: none. Sends
	// says that it can send files to them.
	Pairing string `cbor:"r,omitempty"`
	Sends   bool   `cbor:"x,omitempty"`
	More    bool   `cbor:"m,omitempty"`
}

// SyncOdd is a thing that is not as the records have it.
type SyncOdd struct {
	Now  SyncEntry `cbor:"n"`           // its Kind is 0 where it is gone; no Value: nobody has looked
	Ours bool      `cbor:"o,omitempty"` // a sync that was stopped has put it there
}

// SyncPart is the beginning of a large file.
type SyncPart struct {
	Sum  Bytes `cbor:"s"`
	Size int64 `cbor:"z"`
}

// SyncStep is one of these.
type SyncStep struct {
	Batch   *SyncBatch   `cbor:"b,omitempty"`
	Pack    *SyncPack    `cbor:"p,omitempty"`
	Piece   *SyncPiece   `cbor:"e,omitempty"`
	Cut     Bytes        `cbor:"c,omitempty"` // asks for the chunks of this file: SyncChunks
	Listen  string       `cbor:"l,omitempty"` // packs and pieces come under this name: a SyncDone
	Forward *SyncForward `cbor:"f,omitempty"`
	Mark    bool         `cbor:"m,omitempty"` // goes on to peers: a batch has been sent
	Through bool         `cbor:"t,omitempty"` // who passes a batch on has sent all of it
	Settle  *SyncSettle  `cbor:"s,omitempty"`
}

func (s SyncStep) load() *[]byte {
	switch {
	case s.Pack != nil:
		return &s.Pack.Data
	case s.Piece != nil:
		return &s.Piece.Data
	}
	return nil
}

// SyncBatch says what is to happen: in several steps where it is long.
type SyncBatch struct {
	Remove []Bytes     `cbor:"r,omitempty"` // files and links
	Rmdirs []Bytes     `cbor:"d,omitempty"` // the deepest first
	Files  []SyncEntry `cbor:"f,omitempty"` // that are to be there after it
	// There are files that lie there already, but not in the records.
	There []SyncEntry `cbor:"t,omitempty"`
}

// SyncPack is the content of small files, one after the other.
type SyncPack struct {
	Paths []Bytes `cbor:"p"`
	Sizes []int64 `cbor:"s"`
	Size  int     `cbor:"z,omitempty"` // when it is unpacked; 0: it is not packed
	Data  []byte  `cbor:"-"`
}

// SyncPiece is a piece of a file: its content, or where in the older file it is.
type SyncPiece struct {
	Path Bytes  `cbor:"p"`
	At   int64  `cbor:"a"`
	Size int    `cbor:"z,omitempty"` // as in SyncPack
	Data []byte `cbor:"-"`
	From int64  `cbor:"f,omitempty"`
	Len  int64  `cbor:"l,omitempty"` // 0: it is in Data
}

// SyncForward has the packs, pieces and marks that come next go on to other
// nodes, which listen under a name.
type SyncForward struct {
	Name  string   `cbor:"n"`
	Peers []string `cbor:"p"`
	Over  bool     `cbor:"o,omitempty"` // nothing more goes on
}

// SyncSettle waits for what has come to be written. The answer is a SyncDone.
type SyncSettle struct {
	Place bool `cbor:"p,omitempty"` // and where nothing lacks, it comes to its place
	Peer  bool `cbor:"e,omitempty"` // the other node's mark is waited for
}

// SyncAnswer is one of these.
type SyncAnswer struct {
	Done   *SyncDone   `cbor:"d,omitempty"`
	Chunks *SyncChunks `cbor:"c,omitempty"`
}

// SyncDone is how far a batch is.
type SyncDone struct {
	Lacks []int   `cbor:"l,omitempty"` // of the batch's Files, whose content has not come
	Kept  []Bytes `cbor:"k,omitempty"` // what had to make way
	Wrong string  `cbor:"w,omitempty"` // why what came was not used
	More  bool    `cbor:"m,omitempty"`
}

// SyncChunks are the chunks of a file.
type SyncChunks struct {
	Chunks []SyncChunk `cbor:"c"`
	More   bool        `cbor:"m,omitempty"`
}

// SyncChunk is a chunk of a file.
type SyncChunk struct {
	_    struct{} `cbor:",toarray"`
	Size int64
	Sum  Bytes // 16 bytes of SHA-256: the whole file's is checked as well
}

// Frame is a message as it goes from one node to another, by other ways than a
// session.
func Frame(v any) ([]byte, error) {
	body, err := Encode(v)
	if err != nil {
		return nil, err
	}
	return append(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen32+len(body)), uint64(len(body))), body...), nil
}

// ReadFrame reads such a message.
func ReadFrame(r *bufio.Reader, v any) error {
	length, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	if length > MessageMost {
		return fmt.Errorf("a message of %d bytes", length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return noEnd(err)
	}
	return decode(body, v)
}
