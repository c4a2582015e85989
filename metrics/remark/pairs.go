package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// fewestPairs tell that a line has nothing but pairs.
const fewestPairs = 2

// IsPairs reports whether a line is nothing but names with a sign and a number, with blanks, commas
// or walls between them: "recall@10 : 0.21    mrr@10 : 0.34". Of an indented line a blank
// will do. Whole numbers alone are counts: "nSV = 130, nBSV = 107". A word with a colon may say what
// they are of: "Train: kld: 4.4 ;perceptual: 1.8".
func IsPairs(line string) bool {
	n, measured := 0, false
	begin := lexis.SkipBlanks(line, 0)
	if start, end := lexis.NextKey(line, begin); start == begin && end > 0 && strings.HasPrefix(line[end:], ": ") && end+2 < len(line) && lexis.IsLetter(line[end+2]) {
		begin = end + 2
	}
	for i := begin; i < len(line); n++ {
		start, end := lexis.NextKey(line, i)
		if end < 0 || start != i {
			return false
		}
		sep, at := lexis.Separator(line, end)
		for range mostTitle - 1 { // of several words: "Avg loss: 0.5"
			if next, stop := lexis.NextKey(line, at); sep == ' ' && next == at && at == end+1 && stop > 0 {
				end = stop
				sep, at = lexis.Separator(line, end)
			}
		}
		f, ok := lexis.Number(line, at)
		if sep != ':' && sep != '=' && !(sep == ' ' && line[0] == ' ' && f.Real) || !ok || !lexis.StandsAlone(line, f.Next) {
			return false
		}
		measured = measured || f.Real
		i = len(line) - len(strings.TrimLeft(line[f.Next:], " \t,;|%"))
	}
	return n >= fewestPairs && measured
}
