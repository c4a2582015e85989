//go:build linux

package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func pullTest(t testing.TB, n *agentNode, dest string, paths ...string) PullResult {
	t.Helper()
	res, err := pullBy(t.Context(), n, n.code(), paths, dest, PullRules{})
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

func TestPullBringsWhatIsThere(t *testing.T) {
	n, dest := newAgentNode(t), filepath.Join(t.TempDir(), "made", "here")
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
	nothingLeft(t, dest)
}

// nothingLeft checks that no half of a file is left.
func nothingLeft(t testing.TB, dest string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(dest, ".dlwb*")); len(left) > 0 {
		t.Errorf("%q was left behind", left)
	}
}

func TestPullFetchesAYoungFileAgain(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
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
	n, dest := newAgentNode(t), t.TempDir()
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
	n, dest, elsewhere := newAgentNode(t), t.TempDir(), t.TempDir()
	writeFiles(t, elsewhere, map[string]string{"sub/model": "weights"})
	writeFiles(t, n.code(), map[string]string{"out": "-> " + elsewhere})
	res := pullTest(t, n, dest, "out")
	if text, err := os.ReadFile(filepath.Join(dest, "out/sub/model")); string(text) != "weights" || len(res.Skipped) != 0 {
		t.Errorf("got %q, %v, skipped %q", text, err, res.Skipped)
	}
}

func TestPullStopsAtItsLimitsAndKeepsWhatIsWhole(t *testing.T) {
	n := newAgentNode(t)
	writeFiles(t, n.code("out"), map[string]string{"a": "1234", "b": "1234", "c": "1234"})
	for _, c := range []struct {
		lim PullLimits
		say string
	}{{PullLimits{MaxFiles: 3}, "out/c: more than 3 files"}, {PullLimits{MaxBytes: 11}, "out/c: more than 11 B"}} {
		dest := t.TempDir()
		res, err := pullBy(t.Context(), n, n.code(), []string{"out"}, dest, PullRules{Limits: c.lim})
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

func TestAskedPathsMustLieInTheCodeDirectory(t *testing.T) {
	for _, p := range []string{"", "/etc", "..", "a/../../b", "\x00"} {
		if _, err := pullBy(t.Context(), newAgentNode(t), codeDir, []string{p}, t.TempDir(), PullRules{}); err == nil {
			t.Errorf("%q is accepted", p)
		}
	}
}

func TestPullTakesTheWholeDirectoryWhenAsked(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code(), map[string]string{"a": "1", "d/b": "2"})
	if res := pullTest(t, n, dest, "."); res.Files != 2 {
		t.Errorf("%v, skipped %q", res, res.Skipped)
	}
	if res, err := pullBy(t.Context(), n, n.code("not/there"), []string{"a"}, dest, PullRules{}); err != nil || len(res.Missing) != 1 {
		t.Errorf("%v, missing %q: %v", res, res.Missing, err)
	}
}

func TestPullResultIsOneLineForPeople(t *testing.T) {
	r := PullResult{Files: 1, Bytes: 48e3, Duration: 300 * time.Millisecond, Unchanged: 1200}
	if got, want := fmt.Sprint(r), "1 file, 48 kB in 0.3s (1,200 here already)"; got != want {
		t.Errorf("got %q, want %q", got, want)
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
