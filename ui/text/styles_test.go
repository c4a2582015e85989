package text

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
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

// A terminal with 256 colours shows the nearest of them (tmux, screen, Terminal of macOS):
// what is red is red there, and no ink is lost in its ground.
func TestEveryInkIsWhatItIsOnATerminalOf256Colours(t *testing.T) {
	near := func(hex string) string {
		r, g, b, _ := ansi.Convert256(lipgloss.Color(hex)).RGBA()
		return fmt.Sprintf("#%02X%02X%02X", r>>8, g>>8, b>>8)
	}
	for name, p := range map[string]palette{"dark": darkPalette, "light": lightPalette} {
		for _, red := range []string{p.bad, p.alarmOff, p.series[5]} {
			r, g, b, _ := ansi.Convert256(lipgloss.Color(red)).RGBA()
			if r < g+g/3 || r < b+b/3 || r == 0 {
				t.Errorf("%s: %s is %s, which is no red", name, red, near(red))
			}
		}
		for _, ink := range append([]string{p.dim, p.accent, p.good, p.warn, p.bad}, p.series...) {
			if got := contrast(t, near(ink), p.ground); got < 4 {
				t.Errorf("%s: %s is %s, which has a contrast of %.2f", name, ink, near(ink), got)
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
