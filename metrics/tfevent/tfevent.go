// Package tfevent reads the event files of TensorBoard, by whatever wrote them,
// also while they grow and where they are damaged.
package tfevent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// largestRecord bounds the length that a record of an event file may declare.
// Scalars need less than a kilobyte; longer records are skipped unread.
const largestRecord = 1 << 30

// Bounds of the tags of a file.
const (
	longestTag = 64
	mostTags   = 4096
)

// keptRecord is the longest record that is looked into.
const keptRecord = 8 << 20

// Fault is damage in an event file. The classes are bad_payload_crc (the
// record is skipped), bad_length_crc and bad_length (nothing after it can be
// read), truncated_header and truncated_payload (more may come).
type Fault struct {
	Offset int64
	Class  string
}

func (f Fault) Error() string {
	return fmt.Sprintf("the event file has at byte %d: %s", f.Offset, f.Class)
}

// Live reports whether the fault is only that a writer is not done yet.
func (f Fault) Live() bool {
	return f.Class == "truncated_header" || f.Class == "truncated_payload"
}

// Scalar is one value of an event file.
type Scalar struct {
	Tag   string
	Step  int64
	Value float64
	Time  time.Time
}

// Is reports whether a file that begins so is an event file: it has the checksum
// of its first length.
func Is(start []byte) bool {
	return len(start) >= 12 && masked(start[:8]) == binary.LittleEndian.Uint32(start[8:])
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum that TFRecord files have: CRC32C, rotated and offset,
// so that the checksum of data with checksums in it is a good one too.
func masked(p []byte) uint32 {
	c := crc32.Checksum(p, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Events reads an event file of TensorBoard from a stream. It may be given what
// came later again and again: Offset is where it goes on.
type Events struct {
	r      *bufio.Reader
	offset int64
	// Records counts those with good checksums, Faults the damage that was
	// passed over.
	Records int
	Faults  []Fault

	payload []byte
	tags    map[string]string
	scalars []Scalar
}

// mostFaults bounds the damage that is remembered.
const mostFaults = 1000

// New reads from r, which begins at a byte of the file where a record
// begins: 0, or the Offset of an earlier reader.
func New(r io.Reader, offset int64) *Events {
	return &Events{r: bufio.NewReaderSize(r, 256<<10), offset: offset, tags: map[string]string{}}
}

// Offset is the byte behind the last record that was read whole.
func (e *Events) Offset() int64 { return e.offset }

// Next returns the scalars of the next record that has any; they are good until
// the next call. At the end of the stream it returns io.EOF, or an Fault:
// see Live.
func (e *Events) Next() ([]Scalar, error) {
	for {
		payload, err := e.record()
		if err != nil {
			return nil, err
		}
		e.scalars = e.scalars[:0]
		if payload != nil {
			e.event(payload)
		}
		if len(e.scalars) > 0 {
			return e.scalars, nil
		}
	}
}

// record reads one record: length, its checksum, payload, its checksum. It
// returns nil for one that is skipped.
func (e *Events) record() ([]byte, error) {
	head, err := e.r.Peek(12)
	if err != nil {
		return nil, e.ended(err, len(head), "truncated_header")
	}
	length := binary.LittleEndian.Uint64(head)
	if masked(head[:8]) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, e.fault("bad_length_crc")
	}
	if length > largestRecord {
		return nil, e.fault("bad_length")
	}
	size := int(length)
	whole := 12 + size + 4
	var all []byte
	switch {
	case whole <= e.r.Size():
		if all, err = e.r.Peek(whole); err != nil {
			return nil, e.ended(err, len(all), "truncated_payload")
		}
		defer e.r.Discard(whole)
	case size <= keptRecord:
		if cap(e.payload) < whole {
			e.payload = make([]byte, whole)
		}
		all = e.payload[:whole]
		if n, err := io.ReadFull(e.r, all); err != nil {
			return nil, e.ended(err, n, "truncated_payload")
		}
	default:
		if n, err := e.r.Discard(whole); err != nil {
			return nil, e.ended(err, n, "truncated_payload")
		}
		e.offset += int64(whole)
		return nil, nil
	}
	payload := all[12 : 12+size]
	at := e.offset
	e.offset += int64(whole)
	if masked(payload) != binary.LittleEndian.Uint32(all[12+size:]) {
		if len(e.Faults) < mostFaults {
			e.Faults = append(e.Faults, Fault{at, "bad_payload_crc"})
		}
		return nil, nil
	}
	e.Records++
	return payload, nil
}

// ended makes an error of one of the stream, after n bytes of a record.
func (e *Events) ended(err error, n int, class string) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read the event file at byte %d: %w", e.offset, err)
	case n == 0:
		return io.EOF
	}
	return e.fault(class)
}

func (e *Events) fault(class string) Fault { return Fault{e.offset, class} }

// event reads an Event: 1 wall_time, 2 step, 5 summary.
func (e *Events) event(b []byte) {
	var wall float64
	var step int64
	var summary []byte
	for f := range fields(b) {
		switch {
		case f.number == 1 && f.wire == fixed64:
			wall = math.Float64frombits(f.value)
		case f.number == 2 && f.wire == varint:
			step = int64(f.value)
		case f.number == 5 && f.wire == bytesWire:
			summary = f.bytes
		}
	}
	if summary == nil {
		return
	}
	at := time.Unix(0, int64(min(max(wall, 0), 9e9)*1e9))
	for f := range fields(summary) {
		if f.number == 1 && f.wire == bytesWire {
			if tag, v, ok := e.summaryValue(f.bytes); ok {
				e.scalars = append(e.scalars, Scalar{tag, step, v, at})
			}
		}
	}
}

// summaryValue reads a Summary.Value: 1 tag, 2 simple_value, 8 tensor, 9
// metadata. A tensor counts when the plugin of its metadata is "scalars", or
// when it is a single number and has no other plugin.
func (e *Events) summaryValue(b []byte) (tag string, v float64, ok bool) {
	var name, tensor, meta []byte
	for f := range fields(b) {
		switch {
		case f.number == 1 && f.wire == bytesWire:
			name = f.bytes
		case f.number == 2 && f.wire == fixed32:
			v, ok = float64(math.Float32frombits(uint32(f.value))), true
		case f.number == 8 && f.wire == bytesWire:
			tensor = f.bytes
		case f.number == 9 && f.wire == bytesWire:
			meta = f.bytes
		}
	}
	if !ok && tensor != nil {
		if p := plugin(meta); p == "scalars" || p == "" {
			v, ok = scalarTensor(tensor)
		}
	}
	if !ok || len(name) == 0 || len(name) > 4*longestTag {
		return "", 0, false
	}
	return e.tag(name), v, true
}

// tag makes a name a string once.
func (e *Events) tag(name []byte) string {
	if t, ok := e.tags[string(name)]; ok {
		return t
	}
	if len(e.tags) >= mostTags {
		clear(e.tags)
	}
	t := string(name)
	e.tags[t] = t
	return t
}

// plugin is the name in a SummaryMetadata: 1 plugin_data, of it 1 plugin_name.
func plugin(meta []byte) string {
	for f := range fields(meta) {
		if f.number == 1 && f.wire == bytesWire {
			for g := range fields(f.bytes) {
				if g.number == 1 && g.wire == bytesWire {
					return string(g.bytes)
				}
			}
		}
	}
	return ""
}
