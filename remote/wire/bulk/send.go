// Package bulk moves files over a call of the agent: many small ones in one
// message, read ahead, each with a checksum that is made while it is read, and
// compressed where the connection is what is waited for. They come in the order
// in which they were asked for.
package bulk

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// queued is how many packs are read before the connection takes them.
	queued = 8
	// beatEvery is after how many bytes that are only read a sign of life is sent.
	beatEvery = 64 << 20
	// slowRate is below how many bytes a second a connection is worth compressing.
	slowRate = 48e6
	// triedAgain is after how many packs that did not become smaller another one
	// is tried.
	triedAgain = 64
)

// File is something to be sent: the content of a file from a byte on, the target
// of a link, or with neither only its head.
type File struct {
	Head *wire.Head
	Path string // empty: there is only a head
	From int64
	Link bool
}

// Call is a call on which files are sent or received.
type Call interface {
	Send(v any) error
	Recv(v any) error
	Raw() io.ReadWriter
}

// Send sends files in their order until there are no more. One that can't be
// read is told of; the error is the connection's or the context's.
func Send(ctx context.Context, to Call, files <-chan File) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &packer{ctx: reading, out: make(chan filled, queued), free: make(chan []byte, queued)}
	go func() {
		defer close(p.out)
		p.all(files)
	}()
	var err error
	for pack := range p.out {
		if err == nil {
			began := time.Now()
			if err = to.Send(pack.Pack); err == nil {
				_, err = to.Raw().Write(pack.data)
			}
			p.sent(pack, time.Since(began))
		}
		if err != nil {
			cancel() // the reader ends, and with it the packs
		}
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// filled is a pack with its bytes.
type filled struct {
	wire.Pack
	data []byte
}

// packer reads files into packs.
type packer struct {
	ctx  context.Context
	out  chan filled
	free chan []byte // to be used again
	pack filled
	zip  *zstd.Encoder
	skip int // so many packs are not tried to be compressed

	slow  atomic.Bool // the connection takes less than slowRate
	bytes int         // that it took last
	spent time.Duration
}

// sent notes how long the connection took for a pack.
func (p *packer) sent(pack filled, took time.Duration) {
	select {
	case p.free <- pack.data:
	default:
	}
	p.bytes, p.spent = p.bytes+len(pack.data), p.spent+took
	if p.bytes >= 8*wire.PackMost {
		p.slow.Store(float64(p.bytes) < slowRate*p.spent.Seconds())
		p.bytes, p.spent = 0, 0
	}
}

// all sends what is asked for. Nothing waits in a pack for the next question.
func (p *packer) all(files <-chan File) {
	for {
		select {
		case f, more := <-files:
			if !more {
				p.flush()
				return
			}
			p.file(f)
			continue
		default:
		}
		p.flush()
		select {
		case f, more := <-files:
			if !more {
				return
			}
			p.file(f)
		case <-p.ctx.Done():
			return
		}
	}
}

// file sends one file, link or head.
func (p *packer) file(f File) {
	if f.Head != nil {
		p.add(wire.Part{Head: f.Head})
	}
	end, err := &wire.End{}, error(nil)
	switch {
	case f.Link:
		var target string
		target, err = os.Readlink(f.Path)
		end.Link = target
	case f.Path != "":
		err = p.content(f, end)
	}
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err
	}
	if err != nil {
		end.Why = err.Error()
	}
	p.add(wire.Part{End: end})
}

// content sends a regular file, at most as much as it had when it was opened: one
// that is being written to would not end. Opening a fifo does not wait.
func (p *packer) content(f File, end *wire.End) error {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|syscall.O_NONBLOCK|nofollow, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	before, err := file.Stat()
	if err == nil && !before.Mode().IsRegular() {
		err = errors.New("it is no regular file any more")
	}
	if err != nil {
		return err
	}
	end.MTime = before.ModTime().Unix()
	sum := sha256.New()
	left := before.Size()
	for at := int64(0); left > 0 && p.ctx.Err() == nil; {
		buf := p.room(left)
		n, err := file.Read(buf)
		_, _ = sum.Write(buf[:n]) // a hash takes all
		skip := min(int64(n), max(0, f.From-at))
		switch {
		case skip == 0:
			p.add(wire.Part{N: n})
		case skip < int64(n):
			copy(buf, buf[skip:n])
			p.add(wire.Part{N: n - int(skip)})
		case at/beatEvery != (at+skip)/beatEvery:
			p.add(wire.Part{})
			p.flush()
		}
		at, left = at+int64(n), left-int64(n)
		if errors.Is(err, io.EOF) {
			break // it was made shorter
		} else if err != nil {
			return err
		}
	}
	after, err := file.Stat()
	end.Sum, end.Changed = sum.Sum(nil), err != nil || left > 0 || f.From > before.Size() || !same(before, after)
	return nil
}

// same reports whether a file was not written to between two looks.
func same(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && changedOf(a).Equal(changedOf(b))
}

// room is where bytes are read to that a part of the pack is to have.
func (p *packer) room(most int64) []byte {
	if len(p.pack.data) == wire.PackMost {
		p.flush()
	}
	if p.pack.data == nil {
		p.pack.data = p.buffer()
	}
	at := len(p.pack.data)
	return p.pack.data[at:min(int64(at)+most, wire.PackMost)]
}

func (p *packer) buffer() []byte {
	select {
	case b := <-p.free:
		if cap(b) >= wire.PackMost {
			return b[:0]
		}
	default:
	}
	return make([]byte, 0, wire.PackMost)
}

// add puts a part into the pack; its bytes are in the room already.
func (p *packer) add(part wire.Part) {
	p.pack.Parts = append(p.pack.Parts, part)
	p.pack.data = p.pack.data[:len(p.pack.data)+part.N]
	if len(p.pack.Parts) == wire.PageMost {
		p.flush()
	}
}

// flush sends a pack on. Compressing costs more than it saves on a connection that
// takes the bytes as fast as they are read, or nearly.
func (p *packer) flush() {
	if len(p.pack.Parts) == 0 {
		return
	}
	pack := p.pack
	p.pack = filled{}
	if p.slow.Load() && len(p.out) > 0 {
		p.compress(&pack)
	}
	pack.Len = len(pack.data)
	select {
	case p.out <- pack:
	case <-p.ctx.Done():
	}
}

func (p *packer) compress(pack *filled) {
	if p.skip--; p.skip > 0 || len(pack.data) < 512 {
		return
	}
	if p.zip == nil {
		p.zip, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(wire.PackMost), zstd.WithEncoderCRC(false)) // the options are constants
	}
	if small := p.zip.EncodeAll(pack.data, p.buffer()); len(small) < len(pack.data)*7/8 {
		pack.Full, pack.data = len(pack.data), small
	} else {
		p.skip = triedAgain
	}
}
