//go:build !race

package metrics

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"testing"
)

// flood is a log that is never there as a whole: a line of a size without an
// end, then so many lines of a training. It notes how much is live meanwhile.
type flood struct {
	line, lines int
	rest        []byte
	step        int
	peak        uint64
}

var manyX = bytes.Repeat([]byte{'x'}, 1<<20)

func (f *flood) Read(p []byte) (int, error) {
	if len(f.rest) == 0 && !f.next() {
		return 0, io.EOF
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *flood) next() bool {
	if f.line > 0 {
		f.line--
		f.rest = manyX
		return true
	}
	if f.step >= f.lines {
		return false
	}
	var b bytes.Buffer
	for range 2000 {
		f.step++
		fmt.Fprintf(&b, "step %d", f.step)
		for i := range 16 {
			fmt.Fprintf(&b, " loss_%d: %d.25", i, f.step%1000+i)
		}
		b.WriteByte('\n')
	}
	f.rest = b.Bytes()
	if f.step%20_000 == 0 {
		f.weigh()
	}
	return true
}

// weigh notes what is live now.
func (f *flood) weigh() {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.peak = max(f.peak, m.HeapAlloc)
}

// A log costs what the points that are kept cost, however long it is, and
// whatever its lines are: twice as much of both takes no more. What reads it
// does one thing after the other: the race detector would find nothing in ten
// times the time, and make test measures this without it.
func TestMemoryDoesNotGrowWithTheLog(t *testing.T) {
	var peaks []uint64
	for _, size := range []int{1, 2} {
		f := flood{line: 32 * size, lines: 140_000 * size} // 2.2 and 4.5 million points
		d, err := Read(&f, nil, nil)
		if err != nil || len(d.Set.Series) != 16 || d.Set.Series[0].Every() < 2 {
			t.Fatalf("%d series (%v)", len(d.Set.Series), err)
		}
		peaks = append(peaks, f.peak)
	}
	const most = 120 << 20 // live; with what the collector leaves lying it is 300 MB at the very most
	if peaks[0] > most || peaks[1] > peaks[0]+10<<20 {
		t.Errorf("%d MB were live at most, %d MB with a log twice as long", peaks[0]>>20, peaks[1]>>20)
	}
}
