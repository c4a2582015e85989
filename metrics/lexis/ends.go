package lexis

import "strings"

// What counters and clocks look like.

// EndsCount reports whether a counter may end at i: as a value does, or with
// the colon of "step 20: loss …", or before the next bracket or counter.
func EndsCount(line string, i int) bool {
	if i >= len(line) {
		return true
	}
	switch line[i] {
	case ':':
		return i+1 == len(line) || line[i+1] == ' ' || line[i+1] == '\t' || IsLetter(line[i+1]) || endsIn(line, i+1) // "epoch 1/5:loss: 0.5", "accuracy epoch 3:0.6649"
	case '[', '.':
		return line[i] == '[' || strings.HasPrefix(line[i:], "..") || i+1 == len(line)
	case '/':
		return i+1 < len(line) && IsLetter(line[i+1])
	}
	return StandsAlone(line, i)
}

// endsIn reports whether a number with a fraction, which is no part of a clock, is all that stands from i on.
func endsIn(line string, i int) bool {
	f, ok := Number(line, i)
	return ok && f.Real && f.Next == len(line) && !(line[i] == '0' && IsDigit(line[i+1]))
}

// InBracket is behind a bracket at i and the letter or two that may say what is
// counted in it: "[E 1/5][B 50/200]".
func InBracket(line string, i int) int {
	i = SkipBlanks(line, i+1)
	end := i
	for end < len(line) && IsLetter(line[end]) {
		end++
	}
	if end-i > 2 || end == len(line) || end > i && line[end] != ' ' && line[end] != ':' {
		return i
	}
	if end > i {
		i = SkipBlanks(line, end+1)
	}
	return i
}

// IsTimestamp reports whether a number is a clock's: s, ms, µs or ns since 1970.
func IsTimestamp(v float64) bool {
	return v > 1e9 && v < 4e9 || v > 1e12 && v < 4e12 || v > 1e15 && v < 4e15 || v > 1e18 && v < 4e18
}
