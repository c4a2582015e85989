package grid

import "strings"

// Apart is a row of numbers and clocks behind a label, "BFGS:    0 12:30:05        4.0233" or
// "0: -4.1109e+00 -1.1304e+01", with a wide gap at each blank, as each is a cell. Any other line stays.
func Apart(line string) string {
	label, rest, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
	if len(label) < 2 || label[len(label)-1] != ':' {
		return line
	}
	cells := strings.Fields(rest)
	for _, cell := range cells {
		if !IsNumber(cell) && !IsClock(cell) && strings.Trim(cell, "-") != "" {
			return line
		}
	}
	return label + "  " + strings.Join(cells, "  ")
}

// IsLabel reports whether a cell is a name with a colon behind it: "BFGS:".
func IsLabel(cell string) bool {
	name, ok := strings.CutSuffix(cell, ":")
	return ok && name != "" && !IsNumber(name)
}
