package nearword

import (
	"slices"
	"testing"
)

func TestTheWordThatWasMeantIsFound(t *testing.T) {
	names := []string{"count", "port", "max_price", "instance", "torchrun"}
	for word, want := range map[string]string{"cuont": "count", "Max-Price": "max_price", "instnace": "instance", "torchrnu": "torchrun",
		"spot": "", "": "", "colossalai": ""} {
		if got := Nearest(word, names); got != want {
			t.Errorf("%q is near %q, want %q", word, got, want)
		}
	}
}

func TestSeveralWordsComeInTheOrderOfTheirDistance(t *testing.T) {
	types := []string{"p5.48xlarge", "g5.2xlarge", "g5.xlarge", "g6.xlarge", "g5.xlarge"}
	if got := Several("g5.xlarg", types, 3); !slices.Equal(got, []string{"g5.xlarge", "g5.2xlarge", "g6.xlarge"}) {
		t.Error(got)
	}
	if got := Several("nothing-like-it", types, 3); len(got) != 0 {
		t.Error(got)
	}
}

func TestEditsAreLettersAddedDroppedChangedOrSwapped(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"g5.xlarge", "g5.xlarge", 0}, {"kitten", "sitting", 3}, {"g5.xlrage", "g5.xlarge", 1}} {
		if got := edits(c.a, c.b); got != c.want {
			t.Errorf("%q to %q: %d edits, want %d", c.a, c.b, got, c.want)
		}
	}
}
