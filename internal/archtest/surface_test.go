package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The screen draws values and sends wishes through an interface of its own; which
// driver is behind that, cli decides. With an import of the driver a screen could
// be neither tested nor drawn without a store, locks and nodes.
func TestTheScreenDoesNotImportTheDriver(t *testing.T) {
	for rel, path := range programFiles(t) {
		if strings.HasPrefix(filepath.ToSlash(rel), "ui/") && slices.Contains(oursOf(t, path), "workbench") {
			t.Errorf("%s imports the driver; take the value from a package below workbench", rel)
		}
	}
}

// mostOfTheDriver bounds what the driver offers by itself: opening, carrying out,
// watching, stopping and removing, and one door to each of its rooms. It had 80
// names when it also answered for the past, the market, plans and tunnels, and
// nobody could tell which of them change anything. Lower it when one goes.
const mostOfTheDriver = 39

func TestTheDriverOffersLittleAndSaysWhatEachDoes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "workbench", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv == nil || !f.Name.IsExported() || methodOf(f) != "Workbench" {
				continue
			}
			names = append(names, f.Name.Name)
			if !strings.HasPrefix(f.Doc.Text(), f.Name.Name+" ") {
				t.Errorf("%s: Workbench.%s has no comment that begins with its name", filepath.Base(path), f.Name.Name)
			}
		}
	}
	slices.Sort(names)
	if len(names) != mostOfTheDriver {
		t.Errorf("Workbench has %d exported methods, this test says %d: %v", len(names), mostOfTheDriver, names)
	}
}

// methodOf is the name of the type that a method is of.
func methodOf(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if p, is := of.(*ast.StarExpr); is {
		of = p.X
	}
	name, _ := of.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name
}
