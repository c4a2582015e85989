// Package wandb reads the file of a run that W&B keeps beside the training, offline
// and online: run-ID.wandb, a log of LevelDB whose records are messages of protocol
// buffers (wandb/proto/wandb_internal.proto).
package wandb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dlwb/dlwb/metrics/tfevent"
)

// Bounds of the file.
const (
	block      = 32 << 10 // a record never goes over the end of one: it is cut there
	head       = 7        // checksum, length and kind of each piece
	mostRecord = 8 << 20
	mostFaults = 1000
)

// magic is what the file begins with, before its version.
const magic = ":W&B"

// Kinds of pieces: a whole record, or one that goes on in the next.
const (
	full = iota + 1
	first
	middle
	last
)

// Is reports whether a file that begins so is one of W&B.
func Is(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) && len(start) >= head }

// Value is one number that a run logged, with the keys that lead to it joined by '/'.
type Value struct {
	Key    string
	Number float64
}

// Read calls row with what each call of log gave: among it _step and _timestamp.
// A file that ends within a record is one that its writer is not done with.
func Read(r io.Reader, row func([]Value)) ([]tfevent.Fault, error) {
	p := pieces{r: r, block: make([]byte, block)}
	var values []Value
	for {
		record, err := p.record()
		if errors.Is(err, io.EOF) {
			return p.faults, nil
		}
		if err != nil {
			return p.faults, fmt.Errorf("read the file of W&B: %w", err)
		}
		if values = history(record, values[:0]); len(values) > 0 {
			row(values)
		}
	}
}

// pieces puts records together.
type pieces struct {
	r      io.Reader
	block  []byte
	rest   []byte // of the block
	offset int64  // behind the block
	faults []tfevent.Fault
	whole  []byte
}

func (p *pieces) fault(class string) {
	if len(p.faults) < mostFaults {
		p.faults = append(p.faults, tfevent.Fault{Offset: p.offset - int64(len(p.rest)), Class: class})
	}
}

// next reads one piece; io.EOF when there is no more.
func (p *pieces) next() (kind byte, data []byte, err error) {
	for len(p.rest) < head { // what is left of a block is nothing
		n, err := io.ReadFull(p.r, p.block)
		if n == 0 && errors.Is(err, io.EOF) {
			return 0, nil, err
		} else if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, err
		}
		begins := p.offset == 0
		p.rest, p.offset = p.block[:n], p.offset+int64(n)
		if begins && Is(p.rest) {
			p.rest = p.rest[head:]
		}
	}
	sum, length := binary.LittleEndian.Uint32(p.rest), int(binary.LittleEndian.Uint16(p.rest[4:]))
	if head+length > len(p.rest) {
		if len(p.block) > 0 && p.offset%block != 0 { // the end of the file
			p.fault("truncated_payload")
			return 0, nil, io.EOF
		}
		p.fault("bad_length")
		p.rest = nil
		return 0, nil, nil
	}
	body := p.rest[head-1 : head+length]
	kind, data = body[0], body[1:]
	if crc32.ChecksumIEEE(body) != sum {
		if kind != 0 || length != 0 || sum != 0 { // room that was made and not written
			p.fault("bad_payload_crc")
		}
		kind, data = 0, nil
	}
	p.rest = p.rest[head+length:]
	return kind, data, nil
}

// record reads the next record; one that is damaged is passed over.
func (p *pieces) record() ([]byte, error) {
	p.whole = p.whole[:0]
	begun := false
	for {
		kind, data, err := p.next()
		switch {
		case err != nil:
			return nil, err
		case kind == full:
			return data, nil
		case kind == first:
			p.whole, begun = append(p.whole[:0], data...), true
		case (kind == middle || kind == last) && begun && len(p.whole)+len(data) <= mostRecord:
			if p.whole = append(p.whole, data...); kind == last {
				return p.whole, nil
			}
		default:
			begun = false
		}
	}
}

// fields calls each with the fields of a message that are messages or text.
func fields(b []byte, each func(number protowire.Number, data []byte)) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if kind == protowire.BytesType {
			data, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return
			}
			each(number, data)
			b = b[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return
		}
		b = b[n:]
	}
}

// history reads the numbers of a Record that is a HistoryRecord (2), whose items (1)
// have a key (1) or the keys that lead to it (2), and JSON (16).
func history(record []byte, values []Value) []Value {
	fields(record, func(number protowire.Number, data []byte) {
		if number != 2 {
			return
		}
		fields(data, func(number protowire.Number, item []byte) {
			if number != 1 {
				return
			}
			if v, ok := valueOf(item); ok {
				values = append(values, v)
			}
		})
	})
	return values
}

func valueOf(item []byte) (v Value, ok bool) {
	var keys [][]byte
	fields(item, func(number protowire.Number, data []byte) {
		switch number {
		case 1, 2:
			keys = append(keys, data)
		case 16:
			n, err := strconv.ParseFloat(string(data), 64)
			v.Number, ok = n, err == nil
		}
	})
	v.Key = string(bytes.Join(keys, []byte{'/'}))
	return v, ok && v.Key != ""
}
