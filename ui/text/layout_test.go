package text

import (
	"slices"
	"testing"
)

func TestOnlyHowLongTextsDifferIsKept(t *testing.T) {
	for _, c := range []struct {
		texts, want []string
		w           int
	}{
		{[]string{"/data/a/one.pt", "-", "/data/a/two.pt"}, []string{"…one.pt", "-", "…two.pt"}, 10},
		{[]string{"/data/a", "/data/b"}, []string{"/data/a", "/data/b"}, 10},
		{[]string{"the same long text", "-"}, []string{"the same long text", "-"}, 5},
		{[]string{"größe-äxxxxx", "größe-öxxxxx"}, []string{"…äxxxxx", "…öxxxxx"}, 8},
		{nil, nil, 5},
	} {
		if got := Differing(c.texts, c.w); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.texts, got, c.want)
		}
	}
}
