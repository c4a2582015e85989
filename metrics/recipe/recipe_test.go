package recipe

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestARecipeThatIsWrongSaysWhatAndTheOthersAreRead(t *testing.T) {
	folder := fstest.MapFS{
		"r/good.yaml":  {Data: []byte("name: good\nlines:\n  - {match: 'a', skip: line}\n")},
		"r/regex.yaml": {Data: []byte("name: x\nlines:\n  - {match: '(', skip: line}\n")},
		"r/key.yaml":   {Data: []byte("name: x\nlinez: []\n")},
		"r/both.yaml":  {Data: []byte("name: x\nlines:\n  - {match: 'a', skip: line, read: b}\n")},
		"r/word.yaml":  {Data: []byte("name: x\nwords: {great: a}\n")},
		"r/large.yaml": {Data: []byte("name: x\nsample: " + strings.Repeat("a", mostBytes))},
	}
	got, err := Load(folder, "r")
	if len(got) != 1 || got[0].Name != "good" {
		t.Errorf("read %v", got)
	}
	for _, want := range []string{"r/regex.yaml: lines[0]: match:", "r/key.yaml", "linez", "r/both.yaml: lines[0]: it wants one of read, skip and block", `"great" is none of`, "r/large.yaml: it has more than"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if none, err := Load(folder, "nowhere"); err != nil || len(none) != 0 {
		t.Errorf("of a folder that is not there: %v, %v", none, err)
	}
}

func TestALiteralStandsInEveryMatch(t *testing.T) {
	for expression, want := range map[string]string{
		`^tick (\d+)\s+kimg`: "tick ", `(?i)best iteration`: "", `^(\d+): .* rate`: " rate", `a|b`: "", `(abc)+x`: "abc",
	} {
		if got := Literal(expression); got != want {
			t.Errorf("of %s: %q", expression, got)
		}
	}
}
