// Package scale writes numbers short, and says at which places an axis has some.
package scale

import (
	"math"
	"strconv"
	"strings"
)

// Short writes v in about four digits: 1.234, 0.0123, 12.3k, 1.2e-5. A value
// that is not a number is N/A.
func Short(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "N/A"
	case math.IsInf(v, 0):
		return strings.Replace(strconv.FormatFloat(v, 'f', -1, 64), "Inf", "inf", 1)
	case a == 0:
		return "0"
	case a < 1e-3 || a >= 1e15:
		return exponent(v, 3)
	case a >= 1e4:
		return suffixed(v, 3)
	}
	return trim(strconv.FormatFloat(v, 'f', max(0, 3-int(math.Floor(math.Log10(a)))), 64))
}

// exponent writes 1.2e-5 where Go would write 1.200e-05.
func exponent(v float64, digits int) string {
	m, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
	sign := ""
	if e[0] == '-' {
		sign = "-"
	}
	return trim(m) + "e" + sign + strings.TrimLeft(e[1:], "0")
}

// suffixed writes thousands as k, M, G, T.
func suffixed(v float64, digits int) string {
	unit := 0
	for math.Abs(v) >= 999.5 && unit < 4 {
		v /= 1000
		unit++
	}
	if v == 0 {
		return "0"
	}
	decimals := max(0, digits-1-int(math.Floor(math.Log10(math.Abs(v)))))
	return trim(strconv.FormatFloat(v, 'f', decimals, 64)) + []string{"", "k", "M", "G", "T"}[unit]
}

// trim removes zeros after the point that say nothing.
func trim(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
