package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
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
	if start > 0 && (line[start-1] == '(' || line[start-1] == '[') && end < len(line) && line[end] == ',' {
		return listed(line, start)
	}
	noun, list := "", line[start:end]
	at := end
	if strings.IndexByte(list, '/') > 0 {
		for at < len(line) && (lexis.IsLetter(line[at]) || line[at] == ' ' || line[at] == '_') && at-end < longest {
			at++
		}
		words := strings.TrimSpace(line[end:at])
		if noun = words; noun == "" && strings.ContainsFunc(list, func(c rune) bool { return c != '/' && !lexis.IsKeyByte(byte(c)) }) {
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
	scored := sense.Of(strings.ToLower(lexis.Snake(noun[strings.LastIndexByte(noun, ' ')+1:]))) >= sense.Weak
	measured := false // it needs values that were measured to be a couple
	for i, part := range parts {
		part = strings.ToLower(strings.TrimSpace(part))
		if noun == "" { // "mIoU/mAcc 0.5/0.6": each is the name of a score
			if sense.Of(part) < sense.Weak {
				return c, false
			}
			continue
		}
		if parts[i] = data(part); parts[i] != "" {
			continue
		}
		if parts[i] = part; !sides[part] { // "Gen/Dis Loss"
			if measured = scored && lexis.IsWord(part) && part != "per" && !units[part]; !measured {
				return c, false
			}
		}
	}
	for at < len(line) && (line[at] == ' ' || line[at] == ':' || line[at] == '=') {
		at++
	}
	for i, part := range parts {
		f, isNumber := lexis.Number(line, at)
		if !isNumber || measured && !f.Real {
			return c, false
		}
		c.Names, c.At, c.Next = append(c.Names, strings.TrimSpace(part+" "+noun)), append(c.At, at), f.Next
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

// listed reads names in a bracket and their values in another: "(train_loss, val_loss): (0.5, 0.6)". The first
// name begins at i.
func listed(line string, i int) (c Couple, ok bool) {
	close := strings.IndexAny(line[i:min(len(line), i+mostListed)], ")]")
	if close < 0 {
		return c, false
	}
	names := strings.Split(line[i:i+close], ",")
	at := lexis.SkipBlanks(line, i+close+1)
	if len(names) > mostCoupled || at+2 >= len(line) || line[at] != ':' && line[at] != '=' {
		return c, false
	}
	if at = lexis.SkipBlanks(line, at+1); at == len(line) || line[at] != '(' && line[at] != '[' {
		return c, false
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		start, end := lexis.NextKey(name, 0)
		f, isNumber := lexis.Number(line, lexis.SkipBlanks(line, at+1))
		if start != 0 || end != len(name) || !isNumber || !f.Real || f.Next == len(line) || strings.IndexByte(",)]", line[f.Next]) < 0 {
			return c, false
		}
		c.Names, c.At, c.Next = append(c.Names, name), append(c.At, f.Start), f.Next+1
		at = f.Next
	}
	return c, line[at] != ','
}

// mostListed bounds the names in a bracket.
const mostListed = 64
