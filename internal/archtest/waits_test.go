package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// use is names of another package: who may use them, and what everybody else uses. What is
// below the packages in the list, and tests and their rigs, may.
type use struct {
	pkg     string // its import path
	names   []string
	allowed []string
	instead string
}

// unbounded are names that wait for somebody else and know no context.
var unbounded = []use{
	{"golang.org/x/crypto/ssh", []string{"Client", "Session", "NewClient", "NewClientConn", "Dial"}, []string{"sshconn", "cloud/local/probe.go"}, "sshconn"},
	{"github.com/libp2p/go-yamux/v5", []string{"Session", "Stream", "Client", "Server"}, []string{"remote/wire"}, "remote/wire"},
	{"net", []string{"Dial", "DialTimeout", "DialTCP", "DialUnix"}, nil, "net.Dialer.DialContext"},
	{"net/http", []string{"Get", "Post", "PostForm", "Head", "NewRequest", "DefaultClient"}, nil, "http.NewRequestWithContext, and a Client with a Timeout"},
	{"os/exec", []string{"Command"}, []string{"cli/browse", "cloud/local/up.go", "workbench/forward.go", "remote/agent", "remote/keeper", "remote/transport"}, "exec.CommandContext; these start what outlives the call"},
}

// patterns are names that take a whole path for a pattern: a directory whose name has a
// bracket in it would be passed over. These two have a fixed path, and a user's pattern.
var patterns = []use{
	{"path/filepath", []string{"Glob"}, []string{"remote/agent/supervise/children.go", "cloud/hosts/config.go"}, "fs.Glob(os.DirFS(dir), pattern)"},
}

func TestWhatWaitsForOthersHasABound(t *testing.T) {
	checkUses(t, unbounded, "may wait for ever")
}

func TestADirectoryIsNoPattern(t *testing.T) {
	checkUses(t, patterns, "takes its directory for a pattern, too")
}

// checkUses holds the program's files against a table of what is not to be used, and why.
func checkUses(t *testing.T, table []use, why string) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() && (d.Name() == "testdata" || rel == "internal" || rel == "examples" || strings.HasPrefix(d.Name(), ".") && rel != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			checkFile(t, table, why, rel, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkFile(t *testing.T, table []use, why, rel, path string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range table {
		name := importName(file, rule.pkg)
		if name == "" || slices.ContainsFunc(rule.allowed, func(a string) bool { return rel == a || strings.HasPrefix(rel, a+"/") }) {
			continue
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name && x.Obj == nil && slices.Contains(rule.names, s.Sel.Name) {
				t.Errorf("%s uses %s.%s, which %s: use %s", rel, name, s.Sel.Name, why, rule.instead)
			}
			return true
		})
	}
}

// importName is the name by which a file knows a package; empty: it does not.
func importName(file *ast.File, pkg string) string {
	for _, spec := range file.Imports {
		if strings.Trim(spec.Path.Value, "\"") != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		name := path.Base(pkg)
		if strings.Trim(name, "v0123456789") == "" { // a major version
			name = strings.TrimPrefix(path.Base(path.Dir(pkg)), "go-")
		}
		return name
	}
	return ""
}
