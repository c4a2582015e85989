package units

import (
	"testing"
	"time"
)

func TestSizesAreCountedInThousandsAndMemoryInPowersOfTwo(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1: "1 B", 999: "999 B", 1000: "1 kB", 1_400_000: "1.4 MB", 1_360_000: "1.4 MB",
		48_000: "48 kB", 999_499: "999 kB", 999_600: "1.0 MB", 31_000_000_000: "31 GB", 2_000_000_000: "2 GB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 512 << 20: "512 MiB", 24 << 30: "24 GiB", 22888 << 20: "22 GiB", 3 << 29: "1.5 GiB", 1 << 40: "1 TiB"} {
		if got := Binary(n); got != want {
			t.Errorf("Binary(%d) is %q, want %q", n, got, want)
		}
	}
	if got := BinaryOf(71_000<<20, 80<<30) + ", " + BinaryOf(300<<20, 16<<30) + ", " + BytesOf(29e9, 62e9); got != "69/80 GiB, 0.3/16 GiB, 29/62 GB" {
		t.Errorf("parts of a whole are %q", got)
	}
}

func TestADurationHasAtMostTwoUnitsAndNoneThatIsEmpty(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 50 * time.Millisecond: "50ms", 310 * time.Millisecond: "0.3s", 3 * time.Second: "3s", 9990 * time.Millisecond: "9.9s",
		42 * time.Second: "42s", 59999 * time.Millisecond: "59s", 72 * time.Second: "1m12s", 30 * time.Minute: "30m", 90 * time.Minute: "1h30m",
		3*time.Hour + 5*time.Minute + 50*time.Second: "3h05m", 24 * time.Hour: "24h", 47*time.Hour + 59*time.Minute: "47h59m",
		48 * time.Hour: "2d", 76 * time.Hour: "3d04h", -72 * time.Second: "-1m12s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) is %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{42 * time.Second: "42s", 200 * time.Second: "3m", 5*time.Hour + 59*time.Minute: "5h", 50 * time.Hour: "2d"} {
		if got := Coarse(d); got != want {
			t.Errorf("Coarse(%d) is %q, want %q", d, got, want)
		}
	}
	if got := Clock(3700 * time.Millisecond); got != "3s" {
		t.Errorf("a running clock shows %q", got)
	}
}

func TestMoneyHasCentsAndBelowTenCentsTheDigitsThatMatter(t *testing.T) {
	for v, want := range map[float64]string{0: "$0.00", 1.664: "$1.66", 0.11: "$0.11", 0.03: "$0.03", 0.005: "$0.005", 0.0056: "$0.0056", 0.00001: "$0.00",
		12_400: "$12 400", 9999.994: "$9999.99", -2: "-$2.00"} {
		if got := USD(v); got != want {
			t.Errorf("USD(%v) is %q, want %q", v, got, want)
		}
	}
	if got := PerHour(32.7726); got != "$32.77/h" {
		t.Errorf("a price per hour is %q", got)
	}
	now := time.Now()
	if got := Ago(now, now.Add(-200*time.Second)); got != "3m ago" {
		t.Errorf("long ago is %q", got)
	}
}
