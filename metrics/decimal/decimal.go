// Package decimal reads short decimal numbers faster than strconv does.
package decimal

// exact is where floating-point numbers stop counting.
const exact = 1 << 53

// tens are the powers of ten that a floating-point number holds exactly.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Parse reads a number of few digits, as most are: both its digits and the
// power of ten are exact, so that one operation rounds as it should (Clinger).
func Parse(text string) (v float64, ok bool) {
	i := 0
	if text[0] == '-' || text[0] == '+' {
		i++
	}
	whole, point := uint64(0), -1
	for ; i < len(text); i++ {
		if c := text[i]; c >= '0' && c <= '9' {
			whole = whole*10 + uint64(c-'0')
		} else if c == '.' && point < 0 {
			point = i
		} else {
			break
		}
	}
	power := 0
	if point >= 0 {
		power = point + 1 - i
	}
	if i < len(text) { // behind e
		n, up := 0, true
		if i++; i < len(text) && (text[i] == '-' || text[i] == '+') {
			up = text[i] == '+'
			i++
		}
		for ; i < len(text) && n < 1000; i++ {
			n = n*10 + int(text[i]-'0')
		}
		if !up {
			n = -n
		}
		power += n
	}
	if len(text) > 16 || whole > exact || power >= len(tens) || -power >= len(tens) {
		return 0, false
	}
	if v = float64(whole); power < 0 {
		v /= tens[-power]
	} else {
		v *= tens[power]
	}
	if text[0] == '-' {
		v = -v
	}
	return v, true
}
