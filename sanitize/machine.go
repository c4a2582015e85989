package sanitize

import "unicode/utf8"

const (
	bel = 0x07
	can = 0x18
	sub = 0x1a
	esc = 0x1b

	// maxSGR is the longest SGR kept: all attributes with three 24-bit colours
	// fit, and a terminal's parameter buffer is not overrun.
	maxSGR = 96
	// maxControl is where a control sequence that never ends is given up.
	maxControl = 256
	// maxString is where an OSC, DCS, APC, PM or SOS that never ends is given
	// up. A newline ends it before that.
	maxString = 4096
	// maxMarks is how many combining marks one character may carry. Real
	// scripts need three; stacks of hundreds are drawn over other lines.
	maxMarks = 4
)

type options struct {
	oneLine bool // newlines become spaces
	noSGR   bool // SGR is removed as well
}

type state uint8

const (
	ground       state = iota
	escape             // after ESC
	intermediate       // after ESC and an intermediate byte
	control            // inside CSI
	stringBody         // inside OSC, DCS, APC, PM or SOS
)

// machine is the parser behind all of the package. What it writes depends on
// the bytes alone, never on where the pieces were cut.
type machine struct {
	options
	state   state
	n       int          // bytes of the present sequence so far
	seq     [maxSGR]byte // parameters of the present control sequence
	partial [utf8.UTFMax]byte
	held    int  // bytes in partial
	cr      bool // a carriage return was seen and is not yet written
	open    bool // the line has attributes that are not reset
	room    int  // combining marks that may still join the last character
}

// idle reports whether clean text may pass m unread.
func (m *machine) idle() bool {
	return m.state == ground && m.held == 0 && !m.cr && !m.open && !m.oneLine
}

// feed runs p through m and appends what is safe to dst.
func feed[T ~string | ~[]byte](m *machine, dst []byte, p T) []byte {
	if m.idle() {
		n := cleanPrefix(p)
		if n > 0 {
			dst = append(dst, p[:n]...)
			m.after(p[n-1])
		}
		p = p[n:]
	}
	i := 0
	if m.held > 0 && len(p) > 0 {
		dst, i = m.resume(dst, []byte(p[:min(len(p), utf8.UTFMax)]))
	}
	for i < len(p) {
		if m.state != ground {
			var taken bool
			if dst, taken = m.step(dst, p[i]); taken {
				i++
			}
			continue
		}
		if n := textPrefix(p[i:]); n > 0 {
			dst = append(m.text(dst), p[i:i+n]...)
			i += n
			m.after(p[i-1])
			continue
		}
		if n := drawnPrefix(p[i:]); n > 0 {
			dst = append(m.text(dst), p[i:i+n]...)
			i += n
			m.room = maxMarks
			continue
		}
		if c := p[i]; c < utf8.RuneSelf {
			dst = m.c0(dst, c)
			i++
			continue
		}
		var b [utf8.UTFMax]byte
		k := copy(b[:], p[i:])
		if !utf8.FullRune(b[:k]) {
			m.held = copy(m.partial[:], b[:k])
			return dst
		}
		r, size := utf8.DecodeRune(b[:k])
		dst = m.rune(dst, r, size)
		i += size
	}
	return dst
}

// resume completes the character that the last piece left open and returns
// how many bytes of next that took.
func (m *machine) resume(dst, next []byte) ([]byte, int) {
	b := append(append(make([]byte, 0, 2*utf8.UTFMax), m.partial[:m.held]...), next...)
	held, at := m.held, 0
	for at < held {
		if !utf8.FullRune(b[at:]) {
			m.held = copy(m.partial[:], b[at:])
			return dst, len(next)
		}
		r, size := utf8.DecodeRune(b[at:])
		dst = m.rune(dst, r, size)
		at += size
	}
	m.held = 0
	return dst, at - held
}

// finish writes what the end of the text owes.
func (m *machine) finish(dst []byte) []byte {
	for ; m.held > 0; m.held-- {
		dst = m.rune(dst, utf8.RuneError, 1)
	}
	if m.cr {
		dst = m.newline(dst)
	}
	return m.reset(dst)
}

// after notes that c was written: a mark may join it when it is printable.
func (m *machine) after(c byte) {
	m.room = maxMarks
	if c < 0x20 {
		m.room = 0
	}
}

// text makes ready for printable text: a carriage return that was held back
// was a line end of its own.
func (m *machine) text(dst []byte) []byte {
	if m.cr {
		dst = m.newline(dst)
	}
	return dst
}

func (m *machine) newline(dst []byte) []byte {
	m.cr, m.room = false, 0
	if m.oneLine {
		return append(dst, ' ')
	}
	return append(m.reset(dst), '\n')
}

func (m *machine) reset(dst []byte) []byte {
	if !m.open {
		return dst
	}
	m.open = false
	return append(dst, Reset...)
}

// c0 handles one ASCII control character, DEL included.
func (m *machine) c0(dst []byte, c byte) []byte {
	switch c {
	case '\n':
		return m.newline(dst)
	case '\r':
		dst = m.text(dst) // of two in a row, each is a line end
		m.cr = true
	case esc:
		m.begin(escape)
	}
	return dst
}

func (m *machine) begin(s state) { m.state, m.n = s, 0 }

// rune handles one decoded character of size bytes.
func (m *machine) rune(dst []byte, r rune, size int) []byte {
	switch class := classOf(r, size); class {
	case dropped:
		return dst
	case replaced:
		r = utf8.RuneError
	case mark:
		if m.room == 0 || m.cr { // a line that is about to end has no last character
			return dst
		}
		m.room--
		return utf8.AppendRune(dst, r)
	case space:
		r = ' '
	case flag:
		r = 'A' + r - firstFlag
	}
	dst = utf8.AppendRune(m.text(dst), r)
	m.room = maxMarks
	return dst
}
