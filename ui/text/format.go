package text

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/sanitize"
)

// Word makes text from elsewhere one plain line of known width.
func Word(s string) string { return sanitize.Word(s) }

// Seconds is a number of seconds as a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Count writes a whole number, from five digits on in groups of three: 12 400.
func Count(n int64) string {
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

// Number writes a value of a series with four digits that matter.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		return strings.TrimPrefix(fmt.Sprintf("%+v", v), "+")
	case a >= 1e12: // more digits than can be read, and at last than a whole number holds
		return strconv.FormatFloat(v, 'g', 4, 64)
	case a >= 10000:
		return Count(int64(math.Round(v)))
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a == 0:
		return "0"
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Plain writes a float without a fraction it does not have: 3, 3.5.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// Plural writes a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		return Count(int64(n)) + " " + noun + "es"
	}
	return Count(int64(n)) + " " + noun + "s"
}

// Hour writes the time of day.
func Hour(t time.Time) string { return t.Format("15:04:05") }

// Since is how long a person has been waiting.
func Since(now, t time.Time) string { return units.Clock(now.Sub(t)) }

// OrDash is a text, or a dash where it is not known.
func OrDash(known bool, text string) string {
	if !known {
		return "-"
	}
	return text
}

// HasAll reports whether each of a few words is in a text.
func HasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
