//go:build unix

package remote

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func pullTest(t testing.TB, n syncNode, dest string, paths ...string) PullResult {
	t.Helper()
	res, err := pullFrom(t.Context(), n, codeDir, paths, dest, PullLimits{})
	check(t, err)
	return res
}

// makeOld gives files a time that a Pull relies on.
func makeOld(t testing.TB, dir string) {
	t.Helper()
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	check(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			err = os.Chtimes(p, then, then)
		}
		return err
	}))
}

func TestPullOnEveryShell(t *testing.T) {
	for name, make := range shellsOfNodes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, dest := make(t), filepath.Join(t.TempDir(), "made", "here")
			writeFiles(t, n.code("out"), oddProject)
			check(t, os.Chmod(n.code("out/train.py"), 0o755))
			check(t, os.Link(n.code("out/big"), n.code("out/same as big")))
			makeOld(t, n.code())
			res := pullTest(t, n, dest, "out/", "none", "a/../gone")
			if want, got := dirText(t, n.code("out")), dirText(t, filepath.Join(dest, "out")); got != want {
				t.Errorf("here is\n%s\nwant\n%s", got, want)
			}
			if want := len(oddProject) - 1 + 1; res.Files != want || !slices.Equal(res.Missing, []string{"gone", "none"}) || len(res.Skipped) != 0 {
				t.Errorf("got %d files, missing %q, skipped %q; want %d, gone and none, nothing", res.Files, res.Missing, res.Skipped, want)
			}
			writeFiles(t, n.code("out"), map[string]string{"zero": "no longer"})
			res = pullTest(t, n, dest, "out")
			if res.Files != 1 || res.Bytes != 9 {
				t.Errorf("one change: %v", res)
			}
			if left, _ := filepath.Glob(filepath.Join(dest, ".dlwb*")); len(left) > 0 {
				t.Errorf("%q was left behind", left)
			}
		})
	}
}

func TestPullFetchesAYoungFileAgain(t *testing.T) {
	n, dest := newShellNode(t), t.TempDir()
	writeFiles(t, n.code(), map[string]string{"log": "one"})
	pullTest(t, n, dest, "log")
	info, err := os.Stat(n.code("log"))
	check(t, err)
	writeFiles(t, n.code(), map[string]string{"log": "two"})
	check(t, os.Chtimes(n.code("log"), info.ModTime(), info.ModTime()))
	if res := pullTest(t, n, dest, "log"); res.Files != 1 {
		t.Errorf("a file that changed within its second was not fetched: %v", res)
	}
}

func TestPullSkipsAndNamesWhatIsNoFile(t *testing.T) {
	n, dest := newShellNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{
		"ok": "x", "up": "-> ../..", "abs": "-> /etc/passwd", "in": "-> ok", "sub/up": "-> ../ok", "odd": "-> sub/../../x", ".git/config": "x", ".dlwb-x": "",
	})
	check(t, syscall.Mkfifo(n.code("out/pipe"), 0o644))
	res := pullTest(t, n, dest, "out")
	want := []string{
		"out/.dlwb-x: it belongs to dlwb", "out/.git/config: it belongs to a .git directory", "out/.git: it belongs to a .git directory",
		"out/abs: a link that points out, to /etc/passwd", "out/odd: a link that points out, to sub/../../x", "out/pipe: a named pipe",
		"out/up: a link that points out, to ../..",
	}
	slices.Sort(res.Skipped)
	if !slices.Equal(res.Skipped, want) {
		t.Errorf("skipped\n%q\nwant\n%q", res.Skipped, want)
	}
	if res.Files != 3 {
		t.Errorf("%d files, want ok and two links", res.Files)
	}
}

func TestPullFollowsAnAskedPathThatIsALink(t *testing.T) {
	n, dest, elsewhere := newShellNode(t), t.TempDir(), t.TempDir()
	writeFiles(t, elsewhere, map[string]string{"sub/model": "weights"})
	writeFiles(t, n.code(), map[string]string{"out": "-> " + elsewhere})
	res := pullTest(t, n, dest, "out")
	if text, err := os.ReadFile(filepath.Join(dest, "out/sub/model")); string(text) != "weights" || len(res.Skipped) != 0 {
		t.Errorf("got %q, %v, skipped %q", text, err, res.Skipped)
	}
}

func TestPullStopsAtItsLimitsAndKeepsWhatIsWhole(t *testing.T) {
	n := newShellNode(t)
	writeFiles(t, n.code("out"), map[string]string{"a": "1234", "b": "1234", "c": "1234"})
	for _, c := range []struct {
		lim PullLimits
		say string
	}{{PullLimits{MaxFiles: 3}, "out/c: more than 3 files"}, {PullLimits{MaxBytes: 11}, "out/c: more than 11 B"}} {
		dest := t.TempDir()
		res, err := pullFrom(t.Context(), n, codeDir, []string{"out"}, dest, c.lim)
		limit := new(LimitError)
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "node0") {
			t.Errorf("with %+v the error is %v", c.lim, err)
		}
		if res.Files != 2 || res.Bytes != 8 {
			t.Errorf("with %+v: %v", c.lim, res)
		}
		if text, _ := os.ReadFile(filepath.Join(dest, "out/b")); string(text) != "1234" {
			t.Errorf("out/b is %q", text)
		}
	}
}

func TestAPullThatBreaksOffGoesOn(t *testing.T) {
	n, dest, tools := newShellNode(t), t.TempDir(), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"a": strings.Repeat("a", 50_000), "b": strings.Repeat("b", 50_000), "c": "c"})
	makeOld(t, n.code())
	check(t, os.WriteFile(filepath.Join(tools, "tar"), []byte("#!/bin/sh\nPATH=${PATH#*:}; tar \"$@\" | head -c 80000; exit 1\n"), 0o755))
	path := n.path
	n.path = tools + ":" + path
	res, err := pullFrom(t.Context(), n, codeDir, []string{"out"}, dest, PullLimits{})
	if err == nil || !strings.Contains(err.Error(), "broke off") || res.Files != 1 {
		t.Fatalf("%v, %v", res, err)
	}
	if _, err := os.Stat(filepath.Join(dest, "out/b")); err == nil {
		t.Error("half a file is there under its name")
	}
	n.path = path
	res = pullTest(t, n, dest, "out")
	if res.Files != 2 || res.Unchanged != 1 || dirText(t, filepath.Join(dest, "out")) != dirText(t, n.code("out")) {
		t.Errorf("after that: %v", res)
	}
}

func TestWhatANodeMayNotSendIsSkippedAndNamed(t *testing.T) {
	n, dest, tools := newShellNode(t), filepath.Join(t.TempDir(), "dest"), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1"})
	writeFiles(t, dest, map[string]string{"mine": "mine", "src/x": "mine", "out/linked": "-> ../src", "out/f/": ""})
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, h := range []tar.Header{
		{Name: "../evil", Typeflag: tar.TypeReg}, {Name: "/tmp/dlwb-evil", Typeflag: tar.TypeReg}, {Name: "mine", Typeflag: tar.TypeReg},
		{Name: "out/linked/x", Typeflag: tar.TypeReg}, {Name: "out/a", Typeflag: tar.TypeSymlink, Linkname: "../../evil"},
		{Name: "out/b", Typeflag: tar.TypeChar}, {Name: "out/c", Typeflag: tar.TypeDir}, {Name: "out/d", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"},
		{Name: "./out/e", Typeflag: tar.TypeReg, Mode: 0o6777}, {Name: "./out/e", Typeflag: tar.TypeReg}, {Name: "./out/f", Typeflag: tar.TypeReg},
	} {
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		check(t, w.WriteHeader(&h))
		if h.Size > 0 {
			_, err := w.Write([]byte("evil"))
			check(t, err)
		}
	}
	check(t, w.Close())
	check(t, os.WriteFile(filepath.Join(tools, "archive"), archive.Bytes(), 0o644))
	check(t, os.WriteFile(filepath.Join(tools, "tar"), []byte("#!/bin/sh\nexec cat "+tools+"/archive\n"), 0o755))
	n.path = tools + ":" + n.path
	res := pullTest(t, n, dest, "out")
	// What is not what the node has under that name was fetched once more.
	want := `"mine" 644 "mine"
"out" dir
"out/e" 644 "1"
"out/f" dir
"out/linked" -> ../src
"src" dir
"src/x" 644 "mine"`
	if got := withoutTimes(dirText(t, dest)); got != want {
		t.Errorf("here is\n%s\nwant\n%s", got, want)
	}
	if entries, _ := os.ReadDir(filepath.Dir(dest)); len(entries) != 1 || exists("/tmp/dlwb-evil") {
		t.Errorf("something was written outside: %v", entries)
	}
	text := strings.Join(res.Skipped, "\n")
	for _, part := range []string{"../evil: it was not", "/tmp/dlwb-evil: it was not", "mine: it was not", "out/linked/x: it was", "out/a: a link that points out", "out/b: it comes as", "out/c: it comes as", "out/d: the node sends only", "out/f: here: "} {
		if !strings.Contains(text, part) {
			t.Errorf("skipped does not say %q:\n%s", part, text)
		}
	}
}

func withoutTimes(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if words := strings.SplitN(line, " ", 4); len(words) == 4 && words[1] != "->" {
			line = words[0] + " " + words[1] + " " + words[3]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestAListThatLiesReachesNothing(t *testing.T) {
	dest := t.TempDir()
	writeFiles(t, dest, map[string]string{"src/x": "mine", "out/linked": "-> ../src"})
	root, err := os.OpenRoot(dest)
	check(t, err)
	defer func() { _ = root.Close() }()
	p := &puller{node: newShellNode(t), paths: []string{"out"}, root: root, res: &PullResult{}, got: map[string]string{}, left: PullLimits{10, 100}, lim: PullLimits{10, 100}, stage: "."}
	check(t, p.parse("now 5 tar\nlist\n"+
		"1 1 81a4 .//../x\n1 1 81a4 .///etc/x\n1 1 81a4 .//out/../x\n1 1 81a4 .//other\n-5 1 81a4 .//out/minus\nx .//out/odd\n1 1 f1a4 .//out/kind\n1 1 81a4 .//out/.GIT/hooks\n"+
		"1 1 41ed .//out/linked/made\n1 1 81a4 .//out/linked/x\n"))
	if len(p.res.Skipped) != 8 {
		t.Errorf("skipped %q", p.res.Skipped)
	}
	wanted, err := p.choose()
	check(t, err)
	for _, item := range wanted {
		check(t, p.store(item, func(w io.Writer) error { _, err := w.Write([]byte("evil")); return err }))
	}
	want := "\"out\" dir\n\"out/linked\" -> ../src\n\"src\" dir\n\"src/x\" 644 \"mine\""
	if got := withoutTimes(dirText(t, dest)); got != want {
		t.Errorf("here is\n%s\nwant\n%s", got, want)
	}
}

func TestAskedPathsMustLieInTheCodeDirectory(t *testing.T) {
	for _, p := range []string{"", "/etc", "..", "a/../../b", "\x00"} {
		if _, err := pullFrom(t.Context(), newShellNode(t), codeDir, []string{p}, t.TempDir(), PullLimits{}); err == nil {
			t.Errorf("%q is accepted", p)
		}
	}
}

func TestPullTakesTheWholeDirectoryWhenAsked(t *testing.T) {
	n, dest := newShellNode(t), t.TempDir()
	writeFiles(t, n.code(), map[string]string{"a": "1", "d/b": "2"})
	if res := pullTest(t, n, dest, "."); res.Files != 2 {
		t.Errorf("%v, skipped %q", res, res.Skipped)
	}
	if res, err := pullFrom(t.Context(), n, "not/there", []string{"a"}, dest, PullLimits{}); err != nil || len(res.Missing) != 1 {
		t.Errorf("%v, missing %q: %v", res, res.Missing, err)
	}
}

func TestPullResultIsOneLineForPeople(t *testing.T) {
	r := PullResult{Files: 1, Bytes: 48e3, Duration: 300 * time.Millisecond, Unchanged: 1200}
	if got, want := fmt.Sprint(r), "1 file, 48 kB in 0.3s (1,200 here already)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzUnpackingWhatANodeSends(f *testing.F) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	_ = w.WriteHeader(&tar.Header{Name: "out/a", Typeflag: tar.TypeReg, Size: 1})
	_, _ = w.Write([]byte("x"))
	_ = w.WriteHeader(&tar.Header{Name: "out/l", Typeflag: tar.TypeSymlink, Linkname: ".."})
	f.Add("now 1 tar\nlist\n1 1 81a4 .//out/a\n1 1 a1ff .//out/l\n", archive.Bytes())
	f.Fuzz(func(t *testing.T, list string, stream []byte) {
		above := t.TempDir()
		dest := filepath.Join(above, "dest")
		check(t, os.Mkdir(dest, 0o755))
		root, err := os.OpenRoot(dest)
		check(t, err)
		defer func() { _ = root.Close() }()
		p := &puller{node: &shellNode{}, paths: []string{"out"}, root: root, res: &PullResult{}, got: map[string]string{}, left: PullLimits{10, 1000}, lim: PullLimits{10, 1000}, stage: "stage"}
		check(t, root.Mkdir("stage", 0o755))
		if p.parse(list) != nil {
			return
		}
		wanted := map[string]pullItem{}
		items, _ := p.choose()
		for _, item := range items {
			wanted[item.path] = item
		}
		_, _ = p.unpack(bytes.NewReader(stream), wanted)
		entries, err := os.ReadDir(above)
		check(t, err)
		inside, err := os.ReadDir(dest)
		check(t, err)
		for _, e := range inside {
			if e.Name() != "out" && e.Name() != "stage" {
				t.Errorf("%q was written", e.Name())
			}
		}
		if len(entries) != 1 || p.res.Files > 10 || p.res.Bytes > 1000 {
			t.Errorf("outside: %v; %v", entries, p.res)
		}
	})
}
