package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Behind finds the count in brackets with which a line ends, "loss: 2.30  [  640/60000]": where it
// begins, or 0 where there is none.
func Behind(line string) int {
	if line == "" || line[len(line)-1] != ']' {
		return 0
	}
	open := strings.LastIndexByte(line, '[')
	if open < 1 || line[open-1] != ' ' {
		return 0
	}
	at := lexis.SkipBlanks(line, open+1)
	c, next, ok := lexis.OfTotal(line, at)
	if !ok || c.Total == 0 || lexis.SkipBlanks(line, next) != len(line)-1 {
		return 0
	}
	return at
}

// Sentence finds the name, the rest and the number of a line that says in a sentence how good a model is:
// "Accuracy of the network on the 10000 test images: 54 %". end is 0 for any other line.
func Sentence(line string, i int) (end, behind, number int) {
	of := strings.Index(line[i:], " of the ")
	colon := strings.LastIndexByte(line, ':')
	if of < 1 || colon < i+of || strings.Count(line[i:i+of], " ") > 2 {
		return 0, 0, 0
	}
	behind = i + of + len(" of the ")
	thing, _, _ := strings.Cut(line[behind:colon], " ")
	number = lexis.SkipBlanks(line, colon+1)
	f, ok := lexis.Number(line, number)
	if !ok || strings.Trim(line[f.Next:], " %.") != "" || thing != "model" && thing != "network" && thing != "net" && thing != "classifier" {
		return 0, 0, 0
	}
	return i + of, behind, number
}

// OfOne is where a name that ends at i goes on behind what says of how much it is, when a colon
// follows: "accuracy for a single minibatch: 80.0", "loss across all batches: 0.5"; i where nothing does.
func OfOne(line string, i int) int {
	for _, word := range [...]string{" for a ", " for one ", " on a ", " on one ", " of one ", " across all ", " over all ", " on all "} {
		if !strings.HasPrefix(line[i:], word) {
			continue
		}
		end := i + len(word)
		for end < len(line) && end-i <= longest+len(word) && (lexis.IsLetter(line[end]) || line[end] == ' ' || line[end] == '-') {
			end++
		}
		if end+1 < len(line) && line[end] == ':' && line[end+1] == ' ' && end > i+len(word) {
			return end
		}
	}
	return i
}
