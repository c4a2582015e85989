package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// mostCoupled are how many values one name has at most.
const mostCoupled = 4

// sides are the words that stand on one side of a couple beside the data it is of.
var sides = words(`mean median min max avg average std current best top1 top5 acc1 acc5`)

// Couple is the values of a line whose names share words: "mean/median reward 12.1/11.8",
// "Loss (Train/Val) = 0.5 / 0.6". Each is a name and where its number stands.
type Couple struct {
	Names []string
	At    []int
	Next  int // behind the last number
}

// Coupled reads a couple whose first word, "mean/median" or "Loss", stands at start up to end.
// data is the data that a word says a value is of, "" of any other word.
func Coupled(line string, start, end int, data func(string) string) (c Couple, ok bool) {
	noun, list := "", line[start:end]
	at := end
	if strings.IndexByte(list, '/') > 0 {
		for at < len(line) && (lexis.IsLetter(line[at]) || line[at] == ' ' || line[at] == '_') && at-end < longest {
			at++
		}
		words := strings.TrimSpace(line[end:at])
		if noun = words; noun == "" {
			return c, false
		}
	} else {
		text, behind := Bracket(line, end)
		if behind == end || strings.IndexByte(text, '/') < 0 {
			return c, false
		}
		noun, list, at = list, text, behind
	}
	parts := strings.Split(list, "/")
	if len(parts) > mostCoupled {
		return c, false
	}
	for i, part := range parts {
		part = strings.ToLower(strings.TrimSpace(part))
		if parts[i] = data(part); parts[i] == "" && !sides[part] {
			return c, false
		} else if parts[i] == "" {
			parts[i] = part
		}
	}
	for at < len(line) && (line[at] == ' ' || line[at] == ':' || line[at] == '=') {
		at++
	}
	for i, part := range parts {
		f, isNumber := lexis.Number(line, at)
		if !isNumber {
			return c, false
		}
		c.Names, c.At, c.Next = append(c.Names, part+" "+noun), append(c.At, at), f.Next
		if f.Next < len(line) && line[f.Next] == '%' {
			c.Next++
		}
		if i == len(parts)-1 {
			break
		}
		if at = lexis.SkipBlanks(line, c.Next); at == len(line) || line[at] != '/' {
			return c, false
		}
		at = lexis.SkipBlanks(line, at+1)
	}
	return c, lexis.StandsAlone(line, c.Next)
}
