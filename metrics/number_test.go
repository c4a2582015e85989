package metrics

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
		f, ok := number(text, 0)
		if !ok || f.next != len(text) || f.value != want {
			t.Errorf("%q is read as %v up to %d of %d", text, f.value, f.next, len(text))
		}
		if _, ok := decimal.Parse(text); ok {
			fast++
		}
	}
	if fast < len(texts)/2 {
		t.Errorf("only %d of %d are read fast", fast, len(texts))
	}
}

func TestSkeletonsLeaveOutNumbersAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"step 9 loss 0.5", "step 10 loss 12.25", true},
		{"2024-05-01 12:30:45,123 INFO step 5", "2024-05-12 02:00:00,999 INFO step 123456789", true},
		{"12", "3456789012345", true},
		{"loss", "lose", false},
		{"acc@1 5", "acc@5 5", false},
		{"top-1: 5", "top-5: 6", false},
		{"top-123: 5", "top-500: 6", true},
		{"layer_2 0.1", "layer_3 0.1", false},
		{"abcdefgh1", "abcdefgh", false},
		{"12345678abcdefghijkl 1", "1abcdefghijkl 99", true},
		{"a 1 b", "a 1 b ", false},
		{"a 1 2", "a 12", false},
		{"1/2", "3/44", true},
	} {
		var f forms
		if same := f.skeleton(c.a) == f.skeleton(c.b); same != c.same {
			t.Errorf("%q and %q have the same skeleton: %v", c.a, c.b, same)
		}
	}
}

func TestSkeletonsNoteWhereNumbersBegin(t *testing.T) {
	var f forms
	f.skeleton("acc@1 12 abcdefgh 7 1234567890 top-5 x1")
	want := []uint16{6, 18, 20}
	if f.n != len(want) {
		t.Fatalf("%d numbers: %v", f.n, f.runs[:f.n])
	}
	for i, at := range want {
		if f.runs[i] != at {
			t.Errorf("number %d begins at %d instead of %d", i, f.runs[i], at)
		}
	}
}
