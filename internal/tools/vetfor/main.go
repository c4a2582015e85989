// Command vetfor vets packages for a system other than this one, as
// GOOS=system go vet does, but from the sources of all that they import: go vet
// compiles every dependency for that system first, which here takes minutes.
//
//	go run ./internal/tools/vetfor windows . ./cli
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: vetfor SYSTEM PACKAGES…")
		os.Exit(2)
	}
	found, err := vetFor(flag.Arg(0), flag.Args()[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "vetfor:", err)
		os.Exit(1)
	}
	for _, line := range found {
		fmt.Fprintln(os.Stderr, line)
	}
	if len(found) > 0 {
		os.Exit(1)
	}
}

// vetFor returns what does not compile for a system, or what vet says of it.
func vetFor(system string, patterns []string) ([]string, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Env:   append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		Tests: true,

		ParseFile: parse,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	// The main package that go test makes of a package's tests is no text of ours.
	loaded = slices.DeleteFunc(loaded, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") })
	var found []string
	for _, p := range loaded {
		for _, e := range p.Errors {
			found = append(found, e.Error())
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	graph, err := checker.Analyze(vet.Suite, loaded, nil)
	if err != nil {
		return nil, err
	}
	for _, act := range graph.Roots {
		if act.Err != nil {
			found = append(found, fmt.Sprintf("%s: %s: %v", act.Package.PkgPath, act.Analyzer, act.Err))
		}
		for _, d := range act.Diagnostics {
			found = append(found, fmt.Sprintf("%s: %s", act.Package.Fset.Position(d.Pos), d.Message))
		}
	}
	return found, nil
}

// made is in the paths of what was made from AWS's models. It is half of all that
// is read, the same for every system, and compiled for this one anyway: what its
// functions do is not looked at again.
const made = "/aws-sdk-go-v2/service/"

func parse(files *token.FileSet, name string, src []byte) (*ast.File, error) {
	f, err := parser.ParseFile(files, name, src, parser.AllErrors|parser.ParseComments)
	if err == nil && strings.Contains(filepath.ToSlash(name), made) {
		outline(f)
	}
	return f, err
}

// outline takes the bodies of functions from a file, and the names of imports
// that nothing else has used.
func outline(f *ast.File) {
	for _, d := range f.Decls {
		// These two may not be without one.
		if d, ok := d.(*ast.FuncDecl); ok && d.Type.TypeParams == nil && d.Name.Name != "init" {
			d.Body = nil
		}
	}
	used := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				used[x.Name] = true
			}
		}
		return true
	})
	for _, i := range f.Imports {
		from, _ := strconv.Unquote(i.Path.Value)
		if i.Name == nil && !used[packageOf(from)] || i.Name != nil && !used[i.Name.Name] {
			i.Name = ast.NewIdent("_")
		}
	}
}

// packageOf is the name of the package of a path, as these files' imports have it:
// smithy-go is smithy.
func packageOf(from string) string { return strings.TrimSuffix(path.Base(from), "-go") }
