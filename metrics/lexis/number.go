// Package lexis finds the words and the numbers of a line: where they begin and end,
// what a number is worth as it is written, and whether a unit makes an amount of it.
package lexis

import (
	"math"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/metrics/decimal"
)

// Bounds of the text of one number: of a whole one, and of one with a fraction, of which "%f" writes
// all digits (math.MaxFloat64 has 309 before the point).
const (
	longestNumber = 40
	longestReal   = 330
)

// Figure is a number as it stands in a line.
type Figure struct {
	Value float64
	Start int  // where it begins
	Next  int  // where it ends
	Real  bool // written as a measured value: with a fraction, an exponent, or nan or inf
}

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

// Number reads a decimal number, nan or inf at i. thousands may be separated
// by commas.
func Number(line string, i int) (Figure, bool) {
	start := i
	if i < len(line) && (line[i] == '-' || line[i] == '+') {
		i++
	}
	if f, ok := notFinite(line, start, i); ok {
		return f, true
	}
	whole := Digits(line, i)
	end := Thousands(line, i, whole)
	real := false
	if end < len(line) && line[end] == '.' {
		if fraction := Digits(line, end+1); fraction > end+1 || end > i {
			real, end, whole = fraction > end+1, fraction, max(whole, fraction)
		}
	}
	comma := false
	if end == whole && end > i && !real {
		if d := decimals(line, i, end); d > end {
			comma, real, end, whole = true, true, d, d
		}
	}
	if whole == i || end-start > longestNumber && !real || end-start > longestReal {
		return Figure{}, false
	}
	other := byte(0) // the letter of an exponent that is no e
	if e := exponent(line, end, real); e > end {
		if line[end]|0x20 != 'e' {
			other = line[end]
		}
		real, end = true, e
	}
	text := line[start:end]
	if comma {
		text = strings.Replace(text, ",", ".", 1)
	} else if strings.IndexByte(text, ',') >= 0 {
		text = strings.ReplaceAll(text, ",", "")
	}
	if other != 0 {
		text = strings.Replace(text, string(other), "e", 1)
	}
	if v, ok := decimal.Parse(text); ok {
		return Figure{v, start, end, real}, true
	}
	v, err := strconv.ParseFloat(text, 64)
	return Figure{v, start, end, real}, err == nil || math.IsInf(v, 0)
}

// Thousandfold is by how much a letter right behind a number at i multiplies
// it, and where it ends: 1.5k, 2M. It is 1 where none does.
func Thousandfold(line string, i int) (float64, int) {
	if i >= len(line) || i+1 < len(line) && IsKeyByte(line[i+1]) && line[i+1] != '/' {
		return 1, i
	}
	switch line[i] {
	case 'k', 'K':
		return 1e3, i + 1
	case 'M':
		return 1e6, i + 1
	}
	return 1, i
}

// notFinite reads nan, inf or infinity at i; the sign, if any, is at start.
func notFinite(line string, start, i int) (Figure, bool) {
	if i >= len(line) || line[i]|0x20 != 'n' && line[i]|0x20 != 'i' { // almost always
		return Figure{}, false
	}
	for _, word := range [...]string{"nan", "infinity", "inf"} {
		end := i + len(word)
		if end > len(line) || !strings.EqualFold(line[i:end], word) {
			continue
		}
		switch { // C prints a negative nan, which is no other nan
		case word == "nan":
			return Figure{math.NaN(), start, end, true}, true
		case line[start] == '-':
			return Figure{math.Inf(-1), start, end, true}, true
		}
		return Figure{math.Inf(1), start, end, true}, true
	}
	return Figure{}, false
}

// Digits is where the digits end that begin at i.
func Digits(line string, i int) int {
	for i < len(line) && IsDigit(line[i]) {
		i++
	}
	return i
}

// Thousands is where a number ends that begins at i with digits up to end, when
// groups of three follow: 1,234,567, but neither 0,345 nor 1234,567.
func Thousands(line string, i, end int) int {
	if end == i || end-i > 3 || line[i] == '0' {
		return end
	}
	for end < len(line) && line[end] == ',' && Digits(line, end+1) == end+4 {
		end += 4
	}
	return end
}

// decimals is where a number ends that begins at i and has a comma at end for its
// point: 0,345 and 2,0417, but neither 1,234, which is of thousands, nor 1,20,300.
func decimals(line string, i, end int) int {
	if end >= len(line) || line[end] != ',' {
		return end
	}
	stop := Digits(line, end+1)
	n, zero := stop-end-1, end == i+1 && line[i] == '0'
	if n < 2 || n == 3 && !zero || stop < len(line) && (line[stop] == ',' || line[stop] == '.' || IsLetter(line[stop]) && line[stop]|0x20 != 'e') {
		return end
	}
	return stop
}

// exponent is where the exponent ends that begins at i: 1.5e-3, 8.48D+02 of Fortran, and 0.5f0 of
// Julia, which writes so each number of single precision, behind a fraction alone.
func exponent(line string, i int, real bool) int {
	if i >= len(line) {
		return i
	}
	switch line[i] {
	case 'e', 'E':
	case 'd', 'D':
		if i+1 < len(line) && line[i+1] != '-' && line[i+1] != '+' {
			return i
		}
	case 'f':
		if !real {
			return i
		}
	default:
		return i
	}
	j := i + 1
	if j < len(line) && (line[j] == '-' || line[j] == '+') {
		j++
	}
	if k := Digits(line, j); k > j {
		return k
	}
	return i
}

// IsIndex reports whether a number is written as those are that tell things apart,
// with zeros before it: 000, 07.
func (f Figure) IsIndex(line string) bool {
	return !f.Real && f.Next > f.Start+1 && line[f.Start] == '0' && Digits(line, f.Start) == f.Next
}

// StandsAlone reports whether a number that ends at i is a value by itself: not
// the beginning of a version, a time, an address, a range, a count of so many,
// or another word.
func StandsAlone(line string, i int) bool {
	if i < len(line) && line[i] == '%' {
		i++
	}
	if i >= len(line) {
		return true
	}
	after := byte(' ')
	if i+1 < len(line) {
		after = line[i+1]
	}
	switch line[i] {
	case ' ', '\t', ';', '|', ')', ']', '}', '"', '\'', '>':
		return true
	case '/': // 23.33%/80.00%
		return i > 0 && line[i-1] == '%' && IsDigit(after)
	case '[': // "0.96[Parallel(n_jobs=1)]: …" is another line
		return BehindGlued(line, i) > i
	case '*': // the mark of a best value
		return after == ' '
	case ':': // "0.9012: 0s": what is left of the longer row that was here
		n := Digits(line, min(i+2, len(line)))
		return after == ' ' && n > i+2 && (strings.HasPrefix(line[n:], "s ") || line[n:] == "s")
	case '=', '#': // "=== acc: 0.3 ===", or the sum that it is
		return Sum(line, i) > i || strings.Trim(line[i:], string(line[i])) == "" && len(line) > i+1
	case '+': // 0.5+0.01 of a cross-validation
		return IsDigit(after)
	case ',': // in 0,345 it stands for the point
		return !IsDigit(after)
	case '.': // the end of a sentence
		return after == ' ' || after == '.' && !(i+2 < len(line) && (IsDigit(line[i+2]) || line[i+2] == '-')) // not -20.8..-0.04
	case '(': // 0.5(0.6): the average is behind it
		return isMean(line, i)
	case 0xe2: // an arrow, a bullet, an ellipsis
		return true
	case 0xc2: // 0.5±0.1, 0.5·
		return after == 0xb1 || after == 0xb7
	}
	end := i // 26.26dB
	for end < len(line) && IsLetter(line[end]) {
		end++
	}
	return end > i && IsMeasure(line[i:end])
}

// isMean reports whether brackets at i hold nothing but a number with a fraction, right behind another.
func isMean(line string, i int) bool {
	f, ok := Number(line, i+1)
	if !ok || !f.Real || f.Next >= len(line) || line[f.Next] != ')' {
		return false
	}
	start := i
	for start > 0 && IsDigit(line[start-1]) {
		start--
	}
	return start > 0 && start < i && line[start-1] == '.'
}

// units, in lower case, make a number an amount of memory or of time, which is no metric of
// the training.
var units = map[string]bool{
	"b": true, "kb": true, "mb": true, "gb": true, "tb": true, "kib": true, "mib": true, "gib": true, "tib": true,
	"bytes": true, "k": true, "m": true, "g": true, "ns": true, "us": true, "ms": true, "s": true, "sec": true, "secs": true,
	"second": true, "seconds": true, "min": true, "mins": true, "minute": true, "minutes": true, "h": true, "hr": true,
	"hour": true, "hours": true, "day": true, "days": true, "of": true,
}

// LeastBehind reports whether the word behind a number is no minute, but the name of
// the least value: "reward 12.5 min 3.0".
func LeastBehind(line string, i int) bool {
	at := SkipBlanks(line, i)
	if !strings.HasPrefix(line[at:], "min ") {
		return false
	}
	_, ok := Number(line, SkipBlanks(line, at+4))
	return ok
}

// HasUnit reports whether the word after a number that ends at i makes it an
// amount, or part of a count ("3 of 10").
func HasUnit(line string, i int) bool {
	start := SkipBlanks(line, i)
	if start == i {
		return false
	}
	end := start
	for end < len(line) && IsLetter(line[end]) {
		end++
	}
	return end > start && end-start <= len("minutes") && units[strings.ToLower(line[start:end])] && (end == len(line) || !IsKeyByte(line[end]) && line[end] != ':' && line[end] != '=')
}

// IsUnit reports whether a word, in any case, makes an amount of the number before it.
func IsUnit(word string) bool { return len(word) <= len("minutes") && units[strings.ToLower(word)] }

// measured are units in which scores are told: a number before one is no amount of time
// or memory.
var measured = map[string]bool{"db": true, "px": true, "mm": true, "cm": true, "µm": true, "nats": true, "bits": true, "hz": true, "khz": true, "deg": true, "rad": true, "pts": true}

// IsMeasure reports whether a word, in any case, is a unit in which scores are told.
func IsMeasure(word string) bool { return len(word) <= len("nats") && measured[strings.ToLower(word)] }
