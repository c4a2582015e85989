// Package unpack takes off what a log is packed in, so that its text is read.
package unpack

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// mostLayers is how many packings of a file are taken off: a log may have been
// compressed as it was rotated and again as it was fetched.
const mostLayers = 3

// Peeked is how much of what Open returns can be peeked at.
const Peeked = 64 << 10

// mostWindow bounds what a compressed file can ask to be remembered of itself.
const mostWindow = 64 << 20

// Open takes off what a file is packed in: gzip, zstd, bzip2, and UTF-16.
func Open(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, Peeked)
	for range mostLayers {
		start, err := in.Peek(Peeked)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		next, err := layer(in, start)
		if err != nil {
			return nil, err
		}
		if next == nil {
			break
		}
		in = bufio.NewReaderSize(next, Peeked)
	}
	return in, nil
}

// layer reads what is below the packing that a file begins with; nil for none.
func layer(in io.Reader, start []byte) (io.Reader, error) {
	switch {
	case bytes.HasPrefix(start, []byte("\x1f\x8b\x08")):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("read the gzip: %w", err)
		}
		return z, nil
	case bytes.HasPrefix(start, []byte("\x28\xb5\x2f\xfd")):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, fmt.Errorf("read the zstd: %w", err)
		}
		return z, nil
	case bytes.HasPrefix(start, []byte("BZh")) && len(start) > 10 && string(start[4:10]) == "1AY&SY":
		return bzip2.NewReader(in), nil
	}
	if low, ok := utf16Order(start); ok {
		return &utf16Reader{in: in, low: low}, nil
	}
	return nil, nil
}

// utf16Order tells by its mark, or by the zero in each second byte of its first
// line, that a text is UTF-16, and whether the low byte comes first.
func utf16Order(start []byte) (low, ok bool) {
	if len(start) < 4 {
		return false, false
	}
	switch {
	case start[0] == 0xff && start[1] == 0xfe:
		return true, true
	case start[0] == 0xfe && start[1] == 0xff:
		return false, true
	}
	zeros := [2]int{}
	head := start[:min(len(start), 64)&^1]
	for i, c := range head {
		if c == 0 {
			zeros[i&1]++
		}
	}
	half := len(head) / 2
	return zeros[1] > 0, half >= 8 && (zeros[0] == 0 && zeros[1] >= half*3/4 || zeros[1] == 0 && zeros[0] >= half*3/4)
}

// utf16Reader reads UTF-16 as UTF-8.
type utf16Reader struct {
	in   io.Reader
	low  bool
	raw  []byte
	text []byte
	err  error
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.text) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.text)
	u.text = u.text[n:]
	return n, nil
}

func (u *utf16Reader) fill() {
	buffer := make([]byte, 32<<10)
	n, err := u.in.Read(buffer)
	u.raw = append(u.raw, buffer[:n]...)
	u.err = err
	var units []uint16
	i := 0
	for ; i+1 < len(u.raw); i += 2 {
		a, b := u.raw[i], u.raw[i+1]
		if u.low {
			a, b = b, a
		}
		units = append(units, uint16(a)<<8|uint16(b))
	}
	if k := len(units); k > 0 && err == nil && utf16.IsSurrogate(rune(units[k-1])) && units[k-1] < 0xdc00 { // its other half comes
		units, i = units[:k-1], i-2
	}
	u.raw = append(u.raw[:0], u.raw[i:]...)
	u.text = u.text[:0]
	for _, r := range utf16.Decode(units) {
		if r != 0xfeff {
			u.text = utf8.AppendRune(u.text, r)
		}
	}
}
