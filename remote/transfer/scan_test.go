package transfer

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func tContext() context.Context { return context.Background() }

// writeFiles makes files; a name that ends in a slash is a directory, and a
// content that begins with "-> " makes a link.
func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(p, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
			if target, ok := strings.CutPrefix(text, "-> "); ok {
				err = os.Symlink(target, p)
			} else {
				err = os.WriteFile(p, []byte(text), 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func scanTest(t testing.TB, dir string, exclude ...string) *Tree {
	t.Helper()
	tree, err := Scan(t.Context(), dir, Rules{Exclude: exclude})
	if err != nil {
		t.Fatal(err)
	}
	tree.HashCache = ""
	return tree
}

func treePaths(t *Tree) []string {
	var paths []string
	for _, e := range t.entries {
		paths = append(paths, e.path)
	}
	return paths
}

func TestScanTakesOddNamesAndLeavesOutWhatIsNotTheProject(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"train.py": "", "-rf": "", "a b": "", "new\nline": "", "ünïcode": "", "\xff\xfe": "", "empty/": "", "it's \"$(x)\"": "",
		".git/config": "", "d/.git": "gitdir: x", "__pycache__/a": "", "d/__pycache__/b": "", "x.pyc": "", ".dlwbignore": "", ".dlwb/x": "",
		".ipynb_checkpoints/c": "", "d/f": "",
	})
	want := []string{"-rf", "a b", "d", "d/f", "empty", "it's \"$(x)\"", "new\nline", "train.py", "ünïcode", "\xff\xfe"}
	tree := scanTest(t, dir)
	if got := treePaths(tree); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if tree.Files != 8 || len(tree.Warnings) != 0 {
		t.Errorf("%d files and warnings %q, want 8 and none", tree.Files, tree.Warnings)
	}
}

func TestScanKeepsLinksInsideAndNamesThoseThatPointOut(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"d/f": "x", "in": "-> d/f", "d/up": "-> ../in", "dangling": "-> d/none", "dir": "-> d", "d/abs": "-> " + filepath.Join(dir, "in"),
		"out": "-> ../x", "d/out": "-> ../../x", "root": "-> /etc/passwd", "through": "-> out/y", "self": "-> .",
	})
	tree := scanTest(t, dir)
	links := map[string]string{}
	for _, e := range tree.entries {
		if e.kind == kindLink {
			links[e.path] = e.link
		}
	}
	want := map[string]string{"in": "d/f", "d/up": "../in", "dangling": "d/none", "dir": "d", "d/abs": "../in", "self": "."}
	if fmt.Sprint(links) != fmt.Sprint(want) {
		t.Errorf("links are %v, want %v", links, want)
	}
	if len(tree.Warnings) != 1 {
		t.Fatalf("warnings are %q, want one", tree.Warnings)
	}
	for _, part := range []string{"d/out -> ../../x", "out -> ../x", "root -> /etc/passwd", "through -> out/y"} {
		if !strings.Contains(tree.Warnings[0], part) {
			t.Errorf("the warning %q does not name %q", tree.Warnings[0], part)
		}
	}
}

// A link that leads nowhere is one, and so is one that goes by many others.
func TestALinkInACircleIsNotCalledOneThatPointsOut(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"f": "x", "through": "-> f/none", "a": "-> b", "b": "-> d/../a", "d/x": "x", "l0": "-> f", "o0": "-> ../x"}
	for i := range 20 {
		files[fmt.Sprintf("l%d", i+1)] = fmt.Sprintf("-> l%d", i)
		files[fmt.Sprintf("o%d", i+1)] = fmt.Sprintf("-> o%d", i)
	}
	writeFiles(t, dir, files)
	tree := scanTest(t, dir)
	links := tree.Links()
	if links["through"] != "f/none" || links["l20"] != "l19" || links["a"] != "" || links["o3"] != "" || links["o20"] != "" {
		t.Errorf("links are %v", links)
	}
	if len(tree.Warnings) != 2 || !strings.Contains(tree.Warnings[0], "points out") || strings.Contains(tree.Warnings[0], "a -> b") ||
		!strings.HasSuffix(tree.Warnings[1], "lead back to themselves: a -> b, b -> d/../a.") {
		t.Errorf("warnings are %q", tree.Warnings)
	}
}

// A directory that git ignores is what trainings write to.
func TestADirectoryThatARunWritesToIsThereWhateverIgnoresItsContent(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"train.py": "1", ".gitignore": "/outputs/\n/logs\n/held\n", "outputs/old.pt": "x", "outputs/ckpt/1.pt": "x",
		"logs/tb/events": "x", "file": "x", "held/id_rsa": "k", "__pycache__/x/y": "x"})
	if err := os.Symlink("logs", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	rooms := []string{"outputs/ckpt", "logs/tb/", "file", "link/tb", "none/there", "../outside", "held", "__pycache__/x", "outputs"}
	tree, err := Scan(t.Context(), dir, Rules{Rooms: rooms})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tree.entries {
		got = append(got, string(e.kind)+" "+e.path)
	}
	want := []string{"f .gitignore", "f file", "d held", "l link", "d logs", "d logs/tb", "d outputs", "d outputs/ckpt", "f train.py"}
	if !slices.Equal(got, want) {
		t.Errorf("the tree has %q, want %q", got, want)
	}
	before := tree.Fingerprint()
	writeFiles(t, dir, map[string]string{"outputs/new.pt": "x"})
	if again, err := Scan(t.Context(), dir, Rules{Rooms: rooms}); err != nil || again.Fingerprint() != before {
		t.Errorf("what was written there changes the tree, %v", err)
	}
}

func TestSecretsAreHeldBackUnlessTheUserSendsThem(t *testing.T) {
	cert, key := "-----BEGIN CERTIFICATE-----\nMII\n", "-----BEGIN "+"PRIVATE KEY-----\nMII\n"
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		".env": "", ".env.local": "", ".env.example": "", "k.pem": key, "id_rsa": "", "id_ed25519.pub": "", "credentials": "", "a.key": "",
		"credentials.py": "", "ca.pem": cert, "both.pem": cert + key, "environment.yml": "", "keys/x": key, "keys/y": "", "only/z": key,
		".aws/credentials": "", "sub/.aws/config": "", "link.env": "-> .env", "tests/jwt.py": key, ".env.d/x.py": "",
		".gitignore": "!.env\n", ".dlwbignore": "!*\n!.aws/\n!/keys/x\n",
	})
	want := []string{".env.d", ".env.d/x.py", ".env.example", ".gitignore", "ca.pem", "credentials.py", "environment.yml", "id_ed25519.pub",
		"keys", "keys/y", "tests", "tests/jwt.py"}
	tree := scanTest(t, dir, "!*", "!/id_rsa")
	if got := treePaths(tree); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var held []string
	for _, f := range tree.Held {
		if held = append(held, f.Path); f.Why == "" || !f.Asked {
			t.Errorf("%+v: the project asked for all", f)
		}
	}
	if want := []string{".aws/credentials", ".env", ".env.local", "a.key", "both.pem", "credentials", "id_rsa", "k.pem", "keys/x", "link.env", "only/z", "sub/.aws/config"}; !slices.Equal(held, want) {
		t.Errorf("held back are %q, want %q", held, want)
	}
	text := strings.Join(tree.Warnings, "\n")
	for _, part := range []string{"12 files: .aws/credentials, .env, ", "and 7 more", "The project wants 12 of them sent", "--send-secret /.aws/credentials", "secrets.send"} {
		if !strings.Contains(text, part) {
			t.Errorf("warnings %q do not say %q", text, part)
		}
	}
	tree, err := Scan(t.Context(), dir, Rules{Send: []string{"/.env", "k.pem", ".aws/", "*.key", "!a.key", "/keys/x"}, Hold: []string{"environment.*", "k.pem"}})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(treePaths(tree), " ")
	for _, name := range []string{".env", ".aws/credentials", "sub/.aws/config", "keys/x", "k.pem"} {
		if !strings.Contains(" "+got+" ", " "+name+" ") {
			t.Errorf("%s was let go, and is not in %s", name, got)
		}
	}
	for _, name := range []string{".env.local", "a.key", "id_rsa", "environment.yml"} {
		if strings.Contains(" "+got+" ", " "+name+" ") {
			t.Errorf("%s is in %s", name, got)
		}
	}
}

func TestAProjectThatLiesAmongSecretsIsOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".aws", "project")
	writeFiles(t, dir, map[string]string{"config": "", "sub/x": ""})
	there := filepath.Join(t.TempDir(), "nice")
	if err := os.Symlink(dir, there); err != nil {
		t.Skip("NOT RUN: no links here")
	}
	for _, dir := range []string{dir, there} {
		if tree := scanTest(t, dir); len(tree.entries) > 0 || len(tree.Held) != 2 {
			t.Errorf("%s: sent is %q", dir, treePaths(tree))
		}
	}
}

// A key that is large, or among so many files that Scan does not look into it,
// is seen when it is read; and whether its checksum is kept makes no difference.
func TestASecretThatOnlyReadingShowsIsHeldBackEachTime(t *testing.T) {
	dir := t.TempDir()
	key := "-----BEGIN " + "PRIVATE KEY-----\nMII\n" + strings.Repeat("x", peekSize)
	writeFiles(t, dir, map[string]string{"deploy": key, "sub/deploy": key, "config.yaml": "key: AKIA" + "ABCDEFGHIJKLMNOP"})
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"deploy", "sub/deploy", "config.yaml"} {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	cache := filepath.Join(t.TempDir(), "cache")
	for range 3 {
		tree := scanTest(t, dir)
		tree.HashCache, tree.Bytes = cache, cacheBytes+1
		for range 2 {
			warnings, err := tree.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(tree.Held) != 2 || strings.Contains(strings.Join(treePaths(tree), " "), "deploy") || !strings.Contains(strings.Join(tree.Warnings, ""), "2 files: deploy, sub/deploy") {
				t.Errorf("held back: %v, sent: %q, warnings: %q", tree.Held, treePaths(tree), tree.Warnings)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], "config.yaml seems to hold an AWS access key") {
				t.Errorf("warned: %q", warnings)
			}
		}
	}
}

func TestScanWarnsBeforeALargeProject(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"data/x": "", "d2/x": "", "d3/x": "", "d4/x": "", "t.py": "1"})
	for name, size := range map[string]int64{"data/x": 150e6, "d2/x": 60e6, "d3/x": 5e6, "d4/x": 1} {
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			t.Fatal(err)
		}
	}
	tree := scanTest(t, dir)
	want := []string{
		"The project is large: 5 files, 215 MB. Most of it is in data/ (1 file, 150 MB), d2/ (1 file, 60 MB), d3/ (1 file, 5 MB). Put what the training does not need into .dlwbignore.",
		"data/x is large: 150 MB. If the training does not need it, put the line /data/x into .dlwbignore.",
	}
	if !slices.Equal(tree.Warnings, want) {
		t.Errorf("got %q,\nwant %q", tree.Warnings, want)
	}
	if tree.Bytes != 215000002 {
		t.Errorf("%d bytes", tree.Bytes)
	}
}

func TestScanGivesModesThatSuitANode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	dir := t.TempDir()
	for mode, want := range map[fs.FileMode]fs.FileMode{0o755: 0o755, 0o644: 0o644, 0o777: 0o755, 0o600: 0o600, 0o664: 0o644, 0o500: 0o500} {
		p := filepath.Join(dir, "f")
		writeFiles(t, dir, map[string]string{"f": ""})
		if err := os.Chmod(p, mode); err != nil {
			t.Fatal(err)
		}
		if got := scanTest(t, dir).entries[0].mode; got != want {
			t.Errorf("%o becomes %o, want %o", mode, got, want)
		}
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScanOfWhatIsNotThereSaysSo(t *testing.T) {
	_, err := Scan(t.Context(), filepath.Join(t.TempDir(), "none"), Rules{})
	if err == nil || !strings.Contains(err.Error(), "code.dir") {
		t.Errorf("error is %v", err)
	}
}

func TestKeptChecksumsAreOnlyTrustedForUnchangedFiles(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"old": "one", "young": "one"})
	cache := filepath.Join(t.TempDir(), "sub", "cache")
	load := func() map[string]*treeEntry {
		tree := scanTest(t, dir)
		tree.HashCache, tree.Bytes = cache, cacheBytes+1
		if err := tree.hash(t.Context()); err != nil {
			t.Fatal(err)
		}
		found := map[string]*treeEntry{}
		for _, e := range tree.entries {
			found[e.path] = e
		}
		return found
	}
	sum := load()["old"].sum
	text, err := os.ReadFile(cache)
	if err != nil || len(text) != 0 {
		t.Fatalf("checksums of files that are being written were kept: %q, %v", text, err)
	}
	// As if the file were older: a poisoned entry under its own key shows
	// whether it is used.
	tree := scanTest(t, dir)
	e := tree.entries[0]
	poison := strings.Repeat("0", 64)
	if err := os.WriteFile(cache, []byte(poison+" "+e.hashKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := load()["old"].sum; got != poison {
		t.Errorf("the kept checksum was not used: %s", got)
	}
	// Same size, same mtime, other content: ctime tells.
	p := filepath.Join(dir, "old")
	if err := os.WriteFile(p, []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(p, e.mtime, e.mtime); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		if err := os.WriteFile(cache, []byte(poison+" "+e.hashKey()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := load()["old"].sum; got == poison || got == sum {
			t.Errorf("a changed file has the checksum %s", got)
		}
	}
}
