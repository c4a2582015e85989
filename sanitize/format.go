package sanitize

import (
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Word makes s one line of plain text: no SGR, newlines become spaces and a tab
// two. It is for a name, a reason or a cell of a table: text that may neither
// begin a line nor end its column.
func Word(s string) string {
	s = whole(s, options{oneLine: true, noSGR: true})
	if strings.Contains(s, "\t") {
		return strings.ReplaceAll(s, "\t", "  ")
	}
	return s
}

// Sprintf is fmt.Sprintf for lines that say what others wrote: every argument
// that is text is made a Word first, so that none can forge a line or a column.
// Newlines and tabs of the format itself stay. A slice that is given as args...
// is changed.
func Sprintf(format string, args ...any) string {
	makeWords(args)
	return fmt.Sprintf(format, args...)
}

// Fprintf writes what Sprintf makes.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	makeWords(args)
	return fmt.Fprintf(w, format, args...)
}

// makeWords changes the arguments in place: so go vet sees that the functions
// above are like those of fmt, and checks their formats.
func makeWords(args []any) {
	for i, a := range args {
		args[i] = word(a)
	}
}

// word makes an argument safe. Numbers and the like can't hold text.
func word(a any) any {
	switch a := a.(type) {
	case nil, bool, int, int64, float64, int32, uint64, uint32:
		return a
	case string:
		return Word(a)
	}
	if _, speaks := a.(fmt.Stringer); !speaks && reflect.TypeOf(a).Kind() == reflect.String {
		return Word(reflect.ValueOf(a).String())
	}
	return formatted{a}
}

// formatted is an argument that is made safe when it has been formatted.
type formatted struct{ value any }

// Format implements fmt.Formatter.
func (f formatted) Format(s fmt.State, verb rune) {
	_, _ = io.WriteString(s, Word(fmt.Sprintf(fmt.FormatString(s, verb), f.value)))
}
