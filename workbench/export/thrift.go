package export

import "encoding/binary"

// thrift writes structs in Thrift's compact protocol
// (github.com/apache/thrift, doc/specs/thrift-compact-protocol.md): what the
// headers of a Parquet file are made of.
type thrift struct {
	b    []byte
	last []int16 // the last field of each open struct but the innermost
	id   int16   // of the innermost
}

// Types of fields.
const (
	boolTrue   = 1
	boolFalse  = 2
	i32Type    = 5
	i64Type    = 6
	binaryType = 8
	listType   = 9
	structType = 12
)

func (t *thrift) field(id int16, kind byte) {
	if d := id - t.id; d > 0 && d <= 15 {
		t.b = append(t.b, byte(d)<<4|kind)
	} else {
		t.b = binary.AppendVarint(append(t.b, kind), int64(id))
	}
	t.id = id
}

func (t *thrift) i32(id int16, v int32) {
	t.field(id, i32Type)
	t.b = binary.AppendVarint(t.b, int64(v)) // zigzag, as Thrift has it
}

func (t *thrift) i64(id int16, v int64) {
	t.field(id, i64Type)
	t.b = binary.AppendVarint(t.b, v)
}

func (t *thrift) bool(id int16, v bool) {
	kind := byte(boolFalse)
	if v {
		kind = boolTrue
	}
	t.field(id, kind)
}

func (t *thrift) text(id int16, s string) {
	t.field(id, binaryType)
	t.itemText(s)
}

// list begins a list; its items follow.
func (t *thrift) list(id int16, kind byte, n int) {
	t.field(id, listType)
	if n < 15 {
		t.b = append(t.b, byte(n)<<4|kind)
		return
	}
	t.b = binary.AppendUvarint(append(t.b, 15<<4|kind), uint64(n))
}

// item is a number in a list.
func (t *thrift) item(v int32) { t.b = binary.AppendVarint(t.b, int64(v)) }

// itemText is a text in a list.
func (t *thrift) itemText(s string) {
	t.b = append(binary.AppendUvarint(t.b, uint64(len(s))), s...)
}

// begin begins a struct as a field, element one as an item of a list; end ends
// either.
func (t *thrift) begin(id int16) {
	t.field(id, structType)
	t.element()
}

func (t *thrift) element() { t.last, t.id = append(t.last, t.id), 0 }

func (t *thrift) end() {
	t.b = append(t.b, 0)
	t.id, t.last = t.last[len(t.last)-1], t.last[:len(t.last)-1]
}

// close ends the outermost struct and gives its bytes.
func (t *thrift) close() []byte { return append(t.b, 0) }
