package tfevent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/dlwb/dlwb/internal/cputime"
)

// events reads what is left of an event file.
func events(t *testing.T, file []byte) (values []float64, e *Events, err error) {
	t.Helper()
	e = New(bytes.NewReader(file), 0)
	for {
		scalars, err := e.Next()
		if err != nil {
			return values, e, err
		}
		for _, s := range scalars {
			values = append(values, s.Value)
		}
	}
}

func TestDamagedEventFilesGiveWhatIsWhole(t *testing.T) {
	file := eventFile(10)
	record := func(n int) int { // where record n begins
		at := 0
		for range n {
			at += 16 + int(binary.LittleEndian.Uint64(file[at:]))
		}
		return at
	}
	change := func(at int) []byte {
		b := bytes.Clone(file)
		b[at] ^= 1
		return b
	}
	for name, c := range map[string]struct {
		file   []byte
		values int
		class  string // of the error at the end
		faults int
	}{
		"whole":               {file, 10, "", 0},
		"empty":               {nil, 0, "", 0},
		"cut in a header":     {file[:record(5)+7], 4, "truncated_header", 0},
		"cut in a payload":    {file[:record(5)+20], 4, "truncated_payload", 0},
		"a bad payload":       {change(record(5) + 14), 9, "", 1},
		"a bad length":        {change(record(5) + 1), 4, "bad_length_crc", 0},
		"a bad length's code": {change(record(5) + 9), 4, "bad_length_crc", 0},
	} {
		values, e, err := events(t, c.file)
		var fault Fault
		class := ""
		if errors.As(err, &fault) {
			class = fault.Class
		} else if err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if len(values) != c.values || class != c.class || len(e.Faults) != c.faults || class != "" && fault.Offset != int64(record(5)) {
			t.Errorf("%s: %d values, error %q at %d, %d faults; want %+v", name, len(values), class, fault.Offset, len(e.Faults), c.values)
		}
	}
}

func TestAnEventFileIsReadWhileItGrows(t *testing.T) {
	file := eventFile(50)
	for cut := range len(file) {
		first, e, err := events(t, file[:cut])
		var fault Fault
		if err != io.EOF && !(errors.As(err, &fault) && fault.Live()) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		rest, _, err := events(t, file[e.Offset():])
		if err != io.EOF || len(first)+len(rest) != 50 {
			t.Fatalf("cut at %d: %d and %d values (%v)", cut, len(first), len(rest), err)
		}
	}
}

func TestAHugeDeclaredLengthTakesNoMemory(t *testing.T) {
	head := binary.LittleEndian.AppendUint64(nil, 1<<40)
	head = binary.LittleEndian.AppendUint32(head, masked(head))
	var fault Fault
	if _, _, err := events(t, head); !errors.As(err, &fault) || fault.Class != "bad_length" {
		t.Errorf("got %v", err)
	}
}

func TestScalarsInTensorsAreRead(t *testing.T) {
	for name, c := range map[string]struct {
		tensor []byte
		want   float64
		ok     bool
	}{
		"float":           {append([]byte{8, 1, 42, 4}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.5))...), 0.5, true},
		"content":         {append([]byte{8, 1, 34, 4}, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.25))...), 0.25, true},
		"double":          {append([]byte{8, 2, 49}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(0.125))...), 0.125, true},
		"integer":         {[]byte{8, 9, 80, 7}, 7, true},
		"half":            {[]byte{8, 19, 104, 0x80, 0x70}, 0.5, true}, // 0x3800
		"several":         {append([]byte{8, 1, 42, 8}, make([]byte, 8)...), 0, false},
		"text":            {[]byte{8, 7, 66, 1, 'x'}, 0, false},
		"a broken length": {[]byte{8, 1, 42, 200}, 0, false},
	} {
		if v, ok := scalarTensor(c.tensor); ok != c.ok || ok && v != c.want {
			t.Errorf("%s: got %v, %v", name, v, ok)
		}
	}
}

func FuzzEvents(f *testing.F) {
	file := eventFile(5)
	f.Add(file)
	f.Add(file[:len(file)-3])
	f.Add(file[100:])
	f.Fuzz(func(t *testing.T, b []byte) {
		// the checksums are mended, so that what is inside is reached
		for at := 0; at+16 <= len(b); {
			size := binary.LittleEndian.Uint64(b[at:]) & 0xff
			binary.LittleEndian.PutUint64(b[at:], size)
			binary.LittleEndian.PutUint32(b[at+8:], masked(b[at:at+8]))
			end := at + 12 + int(size)
			if end+4 > len(b) {
				break
			}
			binary.LittleEndian.PutUint32(b[end:], masked(b[at+12:end]))
			at = end + 4
		}
		_, e, err := events(t, b)
		var fault Fault
		if err != io.EOF && !errors.As(err, &fault) || e.Offset() > int64(len(b)) || len(e.Faults) > 0 {
			t.Fatalf("%v at %d of %d, %v", err, e.Offset(), len(b), e.Faults)
		}
	})
}

// eventFile makes an event file of n records with a scalar each, as
// TensorBoard's writers do.
func eventFile(n int) []byte {
	var b bytes.Buffer
	record := func(payload []byte) {
		var head [8]byte
		binary.LittleEndian.PutUint64(head[:], uint64(len(payload)))
		b.Write(head[:])
		b.Write(binary.LittleEndian.AppendUint32(nil, masked(head[:])))
		b.Write(payload)
		b.Write(binary.LittleEndian.AppendUint32(nil, masked(payload)))
	}
	record(append([]byte{9, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a, 13}, "brain.Event:2"...))
	for i := range n {
		value := append([]byte{10, 10}, "train/loss"...)
		value = append(value, 21)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(1/(1+float64(i)))))
		summary := append([]byte{10, byte(len(value))}, value...)
		event := binary.LittleEndian.AppendUint64([]byte{9}, math.Float64bits(1.7e9+float64(i)))
		event = binary.AppendUvarint(append(event, 16), uint64(i))
		event = append(append(event, 42, byte(len(summary))), summary...)
		record(event)
	}
	return b.Bytes()
}

func BenchmarkEvents(b *testing.B) {
	file := eventFile(200_000)
	b.ReportAllocs()
	before := cputime.Worked()
	for b.Loop() {
		e := New(bytes.NewReader(file), 0)
		for {
			if _, err := e.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N)*float64(len(file))/1e6/(cputime.Worked()-before).Seconds(), "MB/cpu-s")
}
