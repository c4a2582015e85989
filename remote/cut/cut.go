// Package cut cuts files where their content says so, as rsync's kin do: after
// an insertion the cuts behind it are where they were. The sizes are a
// compromise: a change costs about two chunks, and a gigabyte has some 1,300.
package cut

import (
	"crypto/sha256"
	"errors"
	"io"

	"github.com/jotfs/fastcdc-go"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	least   = 512 << 10
	average = 768 << 10
	// Most is the largest chunk that there is.
	Most = 2 << 20
	// sumSize is how much of a chunk's SHA-256 is told.
	sumSize = 16
)

// File gives the chunks of a file.
func File(r io.Reader) ([]wire.SyncChunk, error) {
	c, err := fastcdc.NewChunker(r, fastcdc.Options{MinSize: least, AverageSize: average, MaxSize: Most})
	if err != nil {
		return nil, err
	}
	var list []wire.SyncChunk
	for {
		next, err := c.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(next.Data)
		list = append(list, wire.SyncChunk{Size: int64(len(next.Data)), Sum: wire.Bytes(sum[:sumSize])})
	}
}

// Span is a part of a file: of the older one or, where From is negative, one
// that is in the newer one only.
type Span struct{ At, From, Len int64 }

// Spans says how the newer file is made of the older one and of what it has
// more. It takes any lists.
func Spans(old, now []wire.SyncChunk) []Span {
	type key struct {
		sum  wire.Bytes
		size int64
	}
	at := map[key]int64{}
	var off int64
	for _, c := range old {
		if _, known := at[key{c.Sum, c.Size}]; !known {
			at[key{c.Sum, c.Size}] = off
		}
		off += c.Size
	}
	var list []Span
	off = 0
	for _, c := range now {
		s := Span{At: off, From: -1, Len: c.Size}
		if from, known := at[key{c.Sum, c.Size}]; known {
			s.From = from
		}
		if n := len(list) - 1; n >= 0 && list[n].goesOn(s) {
			list[n].Len += s.Len
		} else {
			list = append(list, s)
		}
		off += c.Size
	}
	return list
}

func (s Span) goesOn(next Span) bool {
	if s.From < 0 || next.From < 0 {
		return s.From < 0 && next.From < 0
	}
	return s.From+s.Len == next.From
}
