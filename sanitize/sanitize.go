// Package sanitize makes bytes from elsewhere safe to put on a terminal.
//
// What a node, a file name, a tag or an API error says may hold anything. After
// this package it holds printable text, newline, tab and SGR (colour and
// weight) and nothing else: no cursor movement, title, mode, query, hyperlink,
// direction override or invisible character. Lines that leave attributes open
// are closed, so that one line can't paint the next.
//
// Whoever prints does it through a Writer, which stands before the terminal and
// forgets nothing. That keeps the terminal safe, but a name with a newline could
// still begin a line as if dlwb said it: Fprintf and Sprintf make words of their
// arguments. JSON keeps its values and escapes what may not be shown
// (MarshalJSON, WriteJSON).
//
// Three decisions are worth knowing:
//   - Zero-width joiners, variation selectors and skin tones go, and flags
//     become their two letters: terminals disagree on the width of such emoji,
//     and one cell of disagreement shears a whole screen. A family is shown as
//     its members.
//   - Escape sequences are removed with their payload. A string sequence (OSC,
//     DCS, APC, PM, SOS) that is not ended is given up at the next newline or
//     after 4 KiB: what follows is text again.
//   - A C1 control in UTF-8 (U+0080 to U+009F) is removed alone; what follows
//     it stays readable. As a raw byte it is invalid UTF-8 and becomes U+FFFD.
package sanitize

// Reset is the SGR that closes a line which leaves attributes open.
const Reset = "\x1b[0m"

// Line makes s one line: newlines become spaces, tabs and SGR are kept.
func Line(s string) string { return whole(s, options{oneLine: true}) }

// Text makes s safe as text of several lines: newline, tab and SGR are kept.
// A carriage return counts as a newline.
func Text(s string) string { return whole(s, options{}) }

// Plain is Text without SGR: newline, tab and printable characters only.
func Plain(s string) string { return whole(s, options{noSGR: true}) }

// Append appends the safe form of one line in raw bytes to dst, as Line does
// for a string.
func Append(dst, raw []byte) []byte {
	m := machine{options: options{oneLine: true}}
	return m.finish(feed(&m, dst, raw))
}

// Clean reports whether p is printable ASCII and tabs alone, which all of the
// functions here return as it is.
func Clean[T ~string | ~[]byte](p T) bool { return textPrefix(p) == len(p) }

func whole(s string, o options) string {
	n := textPrefix(s)
	if !o.oneLine {
		n = cleanPrefix(s)
	}
	if n == len(s) {
		return s
	}
	m := machine{options: o}
	return string(m.finish(feed(&m, make([]byte, 0, len(s)+len(Reset)), s)))
}

// Stream sanitises a stream that comes in pieces; a character or an escape
// sequence may be split between them. The zero Stream is ready. The result is
// the same however the stream was cut.
type Stream struct{ m machine }

// Write returns the safe form of p. A character or sequence that p leaves
// incomplete is held back for the next Write or for Close.
func (s *Stream) Write(p []byte) []byte {
	return feed(&s.m, make([]byte, 0, len(p)+len(Reset)), p)
}

// Close returns what ends the stream: U+FFFD for half a character, and a reset
// where attributes are open. The Stream may be used again afterwards.
func (s *Stream) Close() []byte {
	out := s.m.finish(nil)
	s.m = machine{options: s.m.options}
	return out
}
