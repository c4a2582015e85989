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
	"syscall"

	"github.com/klauspost/compress/zstd"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// queued is how many packs are read before the connection takes them.
	queued = 8
	// beatEvery is after how many bytes that are only read a sign of life is sent.
	beatEvery = 64 << 20
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

// Sender is a call on which packs are sent.
type Sender interface{ Send(v any) error }

// Send sends files in their order until there are no more. One that can't be
// read is told of; the error is the connection's or the context's.
func Send(ctx context.Context, to Sender, files <-chan File) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &packer{ctx: reading, out: make(chan wire.Pack, queued)}
	go func() {
		defer close(p.out)
		p.all(files)
	}()
	var err error
	for pack := range p.out {
		if err == nil {
			err = to.Send(pack)
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

// packer reads files into packs.
type packer struct {
	ctx  context.Context
	out  chan wire.Pack
	pack wire.Pack
	zip  *zstd.Encoder
	skip int // so many packs are not tried to be compressed
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
		p.add(wire.Part{Head: f.Head}, nil)
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
	p.add(wire.Part{End: end}, nil)
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
	buf := make([]byte, min(before.Size(), wire.PackMost))
	left := before.Size()
	for at := int64(0); left > 0 && p.ctx.Err() == nil; {
		n, err := file.Read(buf[:min(left, int64(len(buf)))])
		_, _ = sum.Write(buf[:n]) // a hash takes all
		if skip := min(int64(n), max(0, f.From-at)); skip < int64(n) {
			p.add(wire.Part{}, buf[skip:n])
		} else if at/beatEvery != (at+skip)/beatEvery {
			p.add(wire.Part{}, nil)
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

// add puts a part into the pack, which takes its bytes over.
func (p *packer) add(part wire.Part, data []byte) {
	if part.N = len(data); len(p.pack.Data)+part.N > wire.PackMost || len(p.pack.Parts) == wire.PageMost {
		p.flush()
	}
	p.pack.Parts = append(p.pack.Parts, part)
	if p.pack.Data == nil && part.N > 0 {
		p.pack.Data = make([]byte, 0, wire.PackMost)
	}
	p.pack.Data = append(p.pack.Data, data...)
}

// flush sends a pack on. While the connection takes what comes, the bytes as they
// are are the fastest; compressing is for the time in which it does not.
func (p *packer) flush() {
	if len(p.pack.Parts) == 0 {
		return
	}
	pack := p.pack
	p.pack = wire.Pack{}
	if len(p.out) == cap(p.out) {
		p.compress(&pack)
	}
	select {
	case p.out <- pack:
	case <-p.ctx.Done():
	}
}

func (p *packer) compress(pack *wire.Pack) {
	if p.skip--; p.skip > 0 || len(pack.Data) < 512 {
		return
	}
	if p.zip == nil {
		p.zip, _ = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(wire.PackMost), zstd.WithEncoderCRC(false)) // the options are constants
	}
	if small := p.zip.EncodeAll(pack.Data, nil); len(small) < len(pack.Data)*7/8 {
		pack.Full, pack.Data = len(pack.Data), small
	} else {
		p.skip = triedAgain
	}
}
