package decimal

import (
	"math"
	"strconv"
	"strings"
)

// Coarse reports whether a value has two digits at most, as those have that come
// again by chance: an accuracy of 0.61.
func Coarse(v float64) bool {
	digits, _, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'e', -1, 64), "e")
	return len(digits) <= len("6.1")
}

// RoundsTo reports whether of two different values one is the other, rounded.
func RoundsTo(a, b float64) bool {
	if a == b || math.Abs(a-b) > 1e-3*math.Abs(a) {
		return false
	}
	for scale := 10.0; scale <= 1e8; scale *= 10 {
		if ra, rb := math.Round(a*scale)/scale, math.Round(b*scale)/scale; ra == b || rb == a {
			return true
		}
	}
	return false
}

// Rounds is RoundsTo for two values of one name and one place: they may be farther apart.
func Rounds(a, b float64) bool {
	for scale := 100.0; scale <= 1e8; scale *= 10 {
		if ra, rb := math.Round(a*scale)/scale, math.Round(b*scale)/scale; ra == b || rb == a {
			return true
		}
	}
	return false
}

// IsPercentOf reports whether a value is a share told again in percent, rounded: 71.2 and 0.7119.
func IsPercentOf(a, b float64) bool {
	return b > 0.01 && b <= 1 && (a == 100*b || RoundsTo(a, 100*b))
}

// ThirdDigit is what the last of three digits of a number is worth: bars show so many
// (tqdm's format_num), and what moves slowly stays the same for some frames.
func ThirdDigit(v float64) float64 { return math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-2) }
