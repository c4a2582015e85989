package grid

import "strings"

// BehindBranch is a line without the wall that it begins with, as lines of one message have it,
// "│   loss = 0.5" below "┌ Info: epoch 1", or without the branches of a tree, whose leaves are
// left as far indented as they hang: "├── Train", "│   └── Loss = 0.5".
func BehindBranch(line string) string {
	if len(line) < 4 || line[0] != 0xe2 && line[0] != ' ' {
		return line
	}
	if at := strings.Index(line, "── "); at > 0 && at < deepestTree {
		if from := strings.TrimRight(line[:at], "├└│ \u00a0"); from == "" {
			return line[at+len("──"):]
		}
	}
	for _, branch := range [...]string{"┌ ", "│ ", "├ ", "└ ", "╭ ", "╰ "} {
		if rest, ok := strings.CutPrefix(line, branch); ok && !strings.ContainsAny(rest, Walls) {
			return rest
		}
	}
	return line
}

// deepestTree is how far in bytes the branches of a tree reach that are looked at.
const deepestTree = 48

// BehindDots is a line without the dots that it begins with where something was
// told of, one by one, before it.
func BehindDots(line string) string {
	if len(line) > 3 && line[:3] == "..." {
		line = strings.TrimLeft(line, ".")
	}
	return line
}

// Column is the name of a column of a file without a sign of percent before it, and with the data
// that it is of at its beginning: "% mean class accuracy (train set)" as "train mean class accuracy".
func Column(cell string) string {
	cell = strings.TrimLeft(cell, "% ")
	if name, of, ok := strings.Cut(cell, " ("); ok && strings.HasSuffix(of, " set)") {
		return strings.TrimSuffix(of, " set)") + "_" + name
	}
	return cell
}

// BehindGauge is a line without the gauge that it begins with, where a row or the header of a table
// stands behind it: "[ 25%      ]     1      0.8657", "[------------] Epoch      Train log_loss".
func BehindGauge(line string) string {
	if len(line) < 8 || line[0] != '[' {
		return line
	}
	close := strings.IndexByte(line, ']')
	if close < 4 || strings.Trim(line[1:close], " -=>#.0123456789%") != "" || strings.Trim(line[1:close], " 0123456789") == "" {
		return line
	}
	rest := strings.TrimLeft(line[close+1:], " ")
	first, behind, ok := strings.Cut(rest, " ")
	if !ok || len(rest) == len(line)-close-1 || behind == "" || behind[0] != ' ' || !isTop(line[1:close], first) {
		return line
	}
	return rest
}

// isTop reports whether the first cell behind a gauge is one of a header, above which the gauge is
// empty, or of a row, a count.
func isTop(gauge, cell string) bool {
	if strings.IndexByte(gauge, '%') < 0 {
		return strings.Trim(gauge, "-") == "" && strings.Trim(cell, "0123456789") == cell
	}
	return strings.Trim(cell, "0123456789") == ""
}
