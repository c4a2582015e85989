package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A test that writes a program and executes it fails now and then with "text file busy",
// where another test forks meanwhile. testprogram.Write knows of that.
func TestTestsWriteTheirProgramsAsSuch(t *testing.T) {
	root, seen := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			for _, arg := range call.Args {
				if !strings.HasPrefix(beginsWith(arg), "#!") {
					continue
				}
				plain, _ := call.Fun.(*ast.Ident)
				switch callee := name(call); {
				case callee == "testprogram.Write":
					seen++
				case callee == "os.WriteFile", strings.HasSuffix(callee, ".write"), plain != nil && plain.Name == "write":
					t.Errorf("%s: a program is written; use testprogram.Write", files.Position(call.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 20 {
		t.Errorf("%d programs seen, %v", seen, err)
	}
}

// beginsWith is the text with which an expression's value begins, as it stands in the
// code: that of a sum is its first part's, that of a conversion or a format its argument's.
func beginsWith(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strings.TrimLeft(e.Value, "`\"")
	case *ast.BinaryExpr:
		return beginsWith(e.X)
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			return beginsWith(e.Args[0])
		}
	}
	return ""
}
