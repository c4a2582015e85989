package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// count writes a whole number, from five digits on in groups of three: 12 400.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	if n > -10000 && n < 10000 {
		return s
	}
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	if neg {
		return "-" + s
	}
	return s
}

// number writes a value of a series with four digits that matter.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(fmt.Sprintf("%+v", v), "+")
	case a >= 10000:
		return count(int64(math.Round(v)))
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a == 0:
		return "0"
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// plain writes a float without a fraction it does not have: 3, 3.5.
func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return count(int64(n)) + " " + noun + "es"
	}
	return count(int64(n)) + " " + noun + "s"
}

// hour writes the time of day.
func hour(t time.Time) string { return t.Format("15:04:05") }
