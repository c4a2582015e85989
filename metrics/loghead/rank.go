package loghead

import (
	"strconv"
	"strings"
)

// isNameByte reports whether a byte may stand in a name.
func isNameByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '/' || c == '.' || c == '@' || c == '-'
}

// RankBehind reads the rank that a line ends with: "… [rank 1]", "…, rank=1",
// "… on rank 1", `…, "rank": 1}`. It is -1 where there is none: of "mean rank 1" and "lora rank: 16" it is a value.
func RankBehind(line string) int {
	end := len(line)
	for end > 0 && !isDigit(line[end-1]) {
		if end--; end < len(line)-3 || isLetter(line[end]) || line[end] == ' ' {
			return -1
		}
	}
	at := end
	for at > 0 && isDigit(line[at-1]) {
		at--
	}
	name := at
	for name > 0 && (line[name-1] == ' ' || line[name-1] == '=' || line[name-1] == ':' || line[name-1] == '"' || line[name-1] == '\'' || line[name-1] == '#') {
		name--
	}
	if name < len("rank") || line[name-1]|0x20 != 'k' || at == end || end-at > 5 {
		return -1
	}
	word := line[:name]
	if !strings.EqualFold(word[len(word)-4:], "rank") {
		return -1
	}
	before := word[:len(word)-4]
	for _, kind := range [...]string{"local_", "global_", "local ", "global ", "from ", "on "} {
		if n := len(before) - len(kind); n >= 0 && strings.EqualFold(before[n:], kind) {
			before = before[:n]
		}
	}
	before = strings.TrimRight(before, " ")
	if n := len(before); n > 0 && isNameByte(before[n-1]) && !isDigit(before[n-1]) {
		return -1
	}
	rank, _ := strconv.Atoi(line[at:end])
	return rank
}

// Glued is where in a line another rank begins whose label has the form of the
// line's own; 0 when none does. The line's label is what stands before rest.
// Behind a blank it may be a word of the message: then the same must follow.
func Glued(line, rest string) int {
	from := len(line) - len(rest)
	if from <= 0 || line[:from] == "" || !strings.HasSuffix(line, rest) {
		return 0
	}
	own := strings.TrimLeft(line[:from], " ")
	number := strings.IndexAny(own, "0123456789")
	if number < 2 { // a number alone is no name
		return 0
	}
	close := own[digits(own, number):]
	begins, _, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	for at := from; ; {
		next := strings.Index(line[at:], own[:number])
		if next < 0 {
			return 0
		}
		at += next
		end := digits(line, at+number)
		if end > at+number && close != "" && strings.HasPrefix(line[end:], close) &&
			(line[at-1] != ' ' && line[at-1] != '\t' || strings.HasPrefix(strings.TrimLeft(line[end+len(close):], " "), begins)) {
			return at
		}
		at = end
	}
}
