package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A hundred expressions that are compiled before the program begins are most of
// what a short command takes. internal/pattern compiles them when they are
// needed, so this is where all of them are known to be right.
func TestNoExpressionIsCompiledBeforeTheProgramBegins(t *testing.T) {
	root, patterns := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		patterns += patternsIn(t, rel, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if patterns < 80 {
		t.Fatalf("only %d patterns were found", patterns)
	}
}

// patternsIn holds the variables of a file's package, and counts the patterns.
func patternsIn(t *testing.T, rel string, file *ast.File) (patterns int) {
	for _, decl := range file.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		ast.Inspect(vars, func(n ast.Node) bool {
			if _, later := n.(*ast.FuncLit); later {
				return false
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch name(call) {
			case "regexp.MustCompile":
				if partOfDlwb(rel) {
					t.Errorf("%s compiles an expression when the program begins; pattern.New does it when it is needed", rel)
				}
			case "pattern.New":
				patterns++
				isExpression(t, rel, call)
			}
			return true
		})
	}
	return patterns
}

// isExpression holds the argument of pattern.New.
func isExpression(t *testing.T, rel string, call *ast.CallExpr) {
	text, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		t.Errorf("%s: pattern.New is for a text that is known; for another one there is regexp.Compile", rel)
		return
	}
	expression, err := strconv.Unquote(text.Value)
	if err == nil {
		_, err = regexp.Compile(expression)
	}
	if err != nil {
		t.Errorf("%s: %v", rel, err)
	}
}

// name is what is called, as it is written: package and function.
func name(call *ast.CallExpr) string {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	from, ok := f.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return from.Name + "." + f.Sel.Name
}

// partOfDlwb reports whether a file is part of the program, and of no rig.
func partOfDlwb(rel string) bool {
	rel = filepath.ToSlash(rel)
	return filepath.Dir(rel) != "remote" && !strings.HasPrefix(rel, "internal/") || contains(shared, filepath.ToSlash(filepath.Dir(rel)))
}
