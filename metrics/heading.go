package metrics

import "strings"

// Values are printed in blocks, too, one in each line below a line that says
// what they are of:
//
//	Validation:
//	    loss: 0.4
//	    accuracy: 0.8

// heading is what the lines of a block are of, and how its last line went.
type heading struct {
	split  string // said above; "" when nothing was
	scored bool   // the line before was a name and a number alone, and a metric
}

// begins takes a line that is no more than a split, with what people put around
// it; false for any other.
func (h *heading) begins(line string) bool {
	if line == "" || len(line) > 2*longestName {
		return false
	}
	decorated := strings.IndexByte("-=*#[<+~", line[0]) >= 0 || strings.HasSuffix(line, ":")
	text := strings.Trim(line, " -=*#:[]<>+~|.")
	if !decorated || text == "" {
		return false
	}
	split := ""
	for i, word := range strings.Fields(strings.ToLower(text)) {
		switch {
		case splits[word] != "" && split == "":
			split = splits[word]
		case i > 3 || !headingWords[word]:
			return false
		}
	}
	if split != "" {
		*h = heading{split: split}
	}
	return split != ""
}

// headingWords stand beside a split in a heading.
var headingWords = set(`results result metrics metric set phase stage summary scores performance stats statistics error on the data dataset report running step`)

// of is what a line below a heading is of. Another heading, an empty line or a
// line of another form ends the block.
func (h *heading) of(line string) string {
	if h.split != "" && !isAlone(line) {
		*h = heading{}
	}
	return h.split
}

// isAlone reports whether a line is a name and a number and no more: "  loss : 0.4".
func isAlone(line string) bool {
	i := skipBlanks(line, 0)
	if i >= len(line) || !isLetter(line[i]) {
		return false
	}
	end := i
	for end < len(line) && line[end] != ':' && line[end] != '=' {
		if !isKeyByte(line[end]) && line[end] != ' ' && line[end] != '\t' && line[end] != '(' && line[end] != ')' {
			return false
		}
		end++
	}
	sep, at := separator(line, end)
	if sep == 0 || sep == ' ' || end-i > longestName {
		return false
	}
	f, ok := number(line, at)
	if ok && f.next < len(line) && line[f.next] == '%' {
		f.next++
	}
	return ok && strings.Trim(line[f.next:], " ,;") == ""
}
