package metrics

import (
	"math"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/metrics/decimal"
)

// longestNumber bounds the text of one number.
const longestNumber = 40

// figure is a number as it stands in a line.
type figure struct {
	value float64
	start int  // where it begins
	next  int  // where it ends
	real  bool // written as a measured value: with a fraction, an exponent, or nan or inf
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// number reads a decimal number, nan or inf at i. Thousands may be separated
// by commas.
func number(line string, i int) (figure, bool) {
	start := i
	if i < len(line) && (line[i] == '-' || line[i] == '+') {
		i++
	}
	if f, ok := notFinite(line, start, i); ok {
		return f, true
	}
	whole := digits(line, i)
	end := thousands(line, i, whole)
	real := false
	if end < len(line) && line[end] == '.' {
		if fraction := digits(line, end+1); fraction > end+1 || end > i {
			real, end, whole = fraction > end+1, fraction, max(whole, fraction)
		}
	}
	comma := false
	if end == whole && end > i && !real {
		if d := decimals(line, i, end); d > end {
			comma, real, end, whole = true, true, d, d
		}
	}
	if whole == i || end-start > longestNumber {
		return figure{}, false
	}
	fortran := false
	if e := exponent(line, end); e > end {
		if line[end]|0x20 == 'd' {
			fortran = true
		}
		real, end = true, e
	}
	text := line[start:end]
	if comma {
		text = strings.Replace(text, ",", ".", 1)
	} else if strings.IndexByte(text, ',') >= 0 {
		text = strings.ReplaceAll(text, ",", "")
	}
	if fortran {
		text = strings.ReplaceAll(strings.ToLower(text), "d", "e")
	}
	if v, ok := decimal.Parse(text); ok {
		return figure{v, start, end, real}, true
	}
	v, err := strconv.ParseFloat(text, 64)
	return figure{v, start, end, real}, err == nil || math.IsInf(v, 0)
}

// thousandfold is by how much a letter right behind a number at i multiplies
// it, and where it ends: 1.5k, 2M. It is 1 where none does.
func thousandfold(line string, i int) (float64, int) {
	if i >= len(line) || i+1 < len(line) && isKeyByte(line[i+1]) && line[i+1] != '/' {
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
func notFinite(line string, start, i int) (figure, bool) {
	if i >= len(line) || line[i]|0x20 != 'n' && line[i]|0x20 != 'i' { // almost always
		return figure{}, false
	}
	for _, word := range [...]string{"nan", "infinity", "inf"} {
		end := i + len(word)
		if end > len(line) || !strings.EqualFold(line[i:end], word) {
			continue
		}
		switch { // C prints a negative nan, which is no other nan
		case word == "nan":
			return figure{math.NaN(), start, end, true}, true
		case line[start] == '-':
			return figure{math.Inf(-1), start, end, true}, true
		}
		return figure{math.Inf(1), start, end, true}, true
	}
	return figure{}, false
}

// digits is where the digits end that begin at i.
func digits(line string, i int) int {
	for i < len(line) && isDigit(line[i]) {
		i++
	}
	return i
}

// thousands is where a number ends that begins at i with digits up to end, when
// groups of three follow: 1,234,567, but neither 0,345 nor 1234,567.
func thousands(line string, i, end int) int {
	if end == i || end-i > 3 || line[i] == '0' {
		return end
	}
	for end < len(line) && line[end] == ',' && digits(line, end+1) == end+4 {
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
	stop := digits(line, end+1)
	n, zero := stop-end-1, end == i+1 && line[i] == '0'
	if n < 2 || n == 3 && !zero || stop < len(line) && (line[stop] == ',' || line[stop] == '.' || isLetter(line[stop]) && line[stop]|0x20 != 'e') {
		return end
	}
	return stop
}

func exponent(line string, i int) int {
	if i >= len(line) || line[i]|0x20 != 'e' && (line[i]|0x20 != 'd' || i+1 < len(line) && line[i+1] != '-' && line[i+1] != '+') { // 8.48D+02 of Fortran
		return i
	}
	j := i + 1
	if j < len(line) && (line[j] == '-' || line[j] == '+') {
		j++
	}
	if k := digits(line, j); k > j {
		return k
	}
	return i
}

// isIndex reports whether a number is written as those are that tell things apart,
// with zeros before it: 000, 07.
func (f figure) isIndex(line string) bool {
	return !f.real && f.next > f.start+1 && line[f.start] == '0' && digits(line, f.start) == f.next
}

// standsAlone reports whether a number that ends at i is a value by itself: not
// the beginning of a version, a time, an address, a range, a count of so many,
// or another word.
func standsAlone(line string, i int) bool {
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
	case '+': // 0.5+0.01 of a cross-validation
		return isDigit(after)
	case ',': // in 0,345 it stands for the point
		return !isDigit(after)
	case '.': // the end of a sentence
		return after == ' ' || after == '.'
	case 0xe2: // an arrow, a bullet, an ellipsis
		return true
	case 0xc2: // 0.5±0.1, 0.5·
		return after == 0xb1 || after == 0xb7
	}
	return false
}

// units make a number an amount of memory or of time, which is no metric of
// the training.
var units = map[string]bool{
	"b": true, "kb": true, "mb": true, "gb": true, "tb": true, "kib": true, "mib": true, "gib": true, "tib": true,
	"bytes": true, "k": true, "m": true, "g": true, "ns": true, "us": true, "ms": true, "s": true, "sec": true, "secs": true,
	"second": true, "seconds": true, "min": true, "mins": true, "minute": true, "minutes": true, "h": true, "hr": true,
	"hour": true, "hours": true, "day": true, "days": true, "of": true,
}

// leastBehind reports whether the word behind a number is no minute, but the name of
// the least value: "reward 12.5 min 3.0".
func leastBehind(line string, i int) bool {
	at := skipBlanks(line, i)
	if !strings.HasPrefix(line[at:], "min ") {
		return false
	}
	_, ok := number(line, skipBlanks(line, at+4))
	return ok
}

// hasUnit reports whether the word after a number that ends at i makes it an
// amount, or part of a count ("3 of 10").
func hasUnit(line string, i int) bool {
	start := skipBlanks(line, i)
	if start == i {
		return false
	}
	end := start
	for end < len(line) && isLetter(line[end]) {
		end++
	}
	return end > start && end-start <= len("minutes") && units[strings.ToLower(line[start:end])] && (end == len(line) || !isKeyByte(line[end]) && line[end] != ':' && line[end] != '=')
}
