package event

import (
	"slices"
	"testing"
)

func TestTheReferenceListsWhatJSONHas(t *testing.T) {
	type inner struct {
		Deep int `json:"deep"`
	}
	type told struct {
		inner
		Name  string `json:"name"`
		Left  string `json:"-"`
		Plain bool
		own   *inner
	}
	got := Fields(told{own: nil})
	want := [][2]string{{"deep", "number"}, {"name", "text"}, {"Plain", "true or false"}}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
