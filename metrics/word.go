package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// oddKey is where the colon stands that ends a name which has '=' or ':'
// inside, such as "recall@thr=0.5:" and "v_map_0.05:0.45:"; 0 when it is none.
func oddKey(line string, start, end int) int {
	if end >= len(line) || line[end] != '=' && line[end] != ':' || end+1 >= len(line) || !lexis.IsDigit(line[end+1]) {
		return 0
	}
	if u, _ := unitOf(line[start:end]); u != noUnit {
		return 0
	}
	i := end + 1
	for i < len(line) && lexis.IsKeyByte(line[i]) {
		i++
	}
	if i+1 < len(line) && line[i] == ':' && line[i+1] == ' ' && i-start <= longestName {
		return i
	}
	return 0
}

// nameEnd is where a name ends whose last word ends at i: behind a unit or a
// tag, as in "time (ms)" and "train loss <loss>".
func nameEnd(line string, i int) int {
	at := i
	if at < len(line) && line[at] == ' ' {
		at++
	}
	if at >= len(line) || line[at] != '(' && line[at] != '<' {
		if i < len(line) && line[i] == '>' && i+1 < len(line) && line[i+1] == '=' {
			return i + 1
		}
		return i
	}
	end := at + 1
	for end < len(line) && (lexis.IsLetter(line[end]) || line[end] == '/' || line[end] == '%') && end-at < 12 {
		end++
	}
	if end+1 < len(line) && (line[end] == ')' || line[end] == '>') && end > at+1 && (line[end+1] == ':' || line[end+1] == '=') {
		return end + 1
	}
	return i
}

// behindNote is where a name that ends at i goes on behind a remark in brackets,
// when a number follows: "f1-score (micro avg)  0.41", "avg. loss [51-100]: 74.8".
func (s *scanner) behindNote(line string, i int) int {
	if c, end := interval(line, i); end > i {
		s.found.counters = append(s.found.counters, c)
		return end
	}
	if !strings.HasPrefix(line[i:], " (") || i+3 >= len(line) || !lexis.IsLetter(line[i+2]) {
		return i
	}
	close := strings.IndexByte(line[i:min(len(line), i+24)], ')')
	if close < 0 || i+close+1 >= len(line) || line[i+close+1] != ' ' {
		return i
	}
	for _, c := range []byte(line[i+2 : i+close]) {
		if !lexis.IsLetter(c) && c != ' ' && c != '-' {
			return i
		}
	}
	if at := lexis.SkipBlanks(line, i+close+1); at < len(line) && lexis.IsDigit(line[at]) {
		return i + close + 1
	}
	return i
}

// interval reads the steps of which a value behind a name is told, " [51-100]: 74.8":
// it is of the last of them. end is i when there are none.
func interval(line string, i int) (last counter, end int) {
	if !strings.HasPrefix(line[i:], " [") {
		return last, i
	}
	dash := lexis.Digits(line, i+2)
	if dash == i+2 || dash >= len(line) || line[dash] != '-' {
		return last, i
	}
	from, _, _ := ofTotal(line, i+2)
	last, end, ok := ofTotal(line, dash+1)
	if !ok || last.n <= from.n || !strings.HasPrefix(line[end:], "]: ") || end+3 >= len(line) || !lexis.IsDigit(line[end+3]) && line[end+3] != '-' {
		return counter{}, i
	}
	last.unit, last.global = unitStep, true
	return last, end + 1
}

// separator looks at what stands between a key and its value: ':', '=' or ' ';
// 0 for none. at is where the value would begin.
func separator(line string, i int) (sep byte, at int) {
	if i < len(line) && (line[i] == '"' || line[i] == '\'') {
		i++
	}
	blanks := i
	i = lexis.SkipBlanks(line, i)
	if strings.HasPrefix(line[i:], "↓ ") || strings.HasPrefix(line[i:], "↑ ") { // which way is better
		return ':', lexis.SkipBlanks(line, i+len("↓"))
	}
	if i < len(line) && (line[i] == ':' || line[i] == '=') {
		sep = line[i]
		i++
		if i < len(line) && (line[i] == sep || line[i] == '/') { // "::", "==", "://"
			return 0, i
		}
		if sep == '=' && i < len(line) && line[i] == '>' { // loss => 0.5
			i++
		}
		i = lexis.SkipBlanks(line, i)
		if i < len(line) && (line[i] == '"' || line[i] == '\'') {
			i++
		}
		return sep, i
	}
	if i > blanks && (strings.HasPrefix(line[i:], "-> ") || strings.HasPrefix(line[i:], "→ ")) { // Loss -> 0.5
		return '>', lexis.SkipBlanks(line, i+len(line[i:])-len(strings.TrimLeft(line[i:], "->→")))
	}
	if i > blanks {
		if strings.HasPrefix(line[i:], "is ") { // "test mse is 0.0075"
			return ' ', i + 3
		}
		return ' ', i
	}
	return 0, i
}

// wrappers are the last words of what libraries print around a number: tensor(0.5),
// np.float64(0.5), tf.Tensor(0.5, shape=…).
var wrappers = set(`tensor array devicearray eagertensor parameter scalar float float16 float32 float64 bfloat16 double int32 int64`)

// unwrapped is where the number begins that a library printed in its own words at i; i
// where it did not.
func unwrapped(text string, i int) int {
	end := i
	for end < len(text) && end-i < 24 && lexis.IsKeyByte(text[end]) {
		end++
	}
	if end == i || end >= len(text) || text[end] != '(' {
		return i
	}
	word := strings.ToLower(text[i:end])
	if !wrappers[word[strings.LastIndexByte(word, '.')+1:]] {
		return i
	}
	return end + 1
}

// valueAt reads the number of a value at i, also one in a list (the first
// counts) or in "tensor(1.5, device=…)".
func (s *scanner) valueAt(i int) (v value, ok bool) {
	line := s.line
	for range 2 {
		if i >= len(line) || lexis.IsDigit(line[i]) || line[i] == '-' || line[i] == '.' {
			break
		}
		if line[i] == '[' {
			i++
			v.list = true
			continue
		}
		inside := unwrapped(line, i)
		if inside == i {
			break
		}
		i, v.list = inside, true
	}
	v.figure, ok = lexis.Number(line, i)
	if ok && v.list {
		after := byte(0)
		if v.Next < len(line) {
			after = line[v.Next]
		}
		switch after {
		case ',':
		case ']', ')':
			v.Next++
			if v.Next < len(line) && line[v.Next] == ')' {
				v.Next++
			}
		default:
			return v, false
		}
	}
	return v, ok
}

// ratio reads "9841/10000" of an accuracy as percent.
func ratio(line string, v value) (figure, bool) {
	if v.kind < weak || v.Real || v.Next >= len(line) || line[v.Next] != '/' || !strings.Contains(v.show, "acc") {
		return figure{}, false
	}
	total, ok := lexis.Number(line, v.Next+1)
	if !ok || total.Value <= 0 || v.figure.Value > total.Value || !lexis.StandsAlone(line, total.Next) {
		return figure{}, false
	}
	return figure{Value: 100 * v.figure.Value / total.Value, Start: -1, Next: total.Next, Real: true}, true
}

// isUnitOf reports whether a word is the unit of the number before it, and so not
// the name of the number behind it: in "Speed: 1204 samples/sec  24213 tokens/sec" the
// first has a name, and those behind it stand as it does.
func isUnitOf(line string, start, end int) bool {
	if !isRateWord(line[start:end]) || end < len(line) && (line[end] == ':' || line[end] == '=') {
		return false
	}
	number := strings.TrimRight(line[:start], " \t")
	before := strings.TrimRight(number, "0123456789.")
	if len(number) == start || len(before) == len(number) {
		return false
	}
	word := strings.TrimRight(before, " \t")
	if word == "" || word[len(word)-1] == ':' || word[len(word)-1] == '=' {
		return word != ""
	}
	from := len(word)
	for from > 0 && lexis.IsKeyByte(word[from-1]) {
		from--
	}
	return from > 0 && from < len(word) && isUnitOf(line, from, len(word))
}

func isRateWord(word string) bool {
	return strings.HasSuffix(word, "/s") || strings.HasSuffix(word, "/sec") || strings.HasSuffix(word, "/second")
}

// isRateUnit reports whether a unit per time follows: "10356.65 samples/sec".
func isRateUnit(line string, i int) bool {
	start := lexis.SkipBlanks(line, i)
	if start == i {
		return false
	}
	end := start
	for end < len(line) && lexis.IsKeyByte(line[end]) {
		end++
	}
	return isRateWord(line[start:end])
}

// continues reports whether a gap between two words leaves them one phrase.
func continues(gap string) bool {
	return gap == " " || gap == " / " || gap == "'s " || gap == ". " || gap == " <" || gap == "'"
}

// isLabel reports whether what follows a word makes it a label of what stands behind.
func isLabel(rest string) bool {
	for _, sign := range [...]string{" - ", " on '", " → ", " -> ", " => "} {
		if strings.HasPrefix(rest, sign) {
			return true
		}
	}
	return false
}

// ending are short words that a sentence ends with: "Done. Best loss: 0.1".
var ending = set(`done end ok yes no exit stop over`)

// shortened reports whether a word before a full stop may be cut short, so that
// the sentence goes on: "Val. Loss".
func shortened(word string) bool {
	return len(word) < 6 && !ending[strings.TrimSuffix(word, ".")] || splits[strings.TrimSuffix(word, ".")] != "" || averages[strings.TrimSuffix(word, ".")]
}
