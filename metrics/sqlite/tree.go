package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Kinds of pages.
const (
	inner = 5
	leaf  = 13
)

var errDamaged = errors.New("the SQLite database is damaged: a page says what can't be")

// walk goes through the pages of a table.
type walk struct {
	db    *DB
	left  int64 // pages that it may still read: each is in one place
	yield func(id int64, row []Value) error
	row   []Value
	long  []byte
}

func (w *walk) page(n uint32) ([]byte, error) {
	if w.left--; w.left < 0 {
		return nil, errors.New("the SQLite database is damaged: its pages go round in a circle")
	}
	p := make([]byte, w.db.page)
	return p, w.db.read(n, p)
}

// tree goes through what is below a page.
func (w *walk) tree(n uint32, depth int) error {
	p, err := w.page(n)
	if err != nil {
		return err
	}
	head := p
	if n == 1 {
		head = p[headLength:]
	}
	kind, cells := head[0], int(binary.BigEndian.Uint16(head[3:]))
	at := 8
	if kind == inner {
		at = 12
	}
	if kind != inner && kind != leaf {
		return fmt.Errorf("page %d of the SQLite database is of kind %d, no part of a table with row numbers", n, kind)
	}
	if depth > deepestTree || len(head) < at+2*cells {
		return errDamaged
	}
	for i := range cells {
		cell := int(binary.BigEndian.Uint16(head[at+2*i:]))
		if cell+4 > w.db.usable {
			return errDamaged
		}
		if kind == leaf {
			err = w.cell(p[:w.db.usable], cell)
		} else {
			err = w.tree(binary.BigEndian.Uint32(p[cell:]), depth+1)
		}
		if err != nil {
			return err
		}
	}
	if kind == inner {
		return w.tree(binary.BigEndian.Uint32(head[8:]), depth+1)
	}
	return nil
}

// cell reads the row that a cell of a leaf has.
func (w *walk) cell(p []byte, at int) error {
	size, n := varint(p[at:])
	id, m := varint(p[at+n:])
	at += n + m
	if n == 0 || m == 0 || size > math.MaxInt32 {
		return errDamaged
	}
	payload, local := int(size), int(size)
	if u := w.db.usable; payload > u-35 {
		least := (u-12)*32/255 - 23
		if local = least + (payload-least)%(u-4); local > u-35 {
			local = least
		}
	}
	if at+local > len(p) || local < payload && at+local+4 > len(p) {
		return errDamaged
	}
	record := p[at : at+local]
	if local < payload {
		var err error
		if record, err = w.overflow(record, binary.BigEndian.Uint32(p[at+local:]), min(payload, mostPayload)); err != nil {
			return err
		}
	}
	row, ok := values(record, w.row[:0])
	if w.row = row; !ok {
		return errDamaged
	}
	return w.yield(int64(id), row)
}

// overflow puts the rest of a record behind what its leaf has.
func (w *walk) overflow(begin []byte, next uint32, size int) ([]byte, error) {
	w.long = append(w.long[:0], begin...)
	for len(w.long) < size {
		p, err := w.page(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(p)
		w.long = append(w.long, p[4:w.db.usable]...)
	}
	return w.long[:min(len(w.long), size)], nil
}

// values reads the values of a record. One that was cut ends with what is whole.
func values(b []byte, row []Value) ([]Value, bool) {
	head, n := varint(b)
	if n == 0 || head > uint64(len(b)) || head < uint64(n) {
		return row, false
	}
	kinds, body := b[n:head], b[head:]
	for len(kinds) > 0 && len(row) < mostColumns {
		kind, n := varint(kinds)
		if n == 0 {
			return row, false
		}
		kinds = kinds[n:]
		v, size, ok := value(kind, body)
		if !ok {
			return row, len(b) == mostPayload
		}
		row, body = append(row, v), body[size:]
	}
	return row, true
}

// value reads one value of a kind.
func value(kind uint64, b []byte) (v Value, size int, ok bool) {
	switch {
	case kind == 0:
		return Value{}, 0, true
	case kind == 8 || kind == 9:
		return Value{Kind: Int, Int: int64(kind - 8)}, 0, true
	case kind <= 7:
		size = [...]int{0, 1, 2, 3, 4, 6, 8, 8}[kind]
		if len(b) < size {
			return v, 0, false
		}
		bits := uint64(0)
		if b[0] >= 0x80 && kind != 7 {
			bits = math.MaxUint64
		}
		for _, c := range b[:size] {
			bits = bits<<8 | uint64(c)
		}
		if kind == 7 {
			return Value{Kind: Real, Real: math.Float64frombits(bits)}, size, true
		}
		return Value{Kind: Int, Int: int64(bits)}, size, true
	case kind < 12 || (kind-12)/2 > uint64(len(b)):
		return v, 0, false
	}
	size = int(kind-12) / 2
	v = Value{Kind: Blob, Text: string(b[:size])}
	if kind%2 == 1 {
		v.Kind = Text
	}
	return v, size, true
}

// Number is a value as a number.
func (v Value) Number() (float64, bool) {
	switch v.Kind {
	case Int:
		return float64(v.Int), true
	case Real:
		return v.Real, true
	}
	return 0, false
}

// varint reads an integer of one to nine bytes; n is 0 where it has no end.
func varint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 8 {
		c := b[n]
		v, n = v<<7|uint64(c&0x7f), n+1
		if c < 0x80 {
			return v, n
		}
	}
	if n == 8 && len(b) > 8 {
		return v<<8 | uint64(b[8]), 9
	}
	return 0, 0
}
