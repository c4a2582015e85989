// Package units is how dlwb writes sizes, durations and money: one way for
// each, on every screen, in every command, event and page.
//
//   - What is stored or sent (files, transfers, free room on a disk) is counted
//     in powers of 1000: 812 B, 1.4 MB, 31 GB.
//   - What is made in powers of 1024 (memory of machines and GPUs, volumes that
//     a cloud makes by the GiB) is counted so: 24 GiB.
//   - A duration has at most two units and none that is empty: 0.3s, 42s,
//     1m12s, 3h05m, 24h, 3d04h. It is cut, not rounded, as a clock is: two
//     places that show the same moment show the same text.
//   - Money is in US dollars with cents; below ten cents with up to four
//     digits, because prices per hour are that small: $1.66, $0.0056.
//
// A test in internal/archtest finds who writes them in another way.
package units

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

var (
	decimal = scale{1000, []string{"B", "kB", "MB", "GB", "TB", "PB"}}
	binary  = scale{1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}}
)

// Bytes writes a size of what is stored or sent, in powers of 1000.
func Bytes(n int64) string { return decimal.text(float64(n)) }

// Binary writes a size of what is made in powers of 1024: memory, and volumes.
func Binary(n int64) string { return binary.text(float64(n)) }

// BytesOf writes a part and its whole, in one unit: 29/62 GB.
func BytesOf(part, whole int64) string { return decimal.part(float64(part), float64(whole)) }

// BinaryOf writes a part and its whole, in one unit: 69/80 GiB.
func BinaryOf(part, whole int64) string { return binary.part(float64(part), float64(whole)) }

// scale is a row of units, each so many times the one before.
type scale struct {
	step  float64
	names []string
}

// text writes an amount in the largest unit of which it has one.
func (s scale) text(v float64) string {
	n, unit := s.unit(v)
	return digits(v/n) + " " + unit
}

func (s scale) part(v, whole float64) string {
	n, unit := s.unit(whole / 4) // a part of 1 TiB is told in GiB
	return digits(v/n) + "/" + digits(whole/n) + " " + unit
}

// unit is the largest unit of which an amount has one, with its size.
func (s scale) unit(v float64) (float64, string) {
	n, i := 1.0, 0
	for v/n >= s.step-0.5 && i < len(s.names)-1 {
		n, i = n*s.step, i+1
	}
	return n, s.names[i]
}

// digits writes a number below ten with a decimal, unless it has none.
func digits(v float64) string {
	if v >= 9.95 || v == float64(int64(v)) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

const day = 24 * time.Hour

// Duration writes a duration: at most two units, none that is empty. Days are
// counted from two of them on.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d == 0:
		return "0s"
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64), ".0") + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return two(d, time.Minute, "m", time.Second, "s")
	case d < 2*day:
		return two(d, time.Hour, "h", time.Minute, "m")
	}
	return two(d, day, "d", time.Hour, "h")
}

// two writes a duration in two units, the second only where it has some.
func two(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d%s", d/large, largeName)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf("%02d%s", rest, smallName)
	}
	return text
}

// Seconds writes a duration that is given in seconds, as JSON has them.
func Seconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// Clock writes a duration that is running: whole seconds, so that it does not
// flicker.
func Clock(d time.Duration) string { return Duration(max(d, 0).Truncate(time.Second)) }

// Coarse writes a duration in its largest unit alone: 42s, 3m, 5h, 2d.
func Coarse(d time.Duration) string {
	for _, u := range []time.Duration{2 * day, time.Hour, time.Minute, time.Second} {
		if d >= u {
			return Duration(d.Truncate(min(u, day)))
		}
	}
	return "0s"
}

// Ago says how long before a moment another one lies: just now, 3m ago, never.
func Ago(now, t time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return "just now"
	default:
		return Coarse(d) + " ago"
	}
}

// Minute is a moment of the local time, to the minute.
func Minute(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// Count is a number of things: "1 node", "3 nodes".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// USD writes an amount of US dollars.
func USD(v float64) string {
	switch {
	case v < 0:
		return "-" + USD(-v)
	case v >= 10_000:
		return "$" + thousands(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return "$" + Cents(v)
}

// Cents is an amount of US dollars without the sign, for columns whose head
// has it.
func Cents(v float64) string {
	if v <= 0 || v >= 0.1 {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	text := strconv.FormatFloat(v, 'f', 4, 64)
	for strings.HasSuffix(text, "0") && len(text) > len("0.00") {
		text = strings.TrimSuffix(text, "0")
	}
	return text
}

// PerHour writes a price per hour.
func PerHour(v float64) string { return USD(v) + "/h" }

// thousands groups the digits of a whole number: 12 400.
func thousands(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}
