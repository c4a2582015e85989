package sanitize

import (
	"bytes"
	"encoding/json"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// MarshalJSON returns v as JSON on one line without its end. Whatever a
// terminal would not show as it stands (C1 controls, DEL, direction overrides,
// line separators, invisible characters) is written as \u and four digits:
// the value is the same, and the line is safe to print.
func MarshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return EscapeJSON(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})), nil
}

// WriteJSON writes v as a line of JSON, as MarshalJSON makes it.
func WriteJSON(w io.Writer, v any) error {
	b, err := MarshalJSON(v)
	if err == nil {
		_, err = w.Write(append(b, '\n'))
	}
	return err
}

// EscapeJSON returns JSON text with \u escapes for what may not be printed as
// it stands. Text that needs none is returned as it is.
func EscapeJSON(text []byte) []byte {
	n := cleanPrefix(text)
	if n == len(text) {
		return text
	}
	// Outside its strings JSON is ASCII, so that whatever else is found here
	// stands in a string, where an escape means the same.
	out := append(make([]byte, 0, len(text)+len(text)/8+16), text[:n]...)
	for room := maxMarks; n < len(text); {
		if c := text[n]; c < utf8.RuneSelf {
			if c == 0x7f {
				out = appendEscape(out, rune(c))
			} else {
				out = append(out, c)
			}
			room = maxMarks
			n++
			continue
		}
		r, size := utf8.DecodeRune(text[n:])
		switch class := classOf(r, size); {
		case class == kept:
			out, room = append(out, text[n:n+size]...), maxMarks
		case class == mark && room > 0:
			out = append(out, text[n:n+size]...)
			room--
		default:
			out = appendEscape(out, r)
		}
		n += size
	}
	return out
}

// appendEscape appends a character as JSON writes it in ASCII.
func appendEscape(dst []byte, r rune) []byte {
	if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
		return appendEscape(appendEscape(dst, r1), r2)
	}
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
