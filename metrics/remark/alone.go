package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/grid"
	"github.com/dlwb/dlwb/metrics/lexis"
)

// longestName bounds the name in a line that is a name and a number alone.
const longestName = 64

// IsTabbed reports whether a line is an indented name and a number, far apart: "  loss     0.5".
func IsTabbed(line string) bool {
	got := grid.Cells(line)
	if name, number, ok := strings.Cut(line, " .."); ok { // "  loss ..... 0.5"
		got = []string{name, strings.TrimLeft(number, ". ")}
	}
	return line[0] == ' ' && len(got) == 2 && grid.IsRow(got)
}

// IsPair reports whether a line is an indented name and a text: "  runtime = 0:01:02".
func IsPair(line string) bool {
	i := lexis.SkipBlanks(line, 0)
	end := i
	for end < len(line) && lexis.IsKeyByte(line[end]) {
		end++
	}
	sep, _ := lexis.Separator(line, end)
	return i > 0 && end > i && (sep == ':' || sep == '=')
}

// IsAlone reports whether a line is a name and a number and no more: "  loss : 0.4".
func IsAlone(line string) bool {
	i := lexis.SkipBlanks(line, 0)
	if i >= len(line) || !lexis.IsLetter(line[i]) {
		return false
	}
	end := i
	for end < len(line) && line[end] != ':' && line[end] != '=' {
		if !lexis.IsKeyByte(line[end]) && line[end] != ' ' && line[end] != '\t' && line[end] != '(' && line[end] != ')' {
			return false
		}
		end++
	}
	sep, at := lexis.Separator(line, end)
	if sep == 0 || sep == ' ' || end-i > longestName {
		return false
	}
	f, ok := lexis.Number(line, at)
	if ok && f.Next < len(line) && line[f.Next] == '%' {
		f.Next++
	}
	behind, _, _ := strings.Cut(line[f.Next:], "<-") // "0.5	<---- what this is"
	behind = strings.Trim(behind, " \t,;")
	return ok && (IsMark(behind) || lexis.IsMeasure(strings.TrimSuffix(behind, ".")))
}

// BestAlone is where in a line that says no more than "Best rmse score: 0.5" the name of what is best begins and
// ends, and where its number is; end is 0 of any other line.
func BestAlone(line string, i int) (start, end, number int) {
	const best = "best "
	i = lexis.SkipBlanks(line, i)
	if len(line)-i <= len(best) || !strings.EqualFold(line[i:i+len(best)], best) || !IsAlone(line[i:]) {
		return 0, 0, 0
	}
	start = i + len(best)
	end = start + max(strings.IndexAny(line[start:], ":="), 0)
	_, number = lexis.Separator(line, end)
	return start, start + len(strings.TrimRight(line[start:end], " \t")), number
}

// Nameless is where a number stands that nothing names, behind a colon or a dash at i: "Step 10: 0.5", "epoch 3 - 0.5";
// 0 where there is neither.
func Nameless(line string, i int) int {
	if i < len(line) && line[i] == ']' {
		i++
	}
	for _, sign := range [...]string{": ", " - ", " : "} {
		if strings.HasPrefix(line[i:], sign) {
			return lexis.SkipBlanks(line, i+len(sign))
		}
	}
	return 0
}

// BehindBullet is a line without the sign before it that makes an item of a list of a name and a
// number alone: "  - loss: 0.5", " + global correct: 71.2%". Any other line stays.
func BehindBullet(line string) string {
	i := lexis.SkipBlanks(line, 0)
	if i+2 >= len(line) || line[i+1] != ' ' || strings.IndexByte("-*+", line[i]) < 0 || !IsAlone(line[i+1:]) {
		return line
	}
	return line[i+1:]
}

// mostTitle bounds the words of a title.
const mostTitle = 3

// Title is what a line of a few words calls the lines below it, "  inner loop:"; "" of any other.
func Title(line string) string {
	title, ok := strings.CutSuffix(strings.Trim(line, " \t"), ":")
	if !ok || len(title) > longest || strings.Count(title, " ") >= mostTitle {
		return ""
	}
	for i := range len(title) {
		if !lexis.IsLetter(title[i]) && title[i] != ' ' && title[i] != '-' {
			return ""
		}
	}
	return strings.ToLower(title)
}

// fewestOfSentence are the words of a sentence behind its first.
const fewestOfSentence = 2

// IsSentence reports whether a text is words that count and measure nothing: no name has a sign or a
// number with a fraction behind it.
func IsSentence(text string) bool {
	n := 0
	for word := range strings.FieldsSeq(text) {
		if f, ok := lexis.Number(word, 0); ok && f.Real || units[strings.ToLower(word)] {
			return false
		}
		n++
	}
	return n >= fewestOfSentence && !strings.ContainsAny(text, ":=|[#")
}

// IsNew reports whether a line tells alone of what something is from here on: "New LR: 0.001". It belongs to where the
// run is, as no setting does.
func IsNew(line string) bool {
	const fresh = "new "
	i := lexis.SkipBlanks(line, 0)
	return len(line)-i > len(fresh) && strings.EqualFold(line[i:i+len(fresh)], fresh) && IsAlone(line[i:])
}

// IsListed reports whether a line is a name and a list and no more: "IoU: ['93.9', '91.5']". Between names and numbers
// alone it tells of the same place as they do.
func IsListed(line string) bool {
	name, list, ok := strings.Cut(strings.TrimSpace(line), ": [")
	return ok && lexis.IsWord(strings.ReplaceAll(strings.ReplaceAll(name, " ", ""), "_", "")) && strings.IndexByte(list, ']') == len(list)-1
}
