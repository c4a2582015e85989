package sanitize

// step handles one byte inside an escape sequence. It reports whether the
// byte was taken: one that breaks the sequence is read again as text.
func (m *machine) step(dst []byte, c byte) ([]byte, bool) {
	m.n++
	switch m.state {
	case escape:
		return dst, m.afterEscape(c)
	case intermediate:
		return dst, m.afterIntermediate(c)
	case control:
		return m.inControl(dst, c)
	default:
		return dst, m.inString(c)
	}
}

func (m *machine) afterEscape(c byte) bool {
	switch {
	case c == '[':
		m.begin(control)
	case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
		m.begin(stringBody)
	case c >= 0x20 && c <= 0x2f:
		m.begin(intermediate)
	case c == esc:
		m.begin(escape)
	case c >= 0x30 && c <= 0x7e:
		m.state = ground // a two-byte sequence, such as ESC c
	default:
		m.state = ground
		return false
	}
	return true
}

func (m *machine) afterIntermediate(c byte) bool {
	switch {
	case c >= 0x20 && c <= 0x2f && m.n < maxControl:
	case c >= 0x30 && c <= 0x7e:
		m.state = ground
	default:
		m.state = ground
		return false
	}
	return true
}

func (m *machine) inControl(dst []byte, c byte) ([]byte, bool) {
	switch {
	case c >= 0x20 && c <= 0x3f && m.n < maxControl:
		if m.n <= maxSGR {
			m.seq[m.n-1] = c
		}
	case c >= 0x40 && c <= 0x7e:
		m.state = ground
		if c == 'm' && m.n-1 <= maxSGR {
			dst = m.sgr(dst, m.seq[:m.n-1])
		}
	default:
		m.state = ground
		return dst, false
	}
	return dst, true
}

// inString swallows the payload of a string sequence. Any ESC ends it: the
// backslash of a proper end is then a two-byte sequence of its own.
func (m *machine) inString(c byte) bool {
	switch {
	case c == bel || c == can || c == sub:
		m.state = ground
	case c == esc:
		m.begin(escape)
	case c == '\n' || m.n > maxString:
		m.state = ground
		return false
	}
	return true
}

// sgr keeps ESC [ params m when params are digits, semicolons and colons.
// Private forms such as ESC [ > 4 m change modes and are no SGR.
func (m *machine) sgr(dst, params []byte) []byte {
	plain, digits := true, 0
	for _, c := range params {
		switch {
		case c >= '0' && c <= '9':
			// No attribute has more digits; some terminals overflow on more.
			if digits++; digits > 5 {
				return dst
			}
			plain = plain && c == '0'
		case c == ';' || c == ':':
			digits = 0
		default:
			return dst
		}
	}
	dst = m.text(dst)
	if m.noSGR { // the text is the same with and without its colours
		m.room = 0
		return dst
	}
	// Only zeros surely close everything: in 38;5;0 the last zero is a colour.
	m.open, m.room = !plain, 0
	dst = append(dst, "\x1b["...)
	dst = append(dst, params...)
	return append(dst, 'm')
}
