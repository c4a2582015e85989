package grid

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// What is in a cell.

// IsClock reports whether a cell tells how long something took: 0:01:02, 00s12, 1h02m.
func IsClock(cell string) bool {
	marks := 0
	for i := 1; i+1 < len(cell); i++ {
		if strings.IndexByte(":hms", cell[i]) >= 0 && lexis.IsDigit(cell[i-1]) && lexis.IsDigit(cell[i+1]) {
			marks++
		}
	}
	return marks > 0 && strings.Trim(cell, "0123456789:.hms") == ""
}

// IsMoment reports whether a cell is a date and a time of day: 2024-01-01 12:00:05.
func IsMoment(cell string) bool {
	date, clock, ok := strings.Cut(cell, " ")
	return ok && len(date) == len("2024-01-01") && strings.Count(date, "-") == 2 && lexis.Digits(date, 0) == 4 && IsClock(clock)
}

// Sides cuts "accuracy     0.8852" in two.
func Sides(cell string) []string {
	cut := strings.LastIndexByte(cell, ' ')
	if cut < 0 || cut == 0 || cell[cut-1] != ' ' {
		return nil
	}
	key := strings.TrimSpace(cell[:cut])
	if strings.Contains(key, "  ") { // more than two columns
		return nil
	}
	return []string{key, cell[cut+1:]}
}

// Group is the name of a column in "Box(P  R  mAP50)  Mask(P  R  mAP50)", and
// the group that it and those behind it are of.
func Group(name, group string) (column, of string) {
	if owner, _, ok := strings.Cut(name, "("); ok && !strings.HasSuffix(name, ")") {
		return name, strings.ToLower(owner)
	}
	if strings.HasSuffix(name, ")") && strings.IndexByte(name, '(') < 0 {
		name = name[:len(name)-1]
	}
	return name, group
}

// IsRow reports whether cells are a name and a number: "epoch │ 3".
func IsRow(got []string) bool {
	if len(got) != 2 {
		return false
	}
	f, ok := lexis.Number(got[1], 0)
	return ok && f.Next == len(got[1])
}

// Number reads the number of a cell: "71.2%", and "[0.5]" of a list that has one.
func Number(cell string) (lexis.Figure, bool) {
	if n := len(cell); n > 2 && cell[0] == '[' && cell[n-1] == ']' {
		cell = strings.TrimSpace(cell[1 : n-1])
	}
	f, ok := lexis.Number(cell, 0)
	return f, ok && (f.Next == len(cell) || cell[f.Next:] == "%" || cell[f.Next:] == ":")
}

// IsNumber reports whether a cell has a number.
func IsNumber(cell string) bool {
	_, ok := Number(cell)
	return ok
}

// HasValue reports whether a cell has a number that is no part of a name: "0, loss 0.5", "60.00; ppl:". But
// "top 5" is a name.
func HasValue(cell string) bool {
	first := true
	for word := range strings.FieldsSeq(cell) {
		if f, ok := Number(strings.Trim(word, ",;:/")); ok && (first || f.Real) {
			return true
		}
		first = false
	}
	return false
}

// Numbers is how many numbers a cell has that has nothing else.
func Numbers(cell string) (n int) {
	for one := range strings.FieldsSeq(cell) {
		if !IsNumber(one) {
			return 0
		}
		n++
	}
	return n
}

// HasPair reports whether a cell is a name and a number with a colon between: "loss: 0.5".
func HasPair(cell string) bool {
	_, value, ok := strings.Cut(cell, ": ")
	return ok && IsNumber(strings.TrimSpace(value))
}

// IsBound reports whether a name is that of the least or the most of what another of n names is the
// average of: MaxEpRet beside AverageEpRet.
func IsBound(name string, n int, other func(int) string) bool {
	lower := strings.ToLower(name)
	if len(lower) < len("max_r") || !strings.HasPrefix(lower, "max") && !strings.HasPrefix(lower, "min") {
		return false
	}
	for i := range n {
		if o := strings.ToLower(other(i)); (strings.HasPrefix(o, "av") || strings.HasPrefix(o, "mean")) && strings.HasSuffix(o, lower[len("max"):]) {
			return true
		}
	}
	return false
}
