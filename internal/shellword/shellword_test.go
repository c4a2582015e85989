package shellword

import (
	"os/exec"
	"testing"
)

func TestAShellSplitsALineIntoTheSameWordsAgain(t *testing.T) {
	words := []string{"", "plain", "a b", "it's", `\n`, "$HOME", "`id`", "=ls", "~", "*", "a\nb", "é", "-n", "a=b", "'"}
	var want string
	for _, w := range words {
		want += w + "\x00"
		if got := output(t, `printf '%s' `+Quote(w)); got != w {
			t.Errorf("%q in quotes came back as %q", w, got)
		}
	}
	if got := output(t, `printf '%s\0' `+Join(words...)); got != want {
		t.Errorf("%q came back as %q", words, got)
	}
}

func TestWhatNeedsNoQuotesGetsNone(t *testing.T) {
	if got := Join("train.py", "--lr=1e-3", "a b", "=ls"); got != "train.py --lr=1e-3 'a b' '=ls'" {
		t.Error(got)
	}
}

func output(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
