package secretfile

import (
	"path"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The quick way through the rules says what the plain one says.
func TestTheFirstRuleThatMatchesCounts(t *testing.T) {
	var words []string
	for _, r := range rules {
		for word := range strings.SplitSeq(strings.TrimSuffix(r.form, "/"), "/") {
			words = append(words, strings.NewReplacer("*", "xy", "?", "z").Replace(word), strings.NewReplacer("*", "", "?", "").Replace(word))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(append(words, "a", "b.py")), 1, 5).Draw(t, "parts")
		file := strings.Join(parts, "/")
		want := slices.IndexFunc(rules, func(r rule) bool { return plainly(r, parts) })
		if want < 0 {
			want = len(rules)
		}
		if got := byRules().first("/" + file); got != want {
			t.Errorf("%q: the first rule that matches is %d, want %d", file, got, want)
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
