package engine

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSplitFollowsTheRulesOfAShell(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"  \t\n ", nil},
		{"train.py --epochs 10", []string{"train.py", "--epochs", "10"}},
		{"a 'b c' \"d e\" f\\ g", []string{"a", "b c", "d e", "f g"}},
		{`a''b "" ''`, []string{"ab", "", ""}},
		{`"say \"hi\" \n"`, []string{`say "hi" \n`}},
		{"'$HOME `x` | & ;'", []string{"$HOME `x` | & ;"}},
		{`"cost \$5" \$x`, []string{"cost $5", "$x"}},
		{"a \\\n b", []string{"a", "b"}},
		{"a\\\nb", []string{"ab"}},
		{`--re 'x$' y$ "z$" $`, []string{"--re", "x$", "y$", "z$", "$"}},
		{"model.layers=[1,2] data/*.txt x~y", []string{"model.layers=[1,2]", "data/*.txt", "x~y"}},
		{"größe=1 →", []string{"größe=1", "→"}},
		{"a–b – '–c' \"“d”\" don’t", []string{"a–b", "–", "–c", "“d”", "don’t"}},
	} {
		got, err := Split(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Split(%q) = %q, %v; want %q", c.in, got, err, c.want)
		}
	}
}

func TestSplitSaysAtWhichColumnItGaveUp(t *testing.T) {
	for _, c := range []struct {
		in     string
		column int
		why    string
	}{
		{"train.py 'abc", 10, "never closed"},
		{`größe "abc\"`, 7, "never closed"},
		{`abc \`, 5, "nothing follows"},
		{"a && b", 3, "& needs a shell"},
		{"a | tee x", 3, "| needs a shell"},
		{"a > x", 3, "> needs a shell"},
		{"--data $HOME/x", 8, "$ is not expanded"},
		{`--data "${HOME}"`, 9, "$ is not expanded"},
		{"a `date`", 3, "` is not expanded"},
		{"a ~/data", 3, "~ is not expanded"},
		{"a\x00b", 2, "NUL"},
		{"'a\x00b'", 3, "NUL"},
		{"\\\x00", 2, "NUL"},
		{`python src\train.py`, 11, "write / in a path"},
		{`train.py --keep layer\d+`, 22, "single quotes"},
		{"train.py —epochs 3", 10, "a dash (U+2014)"},
		{"train.py –lr 3", 10, "a dash (U+2013)"},
		{"train.py --lr −0.1", 15, "a dash (U+2212)"},
		{"train.py --name “my run”", 17, "typographic (U+201C)"},
		{"train.py --name=‘my run’", 17, "typographic (U+2018)"},
	} {
		_, err := Split(c.in)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Column != c.column || !strings.Contains(syntax.Why, c.why) {
			t.Errorf("Split(%q): %v, want column %d with %q", c.in, err, c.column, c.why)
		}
	}
}

func TestJoinedWordsMeanTheSameToARealShell(t *testing.T) {
	words := []string{"printf", "%s\\n", "", "a b", "it's", `"q"`, "$HOME", "`id`", "a\nb", "*", "~", "-x=1", "!", "größe", "\\"}
	out, err := exec.Command("sh", "-c", Join(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(words[2:], "\n") + "\n"; string(out) != want {
		t.Errorf("the shell printed %q, want %q", out, want)
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a b", `'a' "b" \c`, "a'", `"`, "$x", "a\\\nb", "~", "\x00", "größe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		words, err := Split(command)
		var syntax *SyntaxError
		if errors.As(err, &syntax) {
			if syntax.Column < 1 || syntax.Column > utf8.RuneCountInString(command) {
				t.Fatalf("column %d of %q", syntax.Column, command)
			}
			return
		}
		again, err := Split(Join(words))
		if err != nil || !slices.Equal(again, words) {
			t.Fatalf("%q: words %q came back as %q, %v", command, words, again, err)
		}
	})
}
