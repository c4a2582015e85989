//go:build unix

package remote

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestALookTellsWhatWasWrittenSince(t *testing.T) {
	for name, make := range shellsOfNodes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := make(t)
			writeFiles(t, n.code("out"), map[string]string{"same": "1", "grown": "1", "rewritten": "1", "touched back": "1", "sub/same": "1"})
			check(t, os.Symlink("same", n.code("out/newest")))
			makeOld(t, n.code("out"))
			then := time.Now().Add(-time.Hour).Truncate(time.Second)
			before, err := lookAt(t.Context(), n, codeDir, []string{"out/", "not there"})
			check(t, err)
			nextSecond(t)
			writeFiles(t, n.code("out"), map[string]string{"grown": "12", "rewritten": "2", "touched back": "2", "new": "1", "sub/new": "1"})
			check(t, os.Chtimes(n.code("out/touched back"), then, then))
			check(t, os.Remove(n.code("out/newest")))
			check(t, os.Symlink("new", n.code("out/newest")))
			after, err := lookAt(t.Context(), n, codeDir, []string{"out/", "not there"})
			check(t, err)
			var changed []string
			for p, state := range after {
				if before[p] != state {
					changed = append(changed, strings.TrimPrefix(p, "out/"))
				}
			}
			slices.Sort(changed)
			if want := []string{"grown", "new", "newest", "rewritten", "sub/new", "touched back"}; !slices.Equal(changed, want) {
				t.Errorf("changed %q, want %q\nbefore %v\nafter %v", changed, want, before, after)
			}
			if len(before) != 6 {
				t.Errorf("before were %q", slices.Sorted(maps.Keys(before)))
			}
		})
	}
}

func TestPullTakesOnlyWhatTheRulesSayIsOwn(t *testing.T) {
	n, dest := newShellNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"old": "1", "older/a": "1"})
	before, err := lookAt(t.Context(), n, codeDir, []string{"out"})
	check(t, err)
	writeFiles(t, n.code("out"), map[string]string{"new": "1", "newer/a": "1"})
	rules := PullRules{Own: func(p, state string) bool { return before[p] != state }}
	res, err := pullBy(t.Context(), n, codeDir, []string{"out"}, dest, rules)
	check(t, err)
	if got := dirText(t, dest); strings.Contains(got, "old") || !strings.Contains(got, "out/newer/a") || res.Files != 2 || res.Others != 2 {
		t.Errorf("%d files came, %d others:\n%s", res.Files, res.Others, got)
	}
}

func TestPullReplacesOnlyWhatItPutThere(t *testing.T) {
	n, dest := newShellNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"model.pt": "of run b", "log": "1"})
	writeFiles(t, dest, map[string]string{"out/model.pt": "of run a"})
	rules := PullRules{Placed: map[string]Placed{}, Mark: "b"}
	read := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	res, err := pullBy(t.Context(), n, codeDir, []string{"out"}, dest, rules)
	check(t, err)
	read("out/model.pt", "of run a")
	read("out/model.b.pt", "of run b")
	if len(res.Moved) != 1 || !strings.Contains(res.Moved[0], "out/model.b.pt") {
		t.Errorf("moved %q", res.Moved)
	}
	writeFiles(t, n.code("out"), map[string]string{"model.pt": "of run b, later", "log": "12"})
	res, err = pullBy(t.Context(), n, codeDir, []string{"out"}, dest, rules)
	check(t, err)
	read("out/model.pt", "of run a")
	read("out/model.b.pt", "of run b, later")
	read("out/log", "12")
	if len(res.Moved) != 0 {
		t.Errorf("moved again: %q", res.Moved)
	}
	writeFiles(t, dest, map[string]string{"out/log": "a person's own"})
	writeFiles(t, n.code("out"), map[string]string{"log": "123"})
	_, err = pullBy(t.Context(), n, codeDir, []string{"out"}, dest, rules)
	check(t, err)
	read("out/log", "a person's own")
	read("out/log.b", "123")
}

// nextSecond waits until files are written in another second: busybox's stat
// tells whole ones, and the clock of files is a little behind.
func nextSecond(t *testing.T) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	written := func() int64 {
		check(t, os.WriteFile(probe, nil, 0o600))
		info, err := os.Stat(probe)
		check(t, err)
		return info.ModTime().Unix()
	}
	for began := written(); written() == began; {
		time.Sleep(10 * time.Millisecond)
	}
}
