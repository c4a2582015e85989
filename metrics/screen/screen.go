// Package screen puts bytes together to what a terminal showed one after the
// other, as text without control sequences.
package screen

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// MaxLine bounds what is kept of one frame; no metric stands further right.
const MaxLine = 64 << 10

// Frames puts bytes together to what a terminal showed one after the other: a
// line that ends, or one that is about to be overwritten because the cursor
// went back to its beginning. So every frame of a progress bar is seen once. It
// holds at most MaxLine bytes, however long a line is.
type Frames struct {
	line []byte
	back int // columns that the cursor was moved back; of all of them, as many as there are bytes
}

// Add takes bytes without a newline and yields the frames that they overwrite.
func (f *Frames) Add(p []byte, yield func(frame []byte)) {
	if bytes.IndexByte(p, '\r') < 0 && bytes.IndexByte(p, '\b') < 0 {
		f.write(p, yield)
		return
	}
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\b")
		part := p
		if i >= 0 {
			part = p[:i]
		}
		f.write(part, yield)
		if i < 0 {
			return
		}
		f.back = min(f.back+1, len(f.line))
		if p[i] == '\r' {
			f.back = len(f.line)
		}
		p = p[i+1:]
	}
}

func (f *Frames) write(part []byte, yield func(frame []byte)) {
	if len(part) == 0 {
		return
	}
	if f.back > 0 {
		at := columnsBefore(f.line, f.back)
		if at > 0 {
			f.over(at, part)
			return
		}
		yield(f.line)
		f.line, f.back = f.line[:0], 0
	}
	f.line = append(f.line, part[:min(len(part), MaxLine-len(f.line))]...)
}

// over writes over what stands in the line from at on; what reaches further stays, as on a
// terminal.
func (f *Frames) over(at int, part []byte) {
	end := at
	for n := utf8.RuneCount(part); n > 0 && end < len(f.line); n-- {
		_, size := utf8.DecodeRune(f.line[end:])
		end += size
	}
	f.back = utf8.RuneCount(f.line[end:])
	f.line = slices.Replace(f.line, at, end, part[:min(len(part), MaxLine-at)]...)
	f.line = f.line[:min(len(f.line), MaxLine)]
}

// columnsBefore is where the cursor stands in a line from whose end it went back so many columns.
func columnsBefore(line []byte, back int) int {
	at := len(line)
	for ; back > 0 && at > 0; back-- {
		_, size := utf8.DecodeLastRune(line[:at])
		at -= size
	}
	return at
}

// IsWhole reports whether bytes between two newlines are a frame by
// themselves, so that they need not be copied. simple says that they are of a
// text that is.
func (f *Frames) IsWhole(p []byte, simple bool) bool {
	return len(f.line) == 0 && len(p) <= MaxLine && (simple || IsSimple(p))
}

// IsSimple reports whether a text has nothing that moves the cursor, colours it
// or was written for a control character.
func IsSimple(p []byte) bool {
	return bytes.IndexByte(p, '\r') < 0 && bytes.IndexByte(p, '\b') < 0 && bytes.IndexByte(p, 0x1b) < 0 && bytes.IndexByte(p, '#') < 0
}

// End returns the frame that a newline ends and begins the next one. What it
// returns is good until the next Add.
func (f *Frames) End() []byte {
	line := f.line
	f.line, f.back = f.line[:0], 0
	return line
}

// Pieces yields the text of a frame without control sequences (ECMA-48), which
// colour the words that are looked for; those that move the cursor cut it. It
// works in place.
func Pieces(frame []byte, yield func(text []byte)) {
	if bytes.IndexByte(frame, 0x1b) < 0 && !transported(frame) {
		yield(frame)
		return
	}
	frame = untransport(frame)
	from, to := 0, 0
	for i := 0; i < len(frame); {
		c := frame[i]
		if c != 0x1b && c != '\r' && c != '\b' {
			frame[to] = c
			to, i = to+1, i+1
			continue
		}
		end := i + 1
		if c == 0x1b {
			end = escapeEnd(frame, end)
		}
		if c == '\r' || movesCursor(frame[i:end]) {
			yield(frame[from:to])
			from = to
		}
		i = end
	}
	yield(frame[from:to])
}

// Redraws reports whether a frame goes up to what was written before, to write over
// it, and whether it begins a part of the output of which that is to be expected: who
// draws again and again hides the cursor first.
func Redraws(frame []byte) (up, begins bool) {
	for {
		i := bytes.IndexByte(frame, 0x1b)
		if i < 0 {
			return up, begins
		}
		end := escapeEnd(frame, i+1)
		seq := frame[i:end]
		up = up || len(seq) > 2 && seq[1] == '[' && seq[len(seq)-1] == 'A'
		begins = begins || string(seq) == "\x1b[?25l"
		frame = frame[end:]
	}
}

// movesCursor reports whether a control sequence goes to another line or to
// the beginning of this one.
func movesCursor(seq []byte) bool {
	if len(seq) < 3 || seq[1] != '[' {
		return false
	}
	switch seq[len(seq)-1] {
	case 'A', 'B', 'E', 'F', 'G', 'H', 'J':
		return true
	case 'K':
		return seq[len(seq)-2] == '2'
	}
	return false
}

// transported reports whether a frame has control characters as #015 and
// #033, as syslog and the services behind it write them.
func transported(frame []byte) bool {
	i := bytes.IndexByte(frame, '#')
	return i >= 0 && bytes.Contains(frame[i:], []byte("#0"))
}

func untransport(frame []byte) []byte {
	to := 0
	for i := 0; i < len(frame); i++ {
		c := frame[i]
		if c == '#' && i+3 < len(frame) && frame[i+1] == '0' && isOctal(frame[i+2]) && isOctal(frame[i+3]) && (i == 0 || frame[i-1] != '[') { // "[#00025]" counts
			if v := (frame[i+2]-'0')<<3 | frame[i+3] - '0'; v < ' ' {
				c = v
				i += 3
			}
		}
		frame[to] = c
		to++
	}
	return frame[:to]
}

func isOctal(c byte) bool { return c >= '0' && c <= '7' }

// escapeEnd is where the sequence ends whose escape character is before i.
func escapeEnd(line []byte, i int) int {
	if i >= len(line) {
		return i
	}
	switch line[i] {
	case '[': // control sequence: parameters, then a final byte
		for i++; i < len(line) && (line[i] < 0x40 || line[i] > 0x7e); i++ {
		}
	case ']', 'P', 'X', '^', '_': // a string such as a title, until BEL or ESC \
		for i++; i < len(line) && line[i] != 0x07 && line[i] != 0x1b; i++ {
		}
		if i < len(line) && line[i] == 0x1b {
			i++
		}
	default: // such as ESC ( B
		for i < len(line) && line[i] >= 0x20 && line[i] <= 0x2f {
			i++
		}
	}
	return min(i+1, len(line))
}
