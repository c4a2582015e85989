package remote

import (
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
)

// packBlock is how much of a stream is compressed at a time. gzip looks back
// 32 KB, so that blocks of this size cost less than half a percent.
const packBlock = 1 << 20

// packLevel is what tar and gzip take by themselves: what leaves the laptop is
// what usually is scarce.
const packLevel = 6

// packWriter compresses a stream on all processors: as blocks that are gzip
// streams of their own, which gzip -d takes one after the other.
type packWriter struct {
	to     io.Writer
	block  []byte
	queue  chan chan []byte // of blocks under way, in their order
	copied chan error
	failed error
}

func newPackWriter(to io.Writer) *packWriter {
	w := &packWriter{to: to, queue: make(chan chan []byte, runtime.GOMAXPROCS(0)), copied: make(chan error, 1)}
	go w.copy()
	return w
}

// copy writes finished blocks. After a failure it goes on taking them, so that
// nobody waits.
func (w *packWriter) copy() {
	var err error
	for done := range w.queue {
		packed := <-done
		if err == nil {
			_, err = w.to.Write(packed)
		}
		if err != nil {
			select {
			case w.copied <- err:
			default:
			}
		}
	}
	if err == nil {
		w.copied <- nil
	}
}

func (w *packWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if err := w.broken(); err != nil {
			return 0, err
		}
		n := min(len(rest), packBlock-len(w.block))
		w.block = append(w.block, rest[:n]...)
		if rest = rest[n:]; len(w.block) == packBlock {
			w.pack()
		}
	}
	return len(p), nil
}

// broken is why nothing more can be written.
func (w *packWriter) broken() error {
	if w.failed == nil {
		select {
		case w.failed = <-w.copied:
		default:
		}
	}
	return w.failed
}

// pack compresses what has come together, while more comes.
func (w *packWriter) pack() {
	if len(w.block) == 0 {
		return
	}
	block, done := w.block, make(chan []byte, 1)
	w.block = make([]byte, 0, packBlock)
	w.queue <- done
	go func() {
		level := packLevel
		if !packs(block) {
			level = gzip.NoCompression
		}
		done <- packAt(block, level)
	}()
}

func packAt(block []byte, level int) []byte {
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, level) // the level is a good one
	_, _ = zip.Write(block)                       // a buffer takes all
	_ = zip.Close()
	return packed.Bytes()
}

// packs reports whether a block is worth compressing, by samples of it:
// weights and pictures are not, and would cost the time for nothing.
func packs(block []byte) bool {
	const size, samples = 4 << 10, 4
	if len(block) < 4*size*samples {
		return true
	}
	var some []byte
	for i := range samples {
		at := (len(block) - size) / (samples - 1) * i
		some = append(some, block[at:at+size]...)
	}
	return len(packAt(some, gzip.BestSpeed)) < len(some)*19/20
}

// Flush writes out what has come so far, as far as it goes without waiting for
// who reads it.
func (w *packWriter) Flush() { w.pack() }

// Close writes the rest and waits until all is written.
func (w *packWriter) Close() error {
	w.pack()
	close(w.queue)
	if w.failed != nil {
		return w.failed
	}
	return <-w.copied
}
