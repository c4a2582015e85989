package export

import (
	"encoding/binary"
	"io"
	"math"
)

// A Parquet file is written here by hand, in the smallest form that every reader
// takes: PLAIN values, no compression, data pages of version 1, one row group
// for each group of rows (github.com/apache/parquet-format, parquet.thrift and
// Encodings.md). The library for it would add 10 MB to a program of 30.

const magic = "PAR1"

// rowsAtOnce bounds a row group, and what is held of a file while it is written.
const rowsAtOnce = 1 << 17

// The physical types, and the other constants of parquet.thrift that are used.
const (
	typeInt64     = 2
	typeDouble    = 5
	typeByteArray = 6

	required = 0
	optional = 1

	encodingPlain = 0
	encodingRLE   = 3

	convertedUTF8 = 0
)

// column is one column of the table.
type column struct {
	name       string
	kind       int32
	repetition int32
	text       bool // UTF-8
	time       bool // microseconds since 1970, UTC

	values []byte
	there  []bool // of an optional column: which rows have a value
}

func parquetColumns() []*column {
	return []*column{
		{name: "series", kind: typeByteArray, text: true},
		{name: "split", kind: typeByteArray, text: true},
		{name: "step", kind: typeInt64, repetition: optional},
		{name: "epoch", kind: typeDouble, repetition: optional},
		{name: "time", kind: typeInt64, repetition: optional, time: true},
		{name: "value", kind: typeDouble},
		{name: "source", kind: typeByteArray, text: true},
		{name: "axis", kind: typeByteArray, text: true},
	}
}

func (c *column) addText(s string) {
	c.values = binary.LittleEndian.AppendUint32(c.values, uint32(len(s)))
	c.values = append(c.values, s...)
}

func (c *column) add(has bool, bits uint64) {
	if c.repetition == optional {
		c.there = append(c.there, has)
	}
	if has {
		c.values = binary.LittleEndian.AppendUint64(c.values, bits)
	}
}

func addRow(cs []*column, r Row) {
	cs[0].addText(r.Series)
	cs[1].addText(r.Split)
	step, epoch := int64(0), 0.0
	if r.Step != nil {
		step = *r.Step
	}
	if r.Epoch != nil {
		epoch = *r.Epoch
	}
	cs[2].add(r.Step != nil, uint64(step))
	cs[3].add(r.Epoch != nil, math.Float64bits(epoch))
	cs[4].add(!r.Time.IsZero(), uint64(r.Time.UnixMicro()))
	cs[5].add(true, math.Float64bits(r.Value))
	cs[6].addText(r.Source)
	cs[7].addText(r.Axis)
}

// page is the data page of a column: definition levels, then values.
func (c *column) page() []byte {
	if c.repetition != optional {
		return c.values
	}
	levels := levelRuns(c.there)
	p := binary.LittleEndian.AppendUint32(nil, uint32(len(levels)))
	return append(append(p, levels...), c.values...)
}

// levelRuns writes which values are there as runs: a count, shifted by one, and
// the level, in one byte.
func levelRuns(there []bool) []byte {
	var b []byte
	for i := 0; i < len(there); {
		end := i + 1
		for end < len(there) && there[end] == there[i] {
			end++
		}
		level := byte(0)
		if there[i] {
			level = 1
		}
		b = append(binary.AppendUvarint(b, uint64(end-i)<<1), level)
		i = end
	}
	return b
}

// chunk is where a column of a row group lies in the file.
type chunk struct{ at, size int64 }

// group is one row group.
type group struct {
	rows, bytes int64
	chunks      []chunk
}

func writeParquet(w io.Writer, next func() (Row, error)) error {
	at, rows := int64(0), 0
	put := func(b []byte) error {
		n, err := w.Write(b)
		at += int64(n)
		return err
	}
	if err := put([]byte(magic)); err != nil {
		return err
	}
	cs := parquetColumns()
	var groups []group
	flush := func() error {
		g := group{rows: int64(rows)}
		for _, c := range cs {
			page := c.page()
			head := pageHead(int32(rows), int32(len(page)))
			g.chunks = append(g.chunks, chunk{at, int64(len(head) + len(page))})
			g.bytes += int64(len(head) + len(page))
			if err := put(append(head, page...)); err != nil {
				return err
			}
			c.values, c.there = c.values[:0], c.there[:0]
		}
		groups, rows = append(groups, g), 0
		return nil
	}
	err := each(next, func(r Row) error {
		addRow(cs, r)
		if rows++; rows < rowsAtOnce {
			return nil
		}
		return flush()
	})
	if err == nil && rows > 0 {
		err = flush()
	}
	if err != nil {
		return err
	}
	footer := footerOf(cs, groups)
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer)))
	return put(append(footer, magic...))
}

// pageHead is a PageHeader with a DataPageHeader.
func pageHead(rows, size int32) []byte {
	var t thrift
	t.i32(1, 0) // type: DATA_PAGE
	t.i32(2, size)
	t.i32(3, size)
	t.begin(5)
	t.i32(1, rows)
	t.i32(2, encodingPlain)
	t.i32(3, encodingRLE)
	t.i32(4, encodingRLE)
	t.end()
	return t.close()
}

// footerOf is the FileMetaData.
func footerOf(cs []*column, groups []group) []byte {
	var t thrift
	total := int64(0)
	for _, g := range groups {
		total += g.rows
	}
	t.i32(1, 1) // version
	t.list(2, structType, len(cs)+1)
	t.element()
	t.text(4, "schema")
	t.i32(5, int32(len(cs)))
	t.end()
	for _, c := range cs {
		t.element()
		c.schema(&t)
		t.end()
	}
	t.i64(3, total)
	t.list(4, structType, len(groups))
	for _, g := range groups {
		t.element()
		t.list(1, structType, len(cs))
		for i, c := range cs {
			t.element()
			c.chunk(&t, g, g.chunks[i])
			t.end()
		}
		t.i64(2, g.bytes)
		t.i64(3, g.rows)
		t.end()
	}
	t.text(6, "dlwb")
	return t.close()
}

// schema writes the SchemaElement of a column.
func (c *column) schema(t *thrift) {
	t.i32(1, c.kind)
	t.i32(3, c.repetition)
	t.text(4, c.name)
	switch {
	case c.text:
		t.i32(6, convertedUTF8)
		t.begin(10) // LogicalType
		t.begin(1)  // STRING
		t.end()
		t.end()
	case c.time:
		t.i32(6, 10) // TIMESTAMP_MICROS
		t.begin(10)
		t.begin(8) // TIMESTAMP
		t.bool(1, true)
		t.begin(2)
		t.begin(2) // MICROS
		t.end()
		t.end()
		t.end()
		t.end()
	}
}

// chunk writes the ColumnChunk of a column.
func (c *column) chunk(t *thrift, g group, at chunk) {
	t.i64(2, at.at)
	t.begin(3) // ColumnMetaData
	t.i32(1, c.kind)
	t.list(2, i32Type, 2)
	t.item(encodingPlain)
	t.item(encodingRLE)
	t.list(3, binaryType, 1)
	t.itemText(c.name)
	t.i32(4, 0) // uncompressed
	t.i64(5, g.rows)
	t.i64(6, at.size)
	t.i64(7, at.size)
	t.i64(9, at.at)
	t.end()
}
