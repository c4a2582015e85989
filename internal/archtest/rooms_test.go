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
	"again":     {"event", "planning"},
	"atnode":    {"event"},
	"chain":     {"event", "inputs", "planning"},
	"checkup":   {"rankport"},
	"cleanup":   {"event"},
	"event":     {},
	"export":    {},
	"follow":    {"event"},
	"gitread":   {},
	"inputs":    {"event", "sharing"},
	"ledger":    {},
	"locks":     {},
	"market":    {"event", "planning"},
	"money":     {"event"},
	"naming":    {"event"},
	"silence":   {"event"},
	"statedir":  {},
	"sweep":     {"event"},
	"trust":     {},
	"planning":  {"event", "gitread", "history", "inputs", "sweep", "trust"},
	"history":   {"event", "export", "gitread"},
	"nodefacts": {"history"},
	"peers":     {},
	"sharing":   {"event"},
	"witness":   {},
	"rankport":  {"event"},
	"reading":   {"event", "history", "samples", "told"},
	"results":   {"event", "follow", "planning", "sharing"},
	"samples":   {"event"},
	"told":      {"event"},
	"tunnel":    {"event"},
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

// reachesNodes are the files of the driver that know how a node is reached: those
// of the one backend that nodes are. No others do.
var reachesNodes = []string{"contact.go", "drive.go", "inputs.go", "landing.go", "lease.go", "link.go", "recipe.go", "steps.go", "sync.go", "trials.go"}

// roomsWithRemote are the rooms that import remote. atnode makes replicas of nodes;
// inputs, nodefacts, peers, rankport, results, sharing and tunnel are given connected nodes and
// talk to them; history, planning and trust take values of it.
var roomsWithRemote = []string{"atnode", "chain", "checkup", "history", "inputs", "nodefacts", "peers", "planning", "rankport", "results", "sharing", "trust", "tunnel"}

func TestOnlyTheBackendOfNodesReachesThem(t *testing.T) {
	var found, foundRooms []string
	for rel, path := range programFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(rel))
		room, isRoom := strings.CutPrefix(dir, "workbench/")
		if dir != "workbench" && !isRoom || !slices.ContainsFunc(oursOf(t, path), isOfNodes) {
			continue
		}
		if isRoom {
			foundRooms = append(foundRooms, room)
		} else {
			found = append(found, filepath.Base(rel))
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, reachesNodes) {
		t.Errorf("files that import remote or remote/transfer: %q, known are %q", found, reachesNodes)
	}
	slices.Sort(foundRooms)
	if foundRooms = slices.Compact(foundRooms); !slices.Equal(foundRooms, roomsWithRemote) {
		t.Errorf("rooms that import remote: %q, known are %q", foundRooms, roomsWithRemote)
	}
}

// isOfNodes reports whether a package is a way to nodes, or moves files there.
func isOfNodes(name string) bool { return name == "remote" || name == "remote/transfer" }

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
