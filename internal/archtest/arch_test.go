// Package archtest holds the direction of imports: the design's one rule that
// no compiler knows.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dlwb/dlwb"

// layers says, for each top-level package, which of ours it (and what is below
// it) may import besides its own tree and those that stand beside everything:
// the sanitizer, the keys and the connections of ssh, and the small packages in
// shared.
var layers = map[string][]string{
	"":          {"cli", "remote"},
	"cli":       {"ui", "workbench", "profiles", "cloud", "remote", "sanitize", "examples", "metrics", "settings"},
	"ui":        {"workbench", "cloud", "metrics", "sanitize"},
	"workbench": {"cloud", "remote", "metrics", "profiles", "store", "settings"},
	"cloud":     {},
	"remote":    {},
	"metrics":   {},
	"profiles":  {},
	"settings":  {"profiles"},
	"store":     {},
	"sanitize":  {},
	"sshkeys":   {},
	"sshconn":   {},
	"examples":  {},
}

// shared are the packages below internal that are part of the program: one idea
// each, and no imports of ours.
var shared = []string{"internal/agentbin", "internal/apart", "internal/containers", "internal/crash", "internal/dockerfile", "internal/hostclaim", "internal/job", "internal/modules", "internal/namejson", "internal/nearword", "internal/ownfile", "internal/ownssh", "internal/pattern", "internal/plainfile", "internal/programconn", "internal/secretfile", "internal/shellword", "internal/units", "internal/waits", "internal/wholefile"}

// beside are the packages that stand beside everything.
var beside = []string{"sanitize", "sshkeys", "sshconn"}

func TestImportsPointOneWay(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		check(t, rel, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d files were looked at", files)
	}
}

// tables are packages that only describe: what providers and engines are called,
// are like and accept. Everybody may read them, and they import nothing of ours
// but each other and the small packages in shared.
var tables = []string{"cloud/about", "cloud/providers", "cloud/*/options", "remote/engine"}

func isTable(dir string) bool {
	return slices.ContainsFunc(tables, func(t string) bool {
		is, err := path.Match(t, dir)
		return err == nil && is
	})
}

// check holds one file against the layers. Test rigs below internal may import
// what they like; nothing may import them.
func check(t *testing.T, rel, path string) {
	t.Helper()
	top, _, found := strings.Cut(filepath.ToSlash(rel), "/")
	if !found {
		top = ""
	}
	table := isTable(filepath.ToSlash(filepath.Dir(rel)))
	if top == "internal" && !contains(shared, filepath.ToSlash(filepath.Dir(rel))) {
		return
	}
	allowed, known := layers[top]
	known = known || top == "internal"
	if !known {
		t.Errorf("%s: package %s has no place in the layers; see this test", rel, top)
		return
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		ours, is := strings.CutPrefix(name, module+"/")
		if !is {
			continue
		}
		to, _, _ := strings.Cut(ours, "/")
		if table && !isTable(ours) && !contains(shared, ours) {
			t.Errorf("%s imports %s: a table imports nothing of ours but other tables and the small shared packages", rel, ours)
		}
		if to == top && top != "internal" || contains(beside, to) || contains(allowed, to) || contains(shared, ours) || isTable(ours) {
			continue
		}
		t.Errorf("%s imports %s: %s may import only %v of ours", rel, ours, orRoot(top), allowed)
	}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

func orRoot(top string) string {
	if top == "" {
		return "main"
	}
	return top
}

// A file is one thing, and a function is something one can read at a glance.
// These are the limits of the house, with room for tables.
func TestNoFileIsTooLong(t *testing.T) {
	const most = 500
	root := filepath.Join("..", "..")
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if n := strings.Count(string(b), "\n"); err == nil && n > most {
			t.Errorf("%s has %d lines; %d are the most", path, n, most)
		}
		return err
	})
}

// A profile is acted on when the gate of trust has let it through. Two places say
// that one is the user's own: the wizard's draft, and the code that a run of the
// user's had. Nobody else may.
func TestOnlyTheWizardAndARerunPassTheGateOfTrustUnasked(t *testing.T) {
	allowed := map[string]bool{"workbench/planning/draft.go": true, "workbench/planning/rerun.go": true}
	passes := regexp.MustCompile(`(?i)gate(\(\))?\.Own\(`)
	root := filepath.Join("..", "..")
	found := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !passes.Match(b) {
			return err
		}
		found++
		if rel, _ := filepath.Rel(root, path); !allowed[filepath.ToSlash(rel)] {
			t.Errorf("%s passes the gate of trust unasked", rel)
		}
		return nil
	})
	if found != len(allowed) {
		t.Errorf("%d places pass the gate unasked, %d are known", found, len(allowed))
	}
}
