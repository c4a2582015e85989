package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ownPrints are the functions that may print with fmt what is no literal: each
// makes its lines itself, or prints no text of others.
var ownPrints = []string{
	"report", "askUntil", "guarded", "line", "one", "receiptText", "farewell", "stopCommand", "tellWhy", "exitHelp", "commandEntry", "flagRows",
}

// Whoever prints with fmt can forget that a name may hold a line's end; with
// sanitize.Fprintf nobody can. And nothing but the door names what is behind it.
func TestWhatOthersWroteIsPrintedAsWords(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if name := printsBy(n); name != "" && !slices.Contains(ownPrints, f.Name.Name) {
						t.Errorf("%s: %s prints by fmt.%s what is no literal; sanitize.Fprintf makes words of it", path, f.Name.Name, name)
					}
				case *ast.SelectorExpr:
					behind := n.Sel.Name == "stdout" || n.Sel.Name == "stderr" || n.Sel.Name == "Stdout" && isIdent(n.X, "os") || n.Sel.Name == "Stderr" && isIdent(n.X, "os")
					if behind && path != "door.go" && f.Name.Name != "Main" {
						t.Errorf("%s: %s goes round the door by %s", path, f.Name.Name, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// printsBy is the function of fmt by which a call prints something else than
// literals.
func printsBy(c *ast.CallExpr) string {
	f, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || !isIdent(f.X, "fmt") || !slices.Contains([]string{"Fprint", "Fprintf", "Fprintln", "Print", "Printf", "Println"}, f.Sel.Name) {
		return ""
	}
	for _, arg := range c.Args[min(1, len(c.Args)):] {
		if _, literal := arg.(*ast.BasicLit); !literal {
			return f.Sel.Name
		}
	}
	return ""
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}
