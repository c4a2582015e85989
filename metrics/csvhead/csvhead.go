// Package csvhead knows the beginning of a table of comma-separated values: whether a text
// is one, what stands between its cells, and a header that is marked as a comment.
package csvhead

import (
	"bufio"
	"bytes"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// longestColumn bounds the name of a column.
const longestColumn = 128

// Is reports whether a text is a header of names and rows of cells, some of
// which are numbers.
func Is(text []byte) bool {
	comments := 0
	for bytes.HasPrefix(text[comments:], []byte{'#'}) && bytes.IndexByte(text[comments:], '\n') >= 0 {
		comments += bytes.IndexByte(text[comments:], '\n') + 1
	}
	row, rest, _ := bytes.Cut(text[comments:], []byte{'\n'})
	if text = slices.Concat(uncommented(slices.Concat(text[:comments], row, []byte{'\n'})), rest); text[0] == '#' {
		text = text[comments:]
	}
	header, rest, ok := bytes.Cut(text, []byte{'\n'})
	comma := string(Separator(text))
	cells := strings.Split(strings.TrimSpace(string(header)), comma)
	row, _, _ = bytes.Cut(rest, []byte{'\n'})
	if !ok || len(cells) < 2 && (comma != "\t" || !bytes.HasSuffix(row, []byte{'\t'})) { // Torch's logger has a tab behind each column
		return false
	}
	for _, c := range cells {
		c = grid.Column(strings.Trim(strings.TrimSpace(c), `"`))
		if c == "" || !lexis.IsLetter(c[0]) || len(c) > longestColumn || strings.ContainsAny(c, "={}") || strings.Count(c, " ") > 3 {
			return false
		}
	}
	numbers := 0
	got := strings.Split(strings.TrimSpace(string(row)), comma)
	for _, c := range got {
		c = strings.TrimSpace(c)
		if f, ok := lexis.Number(c, 0); ok && f.Next == len(c) {
			numbers++
		}
	}
	return len(got) == len(cells) && numbers > 0
}

// longest bounds the comments before a header.
const longest = 4096

// Until reads a CSV up to its header and no further: of a file that grows
// there is no more yet.
func Until(in *bufio.Reader) (text []byte) {
	for len(text) < longest {
		line, err := in.ReadSlice('\n')
		text = append(text, line...)
		if err != nil || line[0] != '#' {
			break
		}
	}
	return uncommented(text)
}

// uncommented is the beginning of a table whose header is marked as a comment: the
// last of those, where it has as many cells as the row behind it, and that is numbers.
func uncommented(text []byte) []byte {
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte{'\n'})
	if len(lines) < 2 || len(lines[len(lines)-1]) == 0 || lines[len(lines)-1][0] == '#' {
		return text
	}
	header, row := bytes.TrimLeft(lines[len(lines)-2], "# "), lines[len(lines)-1]
	comma := string(Separator(header))
	cells := strings.Split(string(row), comma)
	for _, cell := range cells {
		if f, ok := lexis.Number(strings.TrimSpace(cell), 0); !ok || f.Next != len(strings.TrimSpace(cell)) {
			return text
		}
	}
	if len(cells) < 2 || strings.Count(string(header), comma) != len(cells)-1 {
		return text
	}
	return append(append(append([]byte{}, header...), '\n'), append(row, '\n')...)
}

// Separator is what stands between the cells of a table by its header: what is
// there most often.
func Separator(text []byte) rune {
	for len(text) > 0 && text[0] == '#' {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	header, _, _ := bytes.Cut(text, []byte{'\n'})
	best, most := ',', 0
	for _, c := range ",;\t|" {
		if n := bytes.Count(header, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}
