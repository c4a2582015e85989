package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// span writes a duration as a person says it: 0.3 s, 42 s, 1 m 12 s, 3 h 05 m.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d m %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d m", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(d.Hours())/24, int(d.Hours())%24)
}

// clockSpan writes a running duration with a fixed shape, so that nothing
// beside it moves: 0:42, 12:07, 3:05:12.
func clockSpan(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	s := int(d.Seconds())
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// size writes bytes with three digits.
func size(b float64) string {
	units := []string{"B", "KB", "MB", "GB", "TB", "PB"}
	i := 0
	for b >= 999.5 && i < len(units)-1 {
		b, i = b/1024, i+1
	}
	if i == 0 || b >= 99.5 {
		return fmt.Sprintf("%.0f %s", b, units[i])
	}
	return fmt.Sprintf("%.1f %s", b, units[i])
}

// dollars writes money; small sums keep the digits that say they are not zero.
func dollars(d float64) string {
	if d > 0 && d < 0.01 {
		return fmt.Sprintf("$%.4f", d)
	}
	if d >= 10000 {
		return "$" + count(int64(d))
	}
	return fmt.Sprintf("$%.2f", d)
}

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

// ago says how long back a moment lies, in one unit.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	switch {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// hour writes the time of day.
func hour(t time.Time) string { return t.Format("15:04:05") }
