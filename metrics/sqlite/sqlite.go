// Package sqlite reads the tables of a database file of SQLite, and what its
// write-ahead log adds: rows from the first to the last, and nothing else. See
// https://www.sqlite.org/fileformat2.html.
package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of what is read.
const (
	mostPayload = 1 << 20 // of a row; a longer one is cut
	mostTables  = 1000
	mostColumns = 200
	deepestTree = 20 // the least page has room for more than two children
	headLength  = 100
)

const magic = "SQLite format 3\x00"

// Is reports whether a file that begins so is a database of SQLite.
func Is(start []byte) bool { return bytes.HasPrefix(start, []byte(magic)) }

// DB is a database as it was after its last whole transaction.
type DB struct {
	file   io.ReaderAt
	page   int // bytes of a page
	usable int // of them
	pages  uint32
	wal    *wal
	tables map[string]*Table
}

// Table is a table and its columns.
type Table struct {
	Columns []Column
	root    uint32
}

// Column is a column by its name.
type Column struct {
	Name  string
	rowid bool // it may stand for the number of its row
}

// Kind is what a value is.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Int
	Real
	Text
	Blob
)

// Value is what stands in a column of a row.
type Value struct {
	Kind Kind
	Int  int64
	Real float64
	Text string // of a text or a blob
}

// Open reads the head of a database and the names of its tables. log is its
// write-ahead log; nil where it has none.
func Open(file io.ReaderAt, size int64, log io.ReaderAt) (*DB, error) {
	head := make([]byte, headLength)
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("read the head of the SQLite database: %w", err)
	}
	if !Is(head) {
		return nil, errors.New("it is no database of SQLite")
	}
	db := &DB{file: file, page: int(binary.BigEndian.Uint16(head[16:])), tables: map[string]*Table{}}
	if db.page == 1 {
		db.page = 64 << 10
	}
	db.usable = db.page - int(head[20])
	if db.page < 512 || db.page&(db.page-1) != 0 || db.usable < 480 {
		return nil, fmt.Errorf("the SQLite database is damaged: it has pages of %d bytes, %d of them for use", db.page, db.usable)
	}
	if code := binary.BigEndian.Uint32(head[56:]); code > 1 {
		return nil, errors.New("the texts of the SQLite database are UTF-16, which is not read")
	}
	db.pages = uint32(min(size/int64(db.page), 1<<32-2))
	if log != nil {
		db.wal = readWAL(log, db.page)
		db.pages = max(db.pages, db.wal.pages)
	}
	return db, db.schema()
}

// schema reads the names of the tables.
func (db *DB) schema() error {
	return db.rows(1, func(_ int64, row []Value) error {
		if len(row) < 5 || row[0].Text != "table" || len(db.tables) >= mostTables || row[3].Int < 1 || row[3].Int > int64(db.pages) {
			return nil
		}
		db.tables[row[1].Text] = &Table{root: uint32(row[3].Int), Columns: columns(row[4].Text)}
		return nil
	})
}

// Table is a table by its name; nil where there is none.
func (db *DB) Table(name string) *Table { return db.tables[name] }

// Index are where some columns of a table are; an error where one is not there.
func (t *Table) Index(names ...string) ([]int, error) {
	at := make([]int, len(names))
	for i, name := range names {
		at[i] = -1
		for k, c := range t.Columns {
			if c.Name == name {
				at[i] = k
			}
		}
		if at[i] < 0 {
			return nil, fmt.Errorf("the table has no column %q", name)
		}
	}
	return at, nil
}

// Rows yields the rows of a table, each with as many values as there are columns.
// What it yields is good until it returns.
func (db *DB) Rows(t *Table, yield func(row []Value) error) error {
	return db.rows(t.root, func(id int64, row []Value) error {
		for len(row) < len(t.Columns) { // added to the table later
			row = append(row, Value{})
		}
		for i, c := range t.Columns {
			if c.rowid && row[i].Kind == Null {
				row[i] = Value{Kind: Int, Int: id}
			}
		}
		return yield(row)
	})
}

func (db *DB) rows(root uint32, yield func(id int64, row []Value) error) error {
	w := walk{db: db, left: int64(db.pages) + 1, yield: yield}
	return w.tree(root, 0)
}

// read reads a page, out of the log where that has it.
func (db *DB) read(n uint32, into []byte) error {
	if n == 0 || n > db.pages {
		return fmt.Errorf("the SQLite database is damaged: there is no page %d", n)
	}
	from, at := db.file, int64(n-1)*int64(db.page)
	if db.wal != nil {
		if off, ok := db.wal.frames[n]; ok {
			from, at = db.wal.file, off
		}
	}
	if got, err := from.ReadAt(into, at); got < len(into) {
		return fmt.Errorf("read page %d of the SQLite database: %w", n, err)
	}
	return nil
}
