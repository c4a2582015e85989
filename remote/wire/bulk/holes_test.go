package bulk

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
)

func TestWhatIsWrittenWithHolesReadsTheSame(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{7}))
	for round := range 300 {
		want := make([]byte, r.IntN(20*holeBlock))
		for i := 0; i < len(want); {
			n := min(1+r.IntN(3*holeBlock), len(want)-i)
			if r.IntN(2) == 0 {
				for j := range n {
					want[i+j] = byte(r.IntN(3))
				}
			}
			i += n
		}
		f, err := os.CreateTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		for off := 0; off < len(want); {
			n := min(1+r.IntN(5*holeBlock), len(want)-off)
			if err := WriteSparse(f, want[off:off+n], int64(off)); err != nil {
				t.Fatal(err)
			}
			off += n
		}
		if err := f.Truncate(int64(len(want))); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(f.Name())
		_ = f.Close()
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("round %d: %d bytes read back differ, %v", round, len(want), err)
		}
	}
}

// writes counts what is written.
type writes struct{ n int64 }

func (w *writes) WriteAt(b []byte, _ int64) (int, error) { w.n += int64(len(b)); return len(b), nil }

func TestBlocksOfZerosAreNotWritten(t *testing.T) {
	b := make([]byte, 1<<20)
	b[500_000] = 1
	var w writes
	for off := 0; off < len(b); off += 128 << 10 {
		if err := WriteSparse(&w, b[off:off+128<<10], int64(off)); err != nil {
			t.Fatal(err)
		}
	}
	if w.n != holeBlock {
		t.Errorf("%d bytes were written for one that is not zero, want %d", w.n, holeBlock)
	}
}
