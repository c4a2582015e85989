package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/remote/engine"
)

// homes are where providers and engines may be called by their names: their own
// folders, the tables, where the command line makes the providers known, and
// what only tests and pictures use.
var homes = []string{"cloud/*", "remote/engine", "cli/app.go", "internal"}

// otherSense are names that mean something else where they stand.
var otherSense = map[string]string{
	"cli/root.go plain":                   "the option --plain",
	"profiles/fields.go local":            "a word that people write for results.to",
	"workbench/tunnel/sshconfig.go hosts": "the file of host keys beside an ssh configuration",
}

// What a provider or an engine is like is asked of its traits. Code that asks for
// a name is wrong as soon as there is another one of the same kind.
func TestNoProviderOrEngineIsAskedForByName(t *testing.T) {
	names := slices.Concat(providers.Names(), engine.Names())
	used := map[string]bool{}
	for rel, path := range programFiles(t) {
		if isHome(rel) {
			continue
		}
		for _, lit := range literals(t, path) {
			place := rel + " " + lit.value
			if !slices.Contains(names, lit.value) {
				continue
			}
			if used[place] = true; otherSense[place] == "" {
				t.Errorf("%s:%d: the name %q: ask the traits in cloud/about or remote/engine instead", rel, lit.line, lit.value)
			}
		}
	}
	for place := range otherSense {
		if !used[place] {
			t.Errorf("%s stands there no more: remove it from this test", place)
		}
	}
}

// isHome reports whether names may stand in a file. Of cloud, these are the
// folders below it.
func isHome(rel string) bool {
	return slices.ContainsFunc(homes, func(home string) bool {
		parts := strings.Split(rel, "/")
		n := strings.Count(home, "/") + 1
		is, err := filepath.Match(home, strings.Join(parts[:min(n, len(parts))], "/"))
		return err == nil && is && (len(parts) > n || strings.HasSuffix(home, ".go"))
	})
}

// programFiles are the Go files of the program, by their paths in the
// repository.
func programFiles(t *testing.T) map[string]string {
	t.Helper()
	root, files := filepath.Join("..", ".."), map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if rel, err := filepath.Rel(root, path); err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files[filepath.ToSlash(rel)] = path
		}
		return nil
	})
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files were found: %v", len(files), err)
	}
	return files
}

type literal struct {
	value string
	line  int
}

// literals are the texts in a file, imports and tags of struct fields aside.
func literals(t *testing.T, path string) []literal {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var all []literal
	ast.Inspect(file, func(n ast.Node) bool {
		if _, is := n.(*ast.ImportSpec); is {
			return false
		}
		if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
			if value, err := strconv.Unquote(lit.Value); err == nil {
				all = append(all, literal{value, set.Position(lit.Pos()).Line})
			}
		}
		return true
	})
	return all
}
