package lexis

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics/decimal"
)

// Numbers of few digits are read without strconv: each is to be what strconv says.
func TestNumbersAreReadToTheLastBit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := strings.Fields("0 -0 +1 5. .5 0.1 0.30000000000000004 9007199254740993 1e22 1e23 1e-22 -2.5e-3 1E+5 123456789012345678 0.000000000000001 1e400 1e-400 3.1415926535897932e0")
	for range 200_000 {
		text := strconv.FormatFloat(random.NormFloat64()*float64(random.IntN(1e6)), "efg"[random.IntN(3)], random.IntN(12), 64)
		texts = append(texts, text)
	}
	fast := 0
	for _, text := range texts {
		want, _ := strconv.ParseFloat(text, 64)
		f, ok := Number(text, 0)
		if !ok || f.Next != len(text) || f.Value != want {
			t.Errorf("%q is read as %v up to %d of %d", text, f.Value, f.Next, len(text))
		}
		if _, ok := decimal.Parse(text); ok {
			fast++
		}
	}
	if fast < len(texts)/2 {
		t.Errorf("only %d of %d are read fast", fast, len(texts))
	}
}
