package transfer

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// Files up to smallMost come several in a pack; larger ones come in pieces.
	smallMost = 256 << 10
	packMost  = 512 << 10
	// firstPack is the size of the first pack, which also shows how fast the line is.
	firstPack = 256 << 10
	// heldMost bounds the frames that are kept for nodes which have not come to
	// them yet. Beyond it, each of them reads the files anew.
	heldMost = 64 << 20
)

// errFileMoved: a file changed between the reading for its checksum and the
// reading for the nodes.
var errFileMoved = errors.New("changed while it was sent")

// parcel is the content of some files, as frames: made once for all nodes that
// need the same.
type parcel struct {
	root   *os.Root
	frames []*frame
	held   atomic.Int64
	better atomic.Bool // the line is slow: it is worth the processor's time
}

// frame is one message.
type frame struct {
	entry *treeEntry // of a piece; nil for a pack
	at    int64      // of a piece: where it begins
	raw   int64      // how much of files it brings
	// step makes the message. Its Data may lie in room.
	step func(room []byte) (wire.SyncStep, error)

	mu    sync.Mutex
	data  []byte
	users int // nodes that have not come to it
}

// newParcel plans the content of files for so many nodes.
func newParcel(root *os.Root, files []*treeEntry, users int) *parcel {
	p := &parcel{root: root}
	var small []*treeEntry
	for _, e := range files {
		switch {
		case e.kind != kindFile:
		case e.size <= smallMost:
			small = append(small, e)
		default:
			p.addPieces(e, users)
		}
	}
	// By directory: who writes them opens each once.
	slices.SortStableFunc(small, func(a, b *treeEntry) int { return cmp.Compare(path.Dir(a.path), path.Dir(b.path)) })
	for _, part := range packsOf(small) {
		f := &frame{users: users, step: func(room []byte) (wire.SyncStep, error) { return p.pack(part, room) }}
		for _, e := range part {
			f.raw += e.size
		}
		p.frames = append(p.frames, f)
	}
	return p
}

func packsOf(small []*treeEntry) (packs [][]*treeEntry) {
	from, size := 0, int64(0)
	for i, e := range small {
		cost := e.size + int64(len(e.path)) + 16
		if most := int64(min(packMost, firstPack<<min(len(packs), 1))); i > from && size+cost > most {
			packs, from, size = append(packs, small[from:i]), i, 0
		}
		size += cost
	}
	if from < len(small) {
		packs = append(packs, small[from:])
	}
	return packs
}

func (p *parcel) addPieces(e *treeEntry, users int) {
	for at := int64(0); at < e.size; at += packMost {
		size := min(packMost, e.size-at)
		p.frames = append(p.frames, &frame{
			entry: e, at: at, raw: size, users: users,
			step: func(room []byte) (wire.SyncStep, error) { return p.piece(e, at, size, room) },
		})
	}
}

// message is a frame as it is sent.
type message struct {
	data []byte
	own  *[]byte // it is used again when this node has it; nil: others may get it
}

// rooms are for what is read, and for messages: collecting what is used once took
// a fifth of the time.
var rooms = sync.Pool{New: func() any { room := make([]byte, 0, packMost+roomMore); return &room }}

// roomMore is for what stands around the content of a frame.
const roomMore = 4 << 10

// sent gives back what a message lies in.
func (m message) sent() {
	if m.own != nil {
		rooms.Put(m.own)
	}
}

// take gives a frame for one of the nodes.
func (p *parcel) take(f *frame) (message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users--
	data := f.data
	if data != nil && f.users <= 0 {
		f.data = nil
		p.held.Add(-int64(len(data)))
	}
	if data != nil {
		return message{data: data}, nil
	}
	room := rooms.Get().(*[]byte)
	defer rooms.Put(room)
	step, err := f.step((*room)[:0])
	if err != nil {
		return message{}, err
	}
	if f.users > 0 && p.held.Load() < heldMost {
		if data, err = wire.Encode(step); err == nil {
			f.data = data
			p.held.Add(int64(len(data)))
		}
		return message{data: data}, err
	}
	own := rooms.Get().(*[]byte)
	data, err = wire.AppendEncoded((*own)[:0], step)
	return message{data, own}, err
}

// pack reads small files and checks that they are still the ones whose
// checksums are known.
func (p *parcel) pack(files []*treeEntry, room []byte) (wire.SyncStep, error) {
	pack := &wire.SyncPack{}
	var size int64
	for _, e := range files {
		size += e.size
	}
	data := slices.Grow(room, int(size)+1) // one byte more shows a file that has grown
	for _, e := range files {
		content, err := readFile(p.root, e, data[len(data):cap(data)])
		if err != nil {
			return wire.SyncStep{}, err
		}
		data = data[:len(data)+len(content)]
		pack.Paths, pack.Sizes = append(pack.Paths, wire.Bytes(e.path)), append(pack.Sizes, e.size)
	}
	pack.Data, pack.Size = p.shrink(data)
	return wire.SyncStep{Pack: pack}, nil
}

func fileMoved(e *treeEntry, err error) error {
	if err == nil {
		return fmt.Errorf("%s: %w", nameText(e.path), errFileMoved)
	}
	return fmt.Errorf("%s: %w (%w)", nameText(e.path), errFileMoved, err)
}

func readFile(root *os.Root, e *treeEntry, room []byte) ([]byte, error) {
	f, err := root.Open(e.path)
	if err != nil {
		return nil, fileMoved(e, err)
	}
	defer func() { _ = f.Close() }()
	n, err := io.ReadFull(f, room[:min(e.size+1, int64(len(room)))])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fileMoved(e, err)
	}
	if sum := sha256.Sum256(room[:n]); hex.EncodeToString(sum[:]) != e.sum {
		return nil, fileMoved(e, nil)
	}
	return room[:n], nil
}

// piece reads a part of a file. Whether that was still the right one shows when
// the node has all of it.
func (p *parcel) piece(e *treeEntry, at, size int64, room []byte) (wire.SyncStep, error) {
	f, err := p.root.Open(e.path)
	if err != nil {
		return wire.SyncStep{}, fileMoved(e, err)
	}
	defer func() { _ = f.Close() }()
	data := slices.Grow(room, int(size))[:size]
	if _, err := f.ReadAt(data, at); err != nil {
		return wire.SyncStep{}, fileMoved(e, err)
	}
	piece := &wire.SyncPiece{Path: wire.Bytes(e.path), At: at}
	piece.Data, piece.Size = p.shrink(data)
	return wire.SyncStep{Piece: piece}, nil
}

var (
	fastZip = sync.OnceValue(func() *zstd.Encoder { return zipper(zstd.SpeedFastest) })
	goodZip = sync.OnceValue(func() *zstd.Encoder { return zipper(zstd.SpeedDefault) })
)

func zipper(level zstd.EncoderLevel) *zstd.Encoder {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithWindowSize(packMost), zstd.WithEncoderCRC(false)) // good options
	return z
}

// shrink compresses content where that is worth it: weights and pictures are not. size
// is 0 where it is not compressed. Where the line waits for the processor, a part from
// the middle tells; where the processor waits for the line, all is tried, since a short
// part of a text may have nothing to save that the whole has.
func (p *parcel) shrink(data []byte) (_ []byte, size int) {
	const sample = 16 << 10
	if len(data) < 128 {
		return data, 0
	}
	zip := goodZip()
	if !p.better.Load() {
		zip = fastZip()
		if len(data) > 4*sample {
			middle := data[len(data)/2:][:sample]
			if len(zip.EncodeAll(middle, nil)) > sample*19/20 {
				return data, 0
			}
		}
	}
	packed := zip.EncodeAll(data, make([]byte, 0, len(data)))
	if len(packed) > len(data)*19/20 {
		return data, 0
	}
	return packed, len(data)
}

// pace is how fast a node takes frames: of this span, and of the one before.
type pace struct {
	bytes, before int64
	took, earlier time.Duration
}

const (
	// paceSpan is how much is sent in a span.
	paceSpan = 1 << 20
	// paceSlow is the rate in bytes a second below which the line is what a sync
	// waits for: the better compression takes about 50 MB a second, and halves text.
	// Above paceFast it is the compression.
	paceSlow, paceFast = 20e6, 80e6
	// farAway is how long a node takes to answer that is not on a local network: what
	// the first frames need says nothing, since the buffers on the way take them.
	farAway = 15 * time.Millisecond
)

// better takes note of a frame, and says whether the next ones are worth more of the
// processor's time.
func (p *pace) better(was bool, bytes int, took time.Duration) bool {
	p.bytes, p.took = p.bytes+int64(bytes), p.took+took
	if p.bytes < paceSpan {
		return was
	}
	sent, all := float64(p.bytes+p.before), (p.took + p.earlier).Seconds()
	both := p.before > 0
	p.before, p.earlier, p.bytes, p.took = p.bytes, p.took, 0, 0
	return sent < paceSlow*all || was && !(both && sent > paceFast*all)
}
