package secretfile

import (
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The quick way of trying a form says what the plain one says.
func TestFormsMatchWhatTheyMean(t *testing.T) {
	var words []string
	for _, r := range rules {
		for word := range strings.SplitSeq(strings.TrimSuffix(r.form, "/"), "/") {
			words = append(words, strings.NewReplacer("*", "xy", "?", "z").Replace(word), strings.NewReplacer("*", "", "?", "").Replace(word))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(append(words, "a", "b.py")), 1, 5).Draw(t, "parts")
		file := strings.Join(parts, "/")
		for i, f := range forms() {
			if got, want := f.matches("/"+file), plainly(rules[i], parts); got != want {
				t.Errorf("%q matches %q: %v, want %v", rules[i].form, file, got, want)
			}
		}
	})
}

func plainly(r rule, parts []string) bool {
	form, dir := strings.CutSuffix(r.form, "/")
	n := strings.Count(form, "/") + 1
	is := func(name string) bool { ok, _ := path.Match(form, name); return ok }
	if !dir {
		return len(parts) >= n && is(strings.Join(parts[len(parts)-n:], "/"))
	}
	for i := 0; i+n < len(parts); i++ {
		if is(strings.Join(parts[i:i+n], "/")) {
			return true
		}
	}
	return false
}
