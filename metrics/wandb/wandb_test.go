package wandb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// offline.wandb was written by wandb 0.31.0 with WANDB_MODE=offline: 20 calls of log
// with a loss of 2/(i+1), and every fifth one more.
func TestARunThatWandbKeptIsRead(t *testing.T) {
	file, err := os.ReadFile("testdata/offline.wandb")
	if err != nil || !Is(file) {
		t.Fatalf("%v, of W&B: %v", err, Is(file))
	}
	losses, rows, nan := 0, 0, 0
	faults, err := Read(bytes.NewReader(file), func(values []Value) {
		rows++
		for _, v := range values {
			switch {
			case v.Key == "train/loss":
				if losses++; v.Number != 2/float64(losses) {
					t.Errorf("loss %d is %v", losses, v.Number)
				}
			case v.Number != v.Number:
				nan++
			case v.Key == "note":
				t.Error("a text is read as a number")
			}
		}
	})
	if err != nil || len(faults) > 0 || losses != 20 || rows != 24 || nan != 1 {
		t.Errorf("%d losses in %d rows, %d nan, faults %v (%v)", losses, rows, nan, faults, err)
	}
}

// written is a file with rows of one value each, whose records are cut at the ends of
// blocks.
func written(rows, long int) []byte {
	b := []byte(magic + "\xe1\xbe\x00")
	for i := range rows {
		item := protowire.AppendTag(nil, 2, protowire.BytesType)
		item = protowire.AppendString(item, "loss")
		item = protowire.AppendTag(item, 16, protowire.BytesType)
		item = protowire.AppendString(item, fmt.Sprint(i))
		history := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), item)
		record := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), history)
		record = protowire.AppendBytes(protowire.AppendTag(record, 19, protowire.BytesType), make([]byte, i%5*long))
		for kind := byte(full); ; kind = middle {
			room := block - len(b)%block
			if room < head {
				b = append(b, make([]byte, room)...)
				room = block
			}
			n := min(room-head, len(record))
			switch {
			case kind == full && n < len(record):
				kind = first
			case kind == middle && n == len(record):
				kind = last
			}
			piece := append([]byte{kind}, record[:n]...)
			b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(piece))
			b = append(binary.LittleEndian.AppendUint16(b, uint16(n)), piece...)
			if record = record[n:]; len(record) == 0 {
				break
			}
		}
	}
	return b
}

func losses(t *testing.T, file []byte) (got []float64, faults int) {
	t.Helper()
	all, err := Read(bytes.NewReader(file), func(v []Value) { got = append(got, v[0].Number) })
	if err != nil {
		t.Fatal(err)
	}
	return got, len(all)
}

func TestRecordsGoOverTheEndsOfBlocks(t *testing.T) {
	for _, long := range []int{0, 100, 7001, 30_000} {
		got, faults := losses(t, written(300, long))
		if len(got) != 300 || got[299] != 299 || faults > 0 {
			t.Errorf("records of %d bytes: %d rows, %d faults", long, len(got), faults)
		}
	}
}

func TestDamageCostsTheRecordThatItIsIn(t *testing.T) {
	file := written(300, 100)
	for at := head + 20; at < len(file); at += 997 {
		bad := bytes.Clone(file)
		bad[at] ^= 0x40
		got, faults := losses(t, bad)
		if faults == 0 || len(got) < 299-block/100 || got[len(got)-1] < 298-block/100 {
			t.Errorf("damage at %d: %d rows, %d faults", at, len(got), faults)
		}
	}
	for _, end := range []int{len(file) - 1, len(file) / 2, block + 3, head} {
		if got, faults := losses(t, file[:end]); len(got) >= 300 || faults > 1 {
			t.Errorf("cut at %d: %d rows, %d faults", end, len(got), faults)
		}
	}
}

func FuzzRead(f *testing.F) {
	file, err := os.ReadFile("testdata/offline.wandb")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add(written(100, 900))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := Read(bytes.NewReader(b), func(values []Value) {
			for _, v := range values {
				if v.Key == "" {
					t.Fatal("a value without a name")
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
