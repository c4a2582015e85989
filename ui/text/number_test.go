package text

import (
	"math"
	"testing"
)

func TestNumbersOfAnySizeAreShortAndRight(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.500", 1234.56: "1234.6", 12_400: "12 400", -999_999_999_999: "-999 999 999 999",
		1e12: "1e+12", 1e30: "1e+30", -math.MaxFloat64: "-1.798e+308", 5e-324: "4.94e-324", math.Inf(-1): "-Inf"} {
		if got := Number(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}
