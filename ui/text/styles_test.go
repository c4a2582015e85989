package text

import (
	"math"
	"strconv"
	"testing"
)

// TestEveryInkCanBeReadOnItsGround holds the contrasts of WCAG 2.2, 1.4.3: 4.5
// for text, and 3 for what only accompanies it.
func TestEveryInkCanBeReadOnItsGround(t *testing.T) {
	for name, p := range map[string]palette{"dark": darkPalette, "light": lightPalette} {
		least := map[string]float64{p.faint: 3}
		for _, ink := range append([]string{p.dim, p.accent, p.good, p.warn, p.bad}, p.series...) {
			least[ink] = 4.5
		}
		for ink, want := range least {
			if got := contrast(t, ink, p.ground); got < want {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", name, ink, p.ground, got, want)
			}
		}
		for on, off := range map[string]string{p.badgeOn: p.badgeOff, p.alarmOn: p.alarmOff} {
			if got := contrast(t, on, off); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", name, on, off, got)
			}
		}
	}
}

// contrast is the ratio of two colours' relative luminances, by WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
