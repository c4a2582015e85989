// Package namejson writes names of files into JSON so that they come back byte for
// byte. JSON is text, and a name is bytes: encoding/json puts U+FFFD in the place of
// each byte that is no UTF-8, and two names may become one.
package namejson

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// mark stands before the two hexadecimal digits of a byte that is no UTF-8. No name has
// one of its own: no system allows it.
const mark = '\x00'

// Encode gives a name as text. Most are text, and stay as they are: a record that was
// written without this package reads the same.
func Encode(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && size == 1 {
			b.WriteByte(mark)
			b.WriteString(hex.EncodeToString([]byte{name[0]}))
		} else {
			b.WriteString(name[:size])
		}
		name = name[size:]
	}
	return b.String()
}

// Decode gives the name back that Encode was given. Text that Encode never makes stays
// as it is.
func Decode(text string) string {
	if !strings.ContainsRune(text, mark) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == mark && i+2 < len(text) {
			if c, err := hex.DecodeString(text[i+1 : i+3]); err == nil {
				b.Write(c)
				i += 2
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// Keys gives a map whose keys are names with their text in place of each, or with
// Decode the names again.
func Keys[V any](m map[string]V, code func(string) string) map[string]V {
	if m == nil {
		return nil
	}
	to := make(map[string]V, len(m))
	for name, v := range m {
		to[code(name)] = v
	}
	return to
}
