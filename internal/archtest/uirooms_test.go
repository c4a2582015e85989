package archtest

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// uiRooms are the packages below ui, and which of each other they may import. The
// model, ui itself, imports them; none imports the model.
var uiRooms = map[string][]string{
	"text":    {"logview"},
	"scale":   {},
	"plot":    {"scale"},
	"spark":   {},
	"meaning": {},
	"logview": {},
	"session": {"text", "scale", "plot", "logview", "meaning"},
	"chart":   {"text", "plot", "session", "meaning", "ranks"},
	"ranks":   {"text", "session"},
	"compare": {"text", "plot", "session", "sign", "chart", "meaning"},
	"home":    {"text", "sign"},
	"watch":   {"text", "session", "sign", "chart", "nodes"},
	"line":    {"text"},
	"plan":    {"text", "session"},
	"offers":  {"text", "plan"},
	"wizard":  {"text", "line", "plan", "offers", "session", "sign"},
	"runs":    {"text", "session", "sign"},
	"sign":    {"text", "session"},
	"nodes":   {"text", "spark", "session"},
	"shell":   {"text"},
}

// pureUIRooms are those that neither draw nor know of a terminal.
var pureUIRooms = []string{"session"}

func TestImportsPointDownInsideTheUI(t *testing.T) {
	root := filepath.Join("..", "..", "ui")
	found, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if !d.IsDir() || d.Name() == "testdata" {
			continue
		}
		allowed, known := uiRooms[d.Name()]
		if !known {
			t.Errorf("ui/%s has no place among the rooms; see this test", d.Name())
		}
		if !strings.Contains(string(page), "`ui/"+d.Name()+"`") {
			t.Errorf("CONTRIBUTING.md does not say what ui/%s is for", d.Name())
		}
		for _, name := range importsOf(t, filepath.Join(root, d.Name())) {
			ours, is := strings.CutPrefix(name, module+"/ui")
			if is && !slices.Contains(allowed, strings.TrimPrefix(ours, "/")) {
				t.Errorf("ui/%s imports ui%s; it may import only %v of them", d.Name(), ours, allowed)
			}
			if slices.Contains(pureUIRooms, d.Name()) && strings.HasPrefix(name, "charm.land/") {
				t.Errorf("ui/%s imports %s: it is to draw nothing", d.Name(), path.Base(name))
			}
		}
	}
}

func TestTheUIKnowsEventsAndNotTheDriver(t *testing.T) {
	for _, room := range append(slices.Sorted(maps.Keys(uiRooms)), "") {
		if slices.Contains(importsOf(t, filepath.Join("..", "..", "ui", room)), module+"/workbench") {
			t.Errorf("ui/%s imports the driver; it is to get what it draws as values", room)
		}
	}
}

// These are the lines and files of the model, and of a room below it, without
// tests. They are there to fall.
const (
	mostUILines, mostUIFiles         = 4500, 34
	mostUIRoomLines, mostUIRoomFiles = 1700, 14
)

func TestThePackagesOfTheUIStaySmall(t *testing.T) {
	root := filepath.Join("..", "..", "ui")
	measure := func(dir string, mostLines, mostFiles int) {
		lines, files := 0, 0
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines, files = lines+strings.Count(string(b), "\n"), files+1
		}
		if lines == 0 || lines > mostLines || files > mostFiles {
			t.Errorf("%s has %d lines in %d files; %d in %d are the most", dir, lines, files, mostLines, mostFiles)
		}
	}
	measure(root, mostUILines, mostUIFiles)
	for room := range uiRooms {
		measure(filepath.Join(root, room), mostUIRoomLines, mostUIRoomFiles)
	}
}

// importsOf are the imports of a package outside of its tests.
func importsOf(t *testing.T, dir string) (imports []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			imports = append(imports, strings.Trim(spec.Path.Value, `"`))
		}
	}
	return imports
}
