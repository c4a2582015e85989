package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// byHand finds in a string literal what internal/units writes: an amount with a
// unit of size or of time behind it, or with the sign of a currency before it.
var byHand = regexp.MustCompile(`%[-+ 0-9.*]*[dfgvs] ?([kKMGTP]i?B)\b|%[-+ 0-9.*]*[dfgv]B\b|\$%[-+ 0-9.*]*[dfgv]|` +
	`%[-+ 0-9.*]*[dfgv] ?(s|ms|µs|h|min|seconds|minutes|hours|days)\b|%d ?[mhd] ?%0`)

// behindAmount is a unit of time or size that is put behind a number by +.
var behindAmount = regexp.MustCompile(`^(?: s|h| ?(?:ms|µs|min|seconds|minutes|hours|[kKMGTP]i?B))\b`)

// inProfile is a line to put into a profile, which has a form of its own.
var inProfile = regexp.MustCompile(`^[a-z_.]+: %dGB$`)

// elsewhere are files that write amounts for machines to read, or that are no
// part of dlwb.
var elsewhere = []string{"internal/units/", "internal/fakeaws/", "internal/nodesbench/", "examples/", "internal/scenes/", "internal/cells/", "profiles/gen/",
	"profiles/quantities.go", // writes what a profile takes
	"cloud/local/smi.go"}     // writes what nvidia-smi does

// TestSizesDurationsAndMoneyAreWrittenInOnePlace looks for text that writes
// them by hand: two places that each do it their own way show two answers to
// one question.
func TestSizesDurationsAndMoneyAreWrittenInOnePlace(t *testing.T) {
	root := filepath.Join("..", "..")
	looked := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		rel = filepath.ToSlash(rel)
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		for _, prefix := range elsewhere {
			if strings.HasPrefix(rel, prefix) {
				return nil
			}
		}
		looked++
		for _, found := range amountsByHand(t, path) {
			t.Errorf("%s:%s: write it with internal/units", rel, found)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked < 50 {
		t.Fatalf("only %d files were looked at", looked)
	}
}

// amountsByHand lists the places of a file that write an amount themselves.
func amountsByHand(t *testing.T, path string) (found []string) {
	t.Helper()
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n ast.Node, what string) {
		found = append(found, strconv.Itoa(fset.Position(n.Pos()).Line)+": "+what)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && !inProfile.MatchString(text) && byHand.MatchString(text) {
				at(n, n.Value)
			}
		case *ast.BinaryExpr:
			if lit, ok := n.Y.(*ast.BasicLit); ok && n.Op == token.ADD && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && behindAmount.MatchString(text) {
					at(n, "+ "+lit.Value)
				}
			}
		case *ast.CallExpr:
			if of := callee(n); strings.HasPrefix(of, "fmt.") || strings.HasSuffix(of, ".String") {
				for _, arg := range append(n.Args, receiver(n)) {
					if roundsTime(arg) {
						at(n, "a duration as Go writes it")
					}
				}
			}
		}
		return true
	})
	return found
}

// callee is "fmt.Sprintf" for a call of it, "….String" for a method's.
func callee(c *ast.CallExpr) string {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); ok {
		return x.Name + "." + sel.Sel.Name
	}
	return "." + sel.Sel.Name
}

func receiver(c *ast.CallExpr) ast.Expr {
	if sel, ok := c.Fun.(*ast.SelectorExpr); ok {
		return sel.X
	}
	return nil
}

// roundsTime reports whether an expression is a duration that is rounded to be
// shown: x.Round(time.Second).
func roundsTime(e ast.Expr) bool {
	c, ok := e.(*ast.CallExpr)
	if !ok || len(c.Args) != 1 || !strings.HasSuffix(callee(c), ".Round") && !strings.HasSuffix(callee(c), ".Truncate") {
		return false
	}
	unit, ok := c.Args[0].(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := unit.X.(*ast.Ident)
	return ok && pkg.Name == "time"
}

func TestTheTestThatFindsAmountsFindsThem(t *testing.T) {
	for _, bad := range []string{"%.1f MB", "%d GiB of disk", "cost $%.2f", "after %.0f s", "%6.1f s  %s", "%g s", "%dms", "%d ms", "%d h %d min", "%dm%02ds", "%.0f hours"} {
		if !byHand.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}
	for _, good := range []string{"%d nodes", "%s more", "%d machines", "rank %d", "%d handled", "%.2f"} {
		if byHand.MatchString(good) {
			t.Errorf("%q is found", good)
		}
	}
}
