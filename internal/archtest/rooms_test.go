package archtest

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are the packages below workbench, and which of each other they may
// import. The driver, workbench itself, imports them; none imports the driver.
var rooms = map[string][]string{
	"cleanup":  {"event"},
	"event":    {},
	"export":   {},
	"follow":   {"event"},
	"gitread":  {},
	"market":   {"event", "planning"},
	"money":    {"event"},
	"trust":    {},
	"planning": {"event", "gitread", "history", "trust"},
	"history":  {"event", "export", "gitread"},
	"tunnel":   {"event"},
}

func TestImportsPointDownInsideTheWorkbench(t *testing.T) {
	found, err := os.ReadDir(filepath.Join("..", "..", "workbench"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if !d.IsDir() || d.Name() == "scripts" || d.Name() == "testdata" {
			continue
		}
		allowed, known := rooms[d.Name()]
		if !known {
			t.Errorf("workbench/%s has no place among the rooms; see this test", d.Name())
		}
		for _, name := range roomsThat(t, d.Name()) {
			if !slices.Contains(allowed, name) {
				t.Errorf("workbench/%s imports workbench%s; it may import only %v of them", d.Name(), name, allowed)
			}
		}
	}
}

// Watching knows no ssh and no provider: whatever answers as a replica is
// followed in the same way.
func TestWatchingKnowsNoWayToANode(t *testing.T) {
	for rel, path := range programFiles(t) {
		if !strings.HasPrefix(rel, "workbench/follow/") && !strings.HasPrefix(rel, "internal/job/") {
			continue
		}
		for _, name := range oursOf(t, path) {
			for _, not := range []string{"remote", "cloud", "sshconn", "sshkeys", "profiles"} {
				if name == not || strings.HasPrefix(name, not+"/") {
					t.Errorf("%s imports %s", rel, name)
				}
			}
		}
	}
}

// reachesNodes are the files of the driver that know how a node is reached: the
// one backend that nodes are, and what it brings home from them. No others do.
var reachesNodes = []string{"ckptput.go", "ckptunit.go", "ckptwatch.go", "contact.go", "drive.go", "fetch.go", "lease.go", "link.go", "nodefacts.go", "noderun.go", "port.go", "records.go", "runowned.go", "steps.go", "sync.go", "wheels.go"}

func TestOnlyTheBackendOfNodesReachesThem(t *testing.T) {
	var found []string
	for rel, path := range programFiles(t) {
		if filepath.ToSlash(filepath.Dir(rel)) == "workbench" && slices.Contains(oursOf(t, path), "remote") {
			found = append(found, filepath.Base(rel))
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, reachesNodes) {
		t.Errorf("files that import remote: %q, known are %q", found, reachesNodes)
	}
}

// oursOf are the packages of ours that a file imports.
func oursOf(t *testing.T, path string) (ours []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range file.Imports {
		if name, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/"); is {
			ours = append(ours, name)
		}
	}
	return ours
}

// roomsThat are the packages of the workbench that one of its rooms imports,
// outside of tests; "" is the driver.
func roomsThat(t *testing.T, room string) (imports []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "workbench", room, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("workbench/%s: %d files, %v", room, len(files), err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/workbench")
			if is && !slices.Contains(imports, strings.TrimPrefix(name, "/")) {
				imports = append(imports, strings.TrimPrefix(name, "/"))
			}
		}
	}
	return imports
}

// The table of CONTRIBUTING.md says what each package is for. Packages that are
// part of another one stand in its row.
func TestEachRoomHasItsJobInTheTable(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var packages []string
	for room := range rooms {
		packages = append(packages, "workbench/"+room)
	}
	for _, name := range append(packages, shared...) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("CONTRIBUTING.md does not say what %s is for", name)
		}
	}
}
