package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// parties are those that train a model together without showing each other their data. Each has a curve of its own,
// where of processes that run one training the lowest counts.
var parties = sense.Set(`client clients party site silo participant hospital`)

// Party is which of them a line is of when the word from start to end and a number behind it say so, with a sign behind
// that: "Client 1: loss=0.69", "[Client 2] acc 0.5"; "" where they say nothing of that.
func Party(line string, start, end int) string {
	word := strings.ToLower(line[start:end])
	if !parties[word] || end >= len(line) || strings.IndexByte(" :#_-", line[end]) < 0 {
		return ""
	}
	at := lexis.SkipBlanks(line, end+1)
	number := lexis.Digits(line, at)
	if behind := strings.TrimLeft(line[number:], " "); number == at || behind == "" || strings.IndexByte(":,|]-", behind[0]) < 0 {
		return ""
	}
	return strings.TrimSuffix(word, "s") + "_" + line[at:number]
}
