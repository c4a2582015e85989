// Package logview keeps and shows the output of a process: millions of lines
// in bounded memory, drawn at the cost of the rows that are seen.
package logview

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
)

// Limits bound a Log. Zero values mean the defaults.
type Limits struct {
	Lines int   // 2,000,000
	Bytes int64 // 256 MiB of text
	Line  int   // 64 KiB: where a longer line is cut, with a note
}

const (
	defaultLines = 2_000_000
	defaultBytes = 256 << 20
	defaultLine  = 64 << 10

	// blockSize is how much text one piece of memory holds. Old lines are
	// freed by whole blocks.
	blockSize = 256 << 10
)

// ref says where a line lies. Twelve bytes, because there are millions.
type ref struct {
	block uint32 // counted from the first block ever made, modulo 2^32
	off   uint32
	size  uint32 // with the top bit set when the line is not clean ASCII
}

const unclean = 1 << 31

// Log is the lines of one output, oldest first. The last line may still be
// open: a progress bar that returns its carriage changes it in place. A Log
// is not safe for concurrent use.
type Log struct {
	limits  Limits
	refs    []ref // a ring
	head    int   // of refs
	count   int   // closed lines kept
	dropped int64 // closed lines that are no longer kept
	bytes   int64 // of the closed lines kept
	blocks  [][]byte
	first   uint32 // number of blocks[0]

	open   []byte // the line that has no newline yet
	opened bool   // there is such a line, maybe empty after a carriage return
	cut    int64  // bytes of it that were too many
	cr     bool   // a carriage return was seen: the next text starts over
	gen    int    // grows whenever the open line changes
}

// New returns an empty Log.
func New(l Limits) *Log {
	if l.Lines <= 0 {
		l.Lines = defaultLines
	}
	if l.Bytes <= 0 {
		l.Bytes = defaultBytes
	}
	if l.Line <= 0 || l.Line > blockSize/2 {
		l.Line = defaultLine
	}
	return &Log{limits: l}
}

// Append takes the next bytes of the output, cut anywhere.
func (l *Log) Append(p []byte) {
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		p = rest
		// Most lines arrive whole and are put away without a stop.
		if ended && !l.opened && !special(line) && len(line) <= l.limits.Line {
			l.keep(line)
			continue
		}
		l.extend(line)
		if ended {
			l.close()
		}
	}
	l.gen++
}

func special(p []byte) bool {
	return bytes.IndexByte(p, '\r') >= 0 || bytes.IndexByte(p, '\b') >= 0
}

// extend adds to the open line, doing what returns and backspaces ask for.
func (l *Log) extend(p []byte) {
	l.opened = true
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\b")
		if i < 0 {
			l.write(p)
			return
		}
		l.write(p[:i])
		if p[i] == '\r' {
			l.cr = true
		} else {
			l.backspace()
		}
		p = p[i+1:]
	}
}

func (l *Log) write(p []byte) {
	if len(p) == 0 {
		return
	}
	if l.cr {
		l.open, l.cut, l.cr = l.open[:0], 0, false
	}
	n := min(len(p), l.limits.Line-len(l.open))
	l.open = append(l.open, p[:n]...)
	l.cut += int64(len(p) - n)
}

func (l *Log) backspace() {
	switch {
	case l.cr:
	case l.cut > 0:
		l.cut--
	default:
		_, n := utf8.DecodeLastRune(l.open)
		l.open = l.open[:len(l.open)-n]
	}
}

func (l *Log) close() {
	l.keep(l.openText())
	l.open, l.opened, l.cut, l.cr = l.open[:0], false, 0, false
}

// openText is the open line with a note where it was cut.
func (l *Log) openText() []byte {
	if l.cut == 0 {
		return l.open
	}
	return fmt.Appendf(l.open, " … [cut here: %s more in this line]", units.Bytes(l.cut))
}

// keep puts a closed line away and drops the oldest where there are too many.
func (l *Log) keep(line []byte) {
	if n := len(l.blocks); n == 0 || len(l.blocks[n-1])+len(line) > blockSize {
		l.blocks = append(l.blocks, make([]byte, 0, blockSize))
	}
	b := len(l.blocks) - 1
	r := ref{block: l.first + uint32(b), off: uint32(len(l.blocks[b])), size: uint32(len(line))}
	if !sanitize.Clean(line) {
		r.size |= unclean
	}
	l.blocks[b] = append(l.blocks[b], line...)
	l.push(r)
	l.bytes += int64(len(line))
	for l.count > l.limits.Lines || l.bytes > l.limits.Bytes && l.count > 1 {
		l.drop()
	}
}

func (l *Log) push(r ref) {
	if l.count == len(l.refs) {
		grown := make([]ref, max(1024, min(2*l.count, l.limits.Lines+1)))
		n := copy(grown, l.refs[l.head:])
		copy(grown[n:], l.refs[:l.head])
		l.refs, l.head = grown, 0
	}
	l.refs[(l.head+l.count)%len(l.refs)] = r
	l.count++
}

func (l *Log) drop() {
	l.bytes -= int64(l.refs[l.head].size &^ unclean)
	l.head = (l.head + 1) % len(l.refs)
	l.count--
	l.dropped++
	for l.first != l.refs[l.head].block {
		l.blocks[0] = nil
		l.blocks = l.blocks[1:]
		l.first++
	}
}

// Lines is the number of lines kept, the open one included.
func (l *Log) Lines() int {
	if l.opened {
		return l.count + 1
	}
	return l.count
}

// Dropped is how many older lines are no longer kept.
func (l *Log) Dropped() int64 { return l.dropped }

// Bytes is the size of the closed lines kept.
func (l *Log) Bytes() int64 { return l.bytes }

// Line is line i of those kept, safe for the screen: text, tab and SGR.
func (l *Log) Line(i int) string {
	return sanitize.Line(string(l.Raw(i)))
}

// Raw is line i of those kept, as it came, without its newline. It is valid
// until the next Append.
func (l *Log) Raw(i int) []byte {
	p, _ := l.raw(i)
	return p
}

// raw also reports whether the line is clean: printable ASCII and tabs.
func (l *Log) raw(i int) (p []byte, clean bool) {
	if i < 0 || i >= l.Lines() {
		return nil, true
	}
	if i == l.count {
		p := l.openText()
		return p, sanitize.Clean(p)
	}
	r := l.refs[(l.head+i)%len(l.refs)]
	n := r.size &^ unclean
	return l.blocks[r.block-l.first][r.off : r.off+n : r.off+n], r.size&unclean == 0
}
