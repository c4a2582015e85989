package sqlite

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
)

// read opens the database that the real SQLite wrote, with its log or without.
func read(t testing.TB, withLog bool) *DB {
	t.Helper()
	file, err := os.ReadFile("testdata/small.db")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile("testdata/small.db-wal")
	if err != nil {
		t.Fatal(err)
	}
	if !withLog {
		log = nil
	}
	db, err := Open(bytes.NewReader(file), int64(len(file)), bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

var numbers = []int64{0, 1, -1, 127, -32768, 8388607, -2147483648, 1<<47 - 1, math.MinInt64, math.MaxInt64}

// Numbers of all widths, rows over several pages, and what a transaction in the log
// took away.
func TestRowsAreThoseThatSQLiteWrote(t *testing.T) {
	for _, withLog := range []bool{false, true} {
		db, rows := read(t, withLog), 0
		one := db.Table("one")
		at, err := one.Index("id", "a,b", "v", "n")
		if err != nil {
			t.Fatal(err)
		}
		err = db.Rows(one, func(row []Value) error {
			rows++
			i := row[at[0]].Int - 1
			text := strings.Repeat("x"+itoa(i)+" ", int(i%40))
			v, isNumber := row[at[2]].Number()
			if row[at[1]].Text != text || row[at[3]].Int != numbers[i%10] || isNumber != (i%5 != 0) || isNumber && v != float64(i)/7 || withLog && (i+1)%3 == 0 {
				t.Errorf("row %d is %v", i+1, row)
			}
			return nil
		})
		if want := map[bool]int{false: 300, true: 200}[withLog]; err != nil || rows != want {
			t.Errorf("%d rows, want %d (%v)", rows, want, err)
		}
	}
}

func itoa(i int64) string {
	text := ""
	for ; i > 9; i /= 10 {
		text = string(rune('0'+i%10)) + text
	}
	return string(rune('0'+i)) + text
}

// A column that came later is empty in the rows before; what was not committed is
// not there.
func TestATransactionThatIsNotWholeIsNotRead(t *testing.T) {
	db := read(t, true)
	var got []string
	if err := db.Rows(db.Table("two"), func(row []Value) error {
		got = append(got, row[0].Text)
		if len(row) != 3 || row[0].Text == "blob" && (len(row[1].Text) != 5000 || row[2].Kind != Null) || row[0].Text == "new" && row[2].Int != 9 {
			t.Errorf("%d values of %s", len(row), row[0].Text)
		}
		return nil
	}); err != nil || strings.Join(got, " ") != "blob new" {
		t.Errorf("%q (%v)", got, err)
	}
	if read(t, false).Table("two").Columns[1].Name != "b" {
		t.Error("the columns have other names")
	}
}

// A log that was cut anywhere gives the state after a transaction that is whole.
func TestALogThatWasCutIsReadUpToAWholeTransaction(t *testing.T) {
	file, _ := os.ReadFile("testdata/small.db")
	log, _ := os.ReadFile("testdata/small.db-wal")
	for cut := 0; cut < len(log); cut += 97 {
		db, err := Open(bytes.NewReader(file), int64(len(file)), bytes.NewReader(log[:cut]))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := db.Rows(db.Table("one"), func([]Value) error { n++; return nil }); err != nil || n != 300 && n != 200 {
			t.Errorf("cut at %d: %d rows (%v)", cut, n, err)
		}
	}
}

// A file of any bytes costs no more than its size, and is read to an end.
func FuzzOpen(f *testing.F) {
	file, _ := os.ReadFile("testdata/small.db")
	log, _ := os.ReadFile("testdata/small.db-wal")
	f.Add(file[:8192], []byte{}, uint16(0), byte(0))
	f.Add(file, log, uint16(100), byte(5))
	f.Fuzz(func(t *testing.T, file, log []byte, at uint16, b byte) {
		file = bytes.Clone(file)
		if int(at) < len(file) {
			file[at] ^= b
		}
		db, err := Open(bytes.NewReader(file), int64(len(file)), bytes.NewReader(log))
		if err != nil {
			return
		}
		for _, table := range db.tables {
			rows := 0
			_ = db.Rows(table, func(row []Value) error {
				if rows++; rows > len(file)+len(log)+1 {
					t.Fatal("more rows than bytes")
				}
				return nil
			})
		}
	})
}
