// Package remark knows what people write beside values that is none itself: over how
// many a value is, in brackets behind its name, marks behind a row that is the best so
// far, sentences about a model that was kept, and names that values share words of.
package remark

import (
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// longest bounds what stands in brackets behind a name.
const longest = 24

// Bracket reads what stands in brackets at i, behind a blank or none: " (last 100)",
// "[avg 500]". end is behind the bracket that closes; i where there is none.
func Bracket(line string, i int) (words string, end int) {
	at := i
	if at < len(line) && line[at] == ' ' {
		at++
	}
	if at+2 >= len(line) || line[at] != '(' && line[at] != '[' {
		return "", i
	}
	closing := byte(')')
	if line[at] == '[' {
		closing = ']'
	}
	for end = at + 1; end < len(line) && end-at <= longest; end++ {
		switch c := line[end]; {
		case c == closing && end > at+1:
			return line[at+1 : end], end + 1
		case !lexis.IsKeyByte(c) && c != ' ':
			return "", i
		}
	}
	return "", i
}

// At reads at how many of what was found a score was taken, in brackets right behind its name at i:
// "Recall(k=20)". end is behind the bracket; i where there is none.
func At(line string, i int) (many string, end int) {
	at := i
	if at < len(line) && line[at] == ' ' {
		at++
	}
	if at >= len(line) || line[at] != '(' {
		return "", i
	}
	end = at + 1 + strings.IndexByte(line[at+1:min(len(line), at+longest)], ')')
	if end == at {
		return "", i
	}
	name, many, _ := strings.Cut(line[at+1:end], "=")
	if many = strings.TrimSpace(many); !IsCount(many) || !lexis.IsWord(strings.TrimSpace(name)) {
		return "", i
	}
	return many, end + 1
}

var (
	means = words(`avg average averaged mean running moving ema smoothed rolling median`)
	spans = words(`last past recent over of per previous prev`)
	units = words(`step steps episode episodes ep eps epoch epochs iter iters iteration iterations batch batches game games update updates sample samples window trial trials rollouts ma`)
)

func words(list string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		all[w] = true
	}
	return all
}

// Window reports whether words in brackets say over how many a value is, "last 100",
// "avg of 50 episodes", "mean", and whether they say that it is an average.
func Window(text string) (average, ok bool) {
	numbers, said := 0, false
	for w := range strings.FieldsSeq(strings.ToLower(text)) {
		switch {
		case means[w]:
			average, said = true, true
		case spans[w]:
			said = true
		case units[w]:
		case lexis.Digits(w, 0) == len(w):
			numbers++
		default:
			return false, false
		}
	}
	return average || said, said && (numbers == 1 || average && numbers == 0)
}

// IsCount reports whether a text is a whole number and no more.
func IsCount(text string) bool { return text != "" && lexis.Digits(text, 0) == len(text) }

// IsMark reports whether what stands behind the values of a row is no value, but tells
// of it: "*", "✓", "(best)", "<- best", "(12.3s)".
func IsMark(cell string) bool {
	if cell == "" || cell[0] == '(' && cell[len(cell)-1] == ')' || strings.HasPrefix(cell, "<-") {
		return true
	}
	if cell[0] == '(' { // "(12.3s) ✓"
		if close := strings.IndexByte(cell, ')'); close > 0 {
			return IsMark(strings.TrimSpace(cell[close+1:]))
		}
	}
	for _, c := range []byte(cell) {
		if c < 0x80 && (lexis.IsLetter(c) || lexis.IsDigit(c)) {
			return strings.EqualFold(cell, "best")
		}
	}
	return cell[0] >= 0x80 || strings.Trim(cell, "*!+#<") == ""
}

// What is done with a model, and what is called one.
var (
	keeping = words(`found save saved saves saving store stored storing wrote writing written restored restoring loaded loading keeping kept exported resumed resuming`)
	models  = words(`model models checkpoint checkpoints ckpt weights snapshot state minimum maximum optimum`)
)

// between is how many bytes stand at most between what is done and what is kept.
const between = 24

// Kept is where a message that begins at i begins to tell of a model that was kept:
// what it says of losses behind that was told before. It is the line's length where it
// tells nothing of that.
func Kept(line string, i int) int {
	if !maybe(line[i:]) {
		return len(line)
	}
	action, model := -1, -1 // where each ended
	first := len(line)
	for {
		start, end := lexis.NextKey(line, i)
		if end < 0 {
			return len(line)
		}
		switch word := strings.ToLower(strings.Trim(line[start:end], ".-")); {
		case keeping[word]:
			if action = end; model >= 0 && near(line[model:start]) {
				return first
			}
			first = start
		case models[word]:
			if model = end; action >= 0 && near(line[action:start]) {
				return first
			}
			first = start
		}
		i = end
	}
}

// near reports whether a text between two words leaves them in one sentence.
func near(text string) bool {
	return len(text) <= between && !strings.ContainsAny(text, "=|0123456789")
}

// maybe looks cheaply whether a line has what a verb of keeping has.
func maybe(line string) bool {
	for _, stem := range [...]string{"ound", "av", "tor", "rit", "oad", "rote", "ept", "eep", "xport", "esum", "AV"} {
		if strings.Contains(line, stem) {
			return true
		}
	}
	return false
}

// IsBeginning reports whether a line is one of source code in which a sum
// begins, "    val_loss = 0": scripts print what they were. In a run that goes
// on only one that is indented is.
func IsBeginning(line string, early bool) bool {
	name, value, ok := strings.Cut(line, " = ")
	if !ok || value != "0" && value != "0.0" && value != "0." {
		return false
	}
	word := strings.TrimLeft(name, " \t")
	return !strings.ContainsAny(word, " \t") && (early || len(name) >= len(word)+4 || name[0] == '\t')
}

// TellsBest reports whether a line whose message begins at i tells of the best that
// there was, "Best epoch: 8, val loss 0.31", or of what a model has come to; counts says that it tells of a place before that.
func TellsBest(line string, i int, counts bool) bool {
	i += len(line[i:]) - len(strings.TrimLeft(line[i:], " \t*>=-!+"))
	if first, _, ok := strings.Cut(line[i:], ". "); ok && len(first) < longest && !strings.ContainsAny(first, "0123456789:=") { // "End. Best iteration 7: HR = 0.7"
		i += len(first) + len(". ")
	}
	if i+8 < len(line) && strings.EqualFold(line[i:i+4], "new ") && !counts {
		i += len("new ")
	}
	return i+5 < len(line) && strings.EqualFold(line[i:i+5], "best ") || !counts && isClaim(line[i:])
}

// claims are what sentences say that a model has done, who report of it when all is over.
var claims = [...]string{" achieved a", " achieves a", " attained a", " attains a", " obtained a", " obtains a"}

// isClaim reports whether a text is a sentence about what a model has come to: "The baseline achieved an AUC of 0.72".
func isClaim(text string) bool {
	if !strings.Contains(text, " of ") { // few lines go on
		return false
	}
	return slices.ContainsFunc(claims[:], func(claim string) bool {
		_, what, ok := strings.Cut(text, claim)
		return ok && strings.Contains(what, " of ") && (what[0] == ' ' || strings.HasPrefix(what, "n "))
	})
}
