package lexis

import "strings"

// What stands between a name and its value, and behind them.

// wrappers are the last words of what libraries print around a number: tensor(0.5),
// np.float64(0.5), tf.Tensor(0.5, shape=…).
var wrappers = map[string]bool{"tensor": true, "array": true, "devicearray": true, "eagertensor": true, "parameter": true, "scalar": true, "float": true,
	"float16": true, "float32": true, "float64": true, "bfloat16": true, "double": true, "int32": true, "int64": true}

// NameEnd is where a name ends whose last word ends at i: behind a unit or a
// tag, as in "time (ms)" and "train loss <loss>".
func NameEnd(line string, i int) int {
	at := i
	if at < len(line) && line[at] == ' ' {
		at++
	}
	if at >= len(line) || line[at] != '(' && line[at] != '<' {
		if i+1 < len(line) && line[i] == '>' && line[i+1] == '=' && strings.LastIndexByte(line[:i], '<') >= 0 { // but "Collecting numpy>=1.17"
			return i + 1
		}
		return i
	}
	end := at + 1
	for end < len(line) && (IsLetter(line[end]) || line[end] == '/' || line[end] == '%') && end-at < 12 {
		end++
	}
	if end+1 < len(line) && (line[end] == ')' || line[end] == '>') && end > at+1 && (line[end+1] == ':' || line[end+1] == '=') {
		return end + 1
	}
	return i
}

// Separator looks at what stands between a key and its value: ':', '=' or ' ';
// 0 for none. at is where the value would begin.
func Separator(line string, i int) (sep byte, at int) {
	if i < len(line) && (line[i] == '"' || line[i] == '\'') {
		if i++; strings.HasPrefix(line[i:], ", ") { // ('loss', 0.5)
			return ',', i + 2
		}
	}
	blanks := i
	i = SkipBlanks(line, i)
	if dots := len(line[i:]) - len(strings.TrimLeft(line[i:], ".")); dots > 1 { // "loss ......: 0.5"
		if i = SkipBlanks(line, i+dots); i < len(line) && (IsDigit(line[i]) || line[i] == '-') {
			return ':', i
		}
	}
	if inBrackets(line, i) { // Gen. (-0.53)
		return ' ', i + 1
	}
	if strings.HasPrefix(line[i:], "↓ ") || strings.HasPrefix(line[i:], "↑ ") { // which way is better
		return ':', SkipBlanks(line, i+len("↓"))
	}
	if i < len(line) && (line[i] == ':' || line[i] == '=') {
		sep = line[i]
		i++
		if i > blanks+1 && strings.HasPrefix(line[i:], ": ") && sep == ':' { // "loss :: 0.5"
			return sep, SkipBlanks(line, i+1)
		}
		if i < len(line) && (line[i] == sep || line[i] == '/') { // "::", "==", "://"
			return 0, i
		}
		if i < len(line) && (sep == '=' && line[i] == '>' || sep == ':' && line[i] == '=') { // "loss => 0.5", "loss := 0.5"
			i++
		}
		i = SkipBlanks(line, i)
		if i < len(line) && (line[i] == '"' || line[i] == '\'') {
			i++
		}
		return sep, i
	}
	if i == blanks && i+1 < len(line) && line[i] == ';' && (IsDigit(line[i+1]) || line[i+1] == '-') { // epoch;1;loss;0.5
		return ';', i + 1
	}
	if i > 0 && i+1 < len(line) && line[i-1:i+1] == "->" && IsDigit(line[i+1]) { // loss->0.5
		return '>', i + 1
	}
	if i > blanks && (strings.HasPrefix(line[i:], "-> ") || strings.HasPrefix(line[i:], "→ ")) { // Loss -> 0.5
		return '>', SkipBlanks(line, i+len(line[i:])-len(strings.TrimLeft(line[i:], "->→")))
	}
	if i > blanks && strings.HasPrefix(line[i:], "- [") && isBoxed(line, i+2) { // "Training Loss - [1.23]"
		return '-', i + 2
	}
	if i > blanks && strings.HasPrefix(line[i:], "- ") { // "LOSS - 3.1, ACC - 0.7"
		if f, ok := Number(line, i+2); ok && f.Real && (f.Next == len(line) || line[f.Next] == ',' || line[f.Next] == ';') {
			return '-', i + 2
		}
	}
	if i > blanks {
		if strings.HasPrefix(line[i:], "is ") || strings.HasPrefix(line[i:], "of ") { // "test mse is 0.0075"
			return ' ', SkipBlanks(line, i+3)
		}
		if strings.HasPrefix(line[i:], "is: ") { // "Train accuracy is: 0.9"
			return ':', SkipBlanks(line, i+4)
		}
		return ' ', i
	}
	return 0, i
}

// isBoxed reports whether a square bracket that opens at i holds a number and no more.
func isBoxed(line string, i int) bool {
	f, ok := Number(line, SkipBlanks(line, i+1))
	return ok && f.Next < len(line) && line[f.Next] == ']'
}

// inBrackets reports whether brackets at i have a number with a fraction and nothing else, which
// is the value of the name before them: none follows.
func inBrackets(line string, i int) bool {
	if i+3 >= len(line) || line[i] != '(' || IsLetter(line[i+1]) {
		return false
	}
	f, ok := Number(line, i+1)
	if !ok || !f.Real || f.Next >= len(line) || line[f.Next] != ')' {
		return false
	}
	behind := strings.TrimLeft(line[f.Next+1:], " ")
	return behind == "" || strings.IndexByte("|,;-", behind[0]) >= 0
}

// Unwrapped is where the number begins that a library printed in its own words at i; i
// where it did not.
func Unwrapped(text string, i int) int {
	end := i
	for end < len(text) && end-i < 24 && IsKeyByte(text[end]) {
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

// IsUnitOf reports whether a word is the unit of the number before it, and so not
// the name of the number behind it: in "Speed: 1204 samples/sec  24213 tokens/sec" the
// first has a name, and those behind it stand as it does.
func IsUnitOf(line string, start, end int) bool {
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
	for from > 0 && IsKeyByte(word[from-1]) {
		from--
	}
	return from > 0 && from < len(word) && IsUnitOf(line, from, len(word))
}

func isRateWord(word string) bool {
	return strings.HasSuffix(word, "/s") || strings.HasSuffix(word, "/sec") || strings.HasSuffix(word, "/second")
}

// IsRateUnit reports whether a unit per time follows: "10356.65 samples/sec".
func IsRateUnit(line string, i int) bool {
	start := SkipBlanks(line, i)
	if start == i {
		return false
	}
	end := start
	for end < len(line) && IsKeyByte(line[end]) {
		end++
	}
	return isRateWord(line[start:end])
}

// Continues reports whether a gap between two words leaves them one phrase.
func Continues(gap string) bool {
	return gap == " " || gap == " / " || gap == "'s " || gap == ". " || gap == " <" || gap == "'"
}

// IsLabel reports whether what follows a word makes it a label of what stands behind.
func IsLabel(rest string) bool {
	for _, sign := range [...]string{" - ", " on '", " → ", " -> ", " => "} {
		if strings.HasPrefix(rest, sign) {
			return true
		}
	}
	return false
}

// fewestColumns are the numbers behind a name that make a row of a table of it.
const fewestColumns = 4

// RowOf reports whether the number that ends at i is the first of a row of them, far apart: "RMSE
// (testset)    1.4608  1.3722  1.4709  1.4346" has a column for each of what a header names.
func RowOf(line string, i int) bool {
	for n := 1; ; n++ {
		if n == fewestColumns {
			return true
		}
		if !strings.HasPrefix(line[i:], "  ") {
			return false
		}
		f, ok := Number(line, SkipBlanks(line, i))
		if !ok || !f.Real {
			return false
		}
		i = f.Next
	}
}

// IsRate reports whether a name is that of how many of something there are per time.
func IsRate(base string) bool {
	for _, end := range [...]string{"/s", "/sec", "/second", "_per_s", "/s/device", "/sec/thread"} {
		if len(base) > len(end) && strings.HasSuffix(base, end) {
			return true
		}
	}
	return strings.HasPrefix(base, "ms/") || strings.HasPrefix(base, "throughput") || strings.Contains(base, "_per_sec")
}
