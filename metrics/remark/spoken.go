package remark

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
)

// Spoken finds the name of a value before the words that say over how many it is, without
// brackets: "Avg reward over the last 100 episodes", "Loss per 100 training steps". unit is where the last of these words begins,
// and from where the message does; start equals end where nothing is said of that.
func Spoken(line string, from, unit int) (start, end int) {
	end = unit
	said, counted, of := false, false, ""
	for end > from {
		before := strings.TrimRight(line[from:end], " ")
		word := before[strings.LastIndexByte(before, ' ')+1:]
		at := from + len(before) - len(word)
		switch {
		case !said && IsCount(word):
			counted = true
		case !said && !counted && of == "" && lexis.IsWord(word) && !spans[strings.ToLower(word)]: // "per 100 evaluation steps"
			of = word
		case counted && (spans[strings.ToLower(word)] || word == "the") || said && word == "in": // "in the last 5 episodes"
			said = said || word != "the"
		case !said || word == "":
			return 0, 0
		default:
			end = from + len(before)
			start = strings.LastIndexAny(line[from:end], ":,;|]") + 1 + from
			return lexis.SkipBlanks(line, start), end
		}
		end = at
	}
	return 0, 0
}

// Titles reports whether a word that begins at i is the first of a title in brackets with which a
// line begins: "[Val Classifier] Epoch: 1", "[Val 3]: loss 0.5".
func Titles(line string, i int) bool {
	if i == 0 || line[i-1] != '[' || strings.TrimLeft(line[:i], " [") != "" {
		return false
	}
	words, end := Bracket(line, i-1)
	return end > i && (!strings.ContainsAny(words, "0123456789") || strings.HasPrefix(line[end:], ":"))
}

// IsUnit reports whether a word is for what an average is over: episodes, steps.
func IsUnit(word string) bool { return len(word) > 2 && units[strings.ToLower(word)] }

// IsAllowed reports whether a name is of what a game allows, "Valid moves", and not of validation.
func IsAllowed(name string) bool {
	return len(name) > len("valid ") && strings.EqualFold(name[:len("valid ")], "valid ")
}

// Names reports whether a name that begins at i is the last of several without blanks, with
// numbers behind them: "loss1,loss2 0.5 0.6". Which of those is whose is left open.
func Names(line string, i int) bool {
	if i < 2 || line[i-1] != ',' || !lexis.IsLetter(line[i]) {
		return false
	}
	before := i - 1
	for before > 0 && lexis.IsKeyByte(line[before-1]) {
		before--
	}
	return lexis.IsLetter(line[before]) // but "epoch 50,loss 0.106"
}

// Top is where a name begins that seems to begin at i, when it is of the first few: "top 5 acc".
func Top(line string, i int) int {
	if i < 3 || line[i-1] != ' ' || !lexis.IsDigit(line[i-2]) {
		return i
	}
	at := strings.TrimRight(strings.TrimRight(line[:i], " "), "0123456789")
	if n := len(at) - len("top "); n >= 0 && strings.EqualFold(at[n:], "top ") && (n == 0 || !lexis.IsKeyByte(at[n-1])) {
		return n
	}
	return i
}

// Numbered is the word of a line that has nothing but it and its number in brackets: "run [50]:".
func Numbered(line string) string {
	word, number, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ":"), " [")
	if !ok || !lexis.IsWord(strings.ToLower(word)) || !strings.HasSuffix(number, "]") || !lexis.AllDigits(number[:len(number)-1]) {
		return ""
	}
	return word
}
