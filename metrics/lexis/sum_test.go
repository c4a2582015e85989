package lexis

import (
	"strings"
	"testing"
)

func TestASumEndsWithItsTerms(t *testing.T) {
	for line, want := range map[string]string{
		"0.59=0.58 + 0.01]": "]", "0.69=0.68+ test loss:0.7": " test loss:0.7", "0.69=0.68+0.01": "",
		"0.5=0.6": "=0.6", "0.5=x": "=x", "0.5 = 1": " = 1", "0.5": "",
	} {
		i := strings.IndexAny(line+"=", "= ")
		if got := line[Sum(line, i):]; got != want {
			t.Errorf("%q goes on with %q, want %q", line, got, want)
		}
	}
}
