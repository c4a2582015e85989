package workbench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/workbench/event"
)

// logFile is the stored copy of one log: always a prefix of the node's own, so
// that its size says where to go on after any interruption. Where the node had
// dropped bytes before they came, a line stands for them, and the file of gaps
// beside the log tells where and how many.
type logFile struct {
	mu     sync.Mutex
	f      *os.File
	n      int64
	gaps   []logGap
	synced time.Time
}

// logGap is one place where bytes are missing.
type logGap struct {
	At      int64  `json:"at"` // where the line stands, in the stored file
	Text    string `json:"text"`
	Dropped int64  `json:"dropped"` // bytes
}

// syncEvery is how often a log that grows is forced to the disk.
const syncEvery = time.Second

func openLog(path string) (*logFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the stored log: %w", err)
	}
	n, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open the stored log: %w", err)
	}
	l := &logFile{f: f, n: n}
	if err := l.readGaps(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open the stored log: %w", err)
	}
	return l, nil
}

func (l *logFile) gapsPath() string { return l.f.Name() + ".gaps" }

// readGaps reads where bytes are missing, and finishes what a crash has left
// half done: a gap is on record before its line is in the log.
func (l *logFile) readGaps() error {
	text, err := os.ReadFile(l.gapsPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l.gaps)
	}
	if err != nil {
		return err
	}
	// The log may have lost its end with the power.
	for len(l.gaps) > 0 && l.gaps[len(l.gaps)-1].At > l.n {
		l.gaps = l.gaps[:len(l.gaps)-1]
	}
	if len(l.gaps) == 0 {
		return nil
	}
	last := l.gaps[len(l.gaps)-1]
	if l.n >= last.At+int64(len(last.Text)) {
		return nil
	}
	l.n = last.At
	return l.write([]byte(last.Text))
}

// size is how far the stored log reaches, counted as on the node: the offset of
// the next byte.
func (l *logFile) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nextLocked()
}

func (l *logFile) nextLocked() int64 {
	next := l.n
	for _, g := range l.gaps {
		next += g.Dropped - int64(len(g.Text))
	}
	return next
}

// stored is the number of bytes in the file.
func (l *logFile) stored() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// drop notes that the bytes of the node's log from one offset to another are
// gone for ever, and returns the line that stands for them.
func (l *logFile) drop(from, to int64) (text string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from != l.nextLocked() || to <= from {
		return "", fmt.Errorf("bytes from offset %d to %d are gone where %d was next", from, to, l.nextLocked())
	}
	text = fmt.Sprintf("\n[dlwb: %d bytes of output are missing here: the node had dropped them before they were read (limits.log)]\n", to-from)
	gaps := append(slices.Clone(l.gaps), logGap{At: l.n, Text: text, Dropped: to - from})
	record, err := json.Marshal(gaps)
	if err != nil {
		return "", err
	}
	if err := l.f.Sync(); err != nil {
		return "", err
	}
	if err := wholefile.Write(l.gapsPath(), record, 0o600); err != nil {
		return "", err
	}
	l.gaps = gaps
	return text, l.write([]byte(text))
}

// append adds the bytes that begin at off. Anything but the next byte would
// make the copy something else than a prefix, and is refused.
func (l *logFile) append(off int64, p []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := l.nextLocked(); off != next {
		return fmt.Errorf("bytes from offset %d came where %d was next", off, next)
	}
	return l.write(p)
}

// write adds bytes to the file. The caller holds the lock.
func (l *logFile) write(p []byte) error {
	n, err := l.f.WriteAt(p, l.n)
	if err != nil {
		// Half a write is taken back: the size must not count it, and a
		// later append starts where this one did.
		_ = l.f.Truncate(l.n)
		return err
	}
	l.n += int64(n)
	if time.Since(l.synced) > syncEvery {
		l.synced = time.Now()
		return l.f.Sync()
	}
	return nil
}

// replay hands over what is stored, from the start.
func (l *logFile) replay(sink func(p []byte) error) error {
	buf := make([]byte, 256<<10)
	for off := int64(0); off < l.stored(); {
		n, err := l.f.ReadAt(buf, off)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read the stored log: %w", err)
		}
		if err := sink(buf[:n]); err != nil {
			return err
		}
		off += int64(n)
		if n == 0 {
			break
		}
	}
	return nil
}

// tailBytes bounds what the last lines are looked for in.
const tailBytes = 64 << 10

// tail gives the last n lines.
func (l *logFile) tail(n int) []string {
	size := l.stored()
	buf := make([]byte, min(size, tailBytes))
	if _, err := l.f.ReadAt(buf, size-int64(len(buf))); err != nil && err != io.EOF {
		return nil
	}
	text := strings.ReplaceAll(string(buf), "\r\n", "\n")
	return event.LastLines(text, n)
}

func (t *watch) closeLogs() {
	for _, l := range t.logs {
		_ = l.f.Sync()
		_ = l.f.Close()
	}
}
