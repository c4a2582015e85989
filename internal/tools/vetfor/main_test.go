package main

import (
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

func TestWhatVetSaysOfAnotherSystemIsFound(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "") // -race is not for a system that is not this one
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.org/x\n\ngo 1.26\n")
	write("x.go", "package x\n")
	write("x_windows.go", "package x\n\nimport \"fmt\"\n\nfunc say() { fmt.Printf(\"%d\\n\", \"one\") }\n")
	write("x_darwin.go", "package x\n\nvar one int = \"1\"\n")
	write("x_windows_test.go", "package x\n\nimport \"testing\"\n\nfunc Test(t *testing.T) { t.Logf(\"%s\", 1) }\n")
	for system, want := range map[string][]string{
		"windows": {"x_windows.go:5:", "x_windows_test.go:5:"},
		"darwin":  {"x_darwin.go:3:"},
		"freebsd": nil,
	} {
		found, err := vetFor(system, []string{"."})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(found, "\n")
		for _, place := range want {
			if !strings.Contains(all, place) {
				t.Errorf("%s: nothing is said of %s in\n%s", system, place, all)
			}
		}
		if want == nil && all != "" {
			t.Errorf("%s: %s", system, all)
		}
	}
}

func TestAnOutlineSaysWhatThereIsAndNotWhatItDoes(t *testing.T) {
	const text = `package x

import (
	"errors"
	"io"
	other "sort"
	"strings"
)

type T struct{ b strings.Builder }

func init() { println() }

func (t *T) Write(p []byte) (int, error) { other.Ints(nil); return len(p), errors.New("full") }

func of[E any](e E) E { return e }

var _ io.Writer = &T{}
`
	want := strings.NewReplacer(`"errors"`, `_ "errors"`, `other "sort"`, `_ "sort"`,
		` { other.Ints(nil); return len(p), errors.New("full") }`, "").Replace(text)
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "x.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	outline(f)
	var got strings.Builder
	if err := format.Node(&got, files, f); err != nil || got.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got.String(), want)
	}
}
