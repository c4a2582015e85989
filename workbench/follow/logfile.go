package follow

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

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/wholefile"
	"github.com/dlwb/dlwb/workbench/event"
)

// logFile is the stored copy of one log, and how far it was read. Where bytes
// were gone before they came, a line stands for them, and the file of gaps beside
// the log tells where and how many. The cursor is in a file beside it too, but
// where it is the number of bytes that were read: then the log's own size says
// it. The cursor on record may be behind the log, never before it: what was
// written since is taken back when the log is opened, and read again.
type logFile struct {
	mu     sync.Mutex
	f      *os.File
	n      int64
	gaps   []logGap
	at     job.Cursor    // empty: the number of bytes that were read
	record *cursorRecord // what is on record; nil: nothing
	synced time.Time
}

// cursorRecord is the file of a cursor.
type cursorRecord struct {
	Stored int64      `json:"stored"` // bytes of the log that were in the file
	Cursor job.Cursor `json:"cursor"`
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
	err = l.readCursor()
	if err == nil {
		err = l.readGaps()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open the stored log: %w", err)
	}
	return l, nil
}

func (l *logFile) gapsPath() string   { return l.f.Name() + ".gaps" }
func (l *logFile) cursorPath() string { return l.f.Name() + ".cursor" }

// readCursor reads how far the log was read, and takes back what came after the
// cursor was noted. Without a cursor on record the size of the log is it.
func (l *logFile) readCursor() error {
	text, err := os.ReadFile(l.cursorPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var r cursorRecord
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && (r.Stored > l.n || r.Stored < 0) {
		err = fmt.Errorf("its cursor is for %d bytes of it, and there are %d", r.Stored, l.n)
	}
	if err == nil {
		err = l.f.Truncate(r.Stored)
	}
	if err == nil {
		l.n, l.at, l.record = r.Stored, r.Cursor, &r
	}
	return err
}

// noteCursor puts the cursor on record. The caller holds the lock and has synced
// the log.
func (l *logFile) noteCursor() error {
	if l.record != nil && l.record.Cursor == l.at {
		return nil
	}
	r := cursorRecord{l.n, l.at}
	text, err := json.Marshal(r)
	if err == nil {
		err = wholefile.Write(l.cursorPath(), text, 0o600)
	}
	if err == nil {
		l.record = &r
	}
	return err
}

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
	// The log may have lost its end with the power. What lies behind a cursor on
	// record comes again.
	end := l.n
	if l.record != nil {
		end--
	}
	for len(l.gaps) > 0 && l.gaps[len(l.gaps)-1].At > end {
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
	return l.write([]byte(last.Text), job.Offset(l.nextLocked()+int64(len(last.Text))))
}

// size is how many bytes of the log were read, those that were missing too.
func (l *logFile) size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nextLocked()
}

// cursor is where the next byte comes from.
func (l *logFile) cursor() job.Cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cursorLocked()
}

func (l *logFile) cursorLocked() job.Cursor {
	if l.at != "" {
		return l.at
	}
	return job.Offset(l.nextLocked())
}

// follows checks that a chunk is the next one. Anything else would make the copy
// something else than a prefix.
func (l *logFile) follows(c job.Chunk) error {
	if next := l.cursorLocked(); c.From != next {
		return fmt.Errorf("a piece of the log from %q came where %q was next", c.From, next)
	}
	return nil
}

// counts reports whether a cursor is the number of bytes that were read when so
// many more have come.
func (l *logFile) counts(next job.Cursor, more int) bool {
	return next == job.Offset(l.nextLocked()+int64(more))
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

// drop notes that a piece of the log is gone for ever, and returns the line that
// stands for it.
func (l *logFile) drop(c job.Chunk) (line []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follows(c); err != nil {
		return nil, err
	}
	text := fmt.Sprintf("\n[dlwb: %d bytes of output are missing here: the node had dropped them before they were read (limits.log)]\n", c.Missing)
	gaps := append(slices.Clone(l.gaps), logGap{At: l.n, Text: text, Dropped: c.Missing})
	record, err := json.Marshal(gaps)
	if err != nil {
		return nil, err
	}
	if err := l.f.Sync(); err != nil {
		return nil, err
	}
	if err := wholefile.Write(l.gapsPath(), record, 0o600); err != nil {
		return nil, err
	}
	l.gaps = gaps
	err = l.write([]byte(text), c.Next)
	return []byte(text), err
}

// append adds the next piece of the log.
func (l *logFile) append(c job.Chunk) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follows(c); err != nil {
		return err
	}
	return l.write(c.Data, c.Next)
}

// write adds bytes to the file; next is where those behind them come from. The
// caller holds the lock.
func (l *logFile) write(p []byte, next job.Cursor) error {
	if l.counts(next, len(p)) {
		next = ""
	} else if l.record == nil { // lest the size be taken for the cursor after a crash
		if err := l.noteCursor(); err != nil {
			return err
		}
	}
	n, err := l.f.WriteAt(p, l.n)
	if err != nil {
		// Half a write is taken back: the size must not count it, and a
		// later append starts where this one did.
		_ = l.f.Truncate(l.n)
		return err
	}
	l.n += int64(n)
	l.at = next
	if time.Since(l.synced) > syncEvery {
		return l.sync()
	}
	return nil
}

// sync forces the log to the disk, and then the cursor. The caller holds the lock.
func (l *logFile) sync() error {
	l.synced = time.Now()
	if err := l.f.Sync(); err != nil || l.at == "" {
		return err
	}
	return l.noteCursor()
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.sync()
	_ = l.f.Close()
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

func (t *Watch) closeLogs() {
	for _, l := range t.logs {
		l.close()
	}
}
