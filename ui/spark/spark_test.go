package spark

import (
	"math"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

func TestAnyValuesFillTheirRow(t *testing.T) {
	value := rapid.OneOf(rapid.Float64(), rapid.Float64Range(-10, 10), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324}))
	rapid.Check(t, func(t *rapid.T) {
		values, w := rapid.SliceOfN(value, 0, 70).Draw(t, "values"), rapid.IntRange(1, 60).Draw(t, "w")
		for _, g := range []Glyphs{Unicode, ASCII} {
			for _, row := range []string{g.Sparkline(values, w, value.Draw(t, "limit")), g.Bar(value.Draw(t, "fraction"), w)} {
				if got := ansi.StringWidth(row); got != w {
					t.Fatalf("a row of %d cells, want %d: %q", got, w, row)
				}
			}
		}
	})
}

func TestBarsAndSparklines(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ got, want string }{
		{Bar(0, 4), "░░░░"}, {Bar(1, 4), "████"}, {Bar(0.5, 4), "██░░"}, {Bar(0.001, 4), "▏░░░"}, {Bar(7, 4), "████"}, {Bar(-1, 4), "░░░░"},
		{Bar(nan, 6), "N/A   "}, {Bar(nan, 2), "N/"}, {Bar(0.5, 0), ""}, {ASCII.Bar(0.5, 4), "##--"},
		{Sparkline([]float64{0, 4, 8}, 5, 8), "  ▁▅█"}, {Sparkline([]float64{1, nan, 2}, 3, 0), "▅ █"}, {Sparkline(nil, 3, 1), "   "},
		{Sparkline([]float64{9, 1, 2}, 2, 2), "▅█"}, {Sparkline([]float64{0, 0}, 2, 0), "▁▁"}, {ASCII.Sparkline([]float64{0, 8}, 2, 8), "_@"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
	used, total, none := 3.0, 4.0, 0.0
	if Share(&used, &total) != 0.75 || !math.IsNaN(Share(nil, &total)) || !math.IsNaN(Share(&used, nil)) || !math.IsNaN(Share(&used, &none)) {
		t.Error("Share is wrong")
	}
}
