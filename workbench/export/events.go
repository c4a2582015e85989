package export

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// An event file is a TFRecord file of Event messages: each record is its length
// and payload, each with a masked CRC32C
// (tensorflow/core/lib/io/record_writer.h, core/util/event.proto,
// core/framework/summary.proto).

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of TFRecord files.
func masked(p []byte) uint32 {
	c := crc32.Checksum(p, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// The keys of the fields that are written: number and kind of each.
const (
	eventTime    = 1<<3 | 1 // double
	eventStep    = 2 << 3   // varint
	eventVersion = 3<<3 | 2 // string
	eventSummary = 5<<3 | 2 // message
	summaryValue = 1<<3 | 2 // message
	valueTag     = 1<<3 | 2 // string
	valueSimple  = 2<<3 | 5 // float
)

// writeEvents writes an event file. A value is a float there: it has seven
// digits. A point without a step gets its place in the series.
func writeEvents(w io.Writer, next func() (Row, error)) error {
	var event, summary, value, record []byte
	put := func() error {
		record = binary.LittleEndian.AppendUint64(record[:0], uint64(len(event)))
		record = binary.LittleEndian.AppendUint32(record, masked(record))
		record = append(record, event...)
		record = binary.LittleEndian.AppendUint32(record, masked(event))
		_, err := w.Write(record)
		return err
	}
	begin := func(at time.Time) {
		seconds := 0.0
		if !at.IsZero() {
			seconds = float64(at.UnixNano()) / 1e9
		}
		event = binary.LittleEndian.AppendUint64(append(event[:0], eventTime), math.Float64bits(seconds))
	}
	first := true
	err := each(next, func(r Row) error {
		if first {
			first = false
			begin(r.Time)
			event = text(event, eventVersion, []byte("brain.Event:2"))
			if err := put(); err != nil {
				return err
			}
		}
		step := r.Ordinal
		if r.Step != nil {
			step = *r.Step
		}
		value = text(value[:0], valueTag, []byte(r.Series))
		value = binary.LittleEndian.AppendUint32(append(value, valueSimple), math.Float32bits(float32(r.Value)))
		summary = text(summary[:0], summaryValue, value)
		begin(r.Time)
		event = binary.AppendUvarint(append(event, eventStep), uint64(step))
		event = text(event, eventSummary, summary)
		return put()
	})
	if err == nil && first {
		begin(time.Time{})
		event = text(event, eventVersion, []byte("brain.Event:2"))
		err = put()
	}
	return err
}

// text appends a field of bytes.
func text(b []byte, key byte, p []byte) []byte {
	return append(binary.AppendUvarint(append(b, key), uint64(len(p))), p...)
}
