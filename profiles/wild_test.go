package profiles

import "testing"

// What is proposed for a path with wildcards has none.
func TestThePlaceOfAWildcardIsProposedWithoutIt(t *testing.T) {
	for text, want := range map[string]string{"outputs/*.pt": "outputs/", "**/z": "./", "*": "./", "a/b*/c/*.pt": "a/", "a/b/[ab]/c": "a/b/"} {
		if got := insidePath(text).nearest; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
