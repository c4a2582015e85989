package scale

import (
	"math"
	"strings"
	"testing"
)

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 1.23456: "1.235", 12.3456: "12.35", 123.456: "123.5", 1234.56: "1235", 9999.9: "10000", 12345: "12.3k",
		999_999: "1M", 1.5e6: "1.5M", 2e9: "2G", 0.0123456: "0.01235", 0.001: "0.001", 0.0003: "3e-4", 1.234e-5: "1.23e-5",
		-0.5: "-0.5", -12345: "-12.3k", 1e300: "1e300", 1e-300: "1e-300",
	} {
		if got := Short(v); got != want {
			t.Errorf("Short(%v) is %q, want %q", v, got, want)
		}
	}
	if Short(math.NaN()) != "N/A" || Short(math.Inf(-1)) != "-inf" {
		t.Errorf("%q, %q", Short(math.NaN()), Short(math.Inf(-1)))
	}
}

func TestTicksAreRoundAndTellThemselvesApart(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   string
	}{
		{0, 10, 5, "0 2 4 6 8 10"},
		{1.2, 5.9, 5, "2 3 4 5"},
		{0, 1, 4, "0.0 0.5 1.0"},
		{0, 50_000, 5, "0 10k 20k 30k 40k 50k"},
		{0, 3e-4, 3, "0 1e-4 2e-4 3e-4"},
		{0.99991, 0.99996, 3, "0.99992 0.99994 0.99996"},
		{-1, 1, 4, "-1.0 -0.5 0 0.5 1.0"},
		{1_000_000, 1_000_100, 2, "1M 1.00005M 1.0001M"},
	} {
		var got []string
		seen := map[string]bool{}
		for _, k := range Ticks(c.lo, c.hi, c.n) {
			got = append(got, k.Text)
			if seen[k.Text] {
				t.Errorf("%v to %v: %q twice", c.lo, c.hi, k.Text)
			}
			seen[k.Text] = true
		}
		if s := strings.Join(got, " "); strings.Replace(s, "0.0 ", "0 ", 1) != strings.Replace(c.want, "0.0 ", "0 ", 1) {
			t.Errorf("%v to %v: %s, want %s", c.lo, c.hi, s, c.want)
		}
	}
}

func TestSecondsAreReadAtWholeMinutes(t *testing.T) {
	for hi, want := range map[float64]float64{10: 2, 200: 30, 4000: 600, 90_000: 21600, 1e9: 2e8} {
		got := ClockTicks(0, hi, 5)
		if len(got) < 2 || got[1].At-got[0].At != want {
			t.Errorf("to %v: %v, want steps of %v", hi, got, want)
		}
	}
}

func TestEpochsAreToldWhole(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{1, 3, "1 2 3"}, {0, 3.5, "0 1 2 3"}, {1, 10, "2 4 6 8 10"}, {0.5, 1.2, "0.6 0.8 1.0 1.2"}, {1, 2, "1 2"},
	} {
		got := ""
		for _, k := range WholeTicks(c.lo, c.hi, 6) {
			got += " " + k.Text
		}
		if got != " "+c.want {
			t.Errorf("%v to %v:%s, want %s", c.lo, c.hi, got, c.want)
		}
	}
}
