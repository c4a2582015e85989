//go:build linux

package transfer

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/namejson"
	"github.com/dlwb/dlwb/internal/shellword"
)

func TestPullTakesOnlyWhatTheRulesSayIsOwn(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"old": "1", "older/a": "1"})
	before, err := lookAt(t.Context(), n, n.code(), []string{"out"})
	check(t, err)
	writeFiles(t, n.code("out"), map[string]string{"new": "1", "newer/a": "1"})
	rules := PullRules{Own: func(p, state string) bool { return !before.Holds(p, state) }}
	res, err := pullBy(t.Context(), n, n.code(), []string{"out"}, dest, rules)
	check(t, err)
	if got := dirText(t, dest); strings.Contains(got, "old") || !strings.Contains(got, "out/newer/a") || res.Files != 2 || res.Others != 2 {
		t.Errorf("%d files came, %d others:\n%s", res.Files, res.Others, got)
	}
}

func TestPullReplacesOnlyWhatItPutThere(t *testing.T) {
	n, dest := newAgentNode(t), t.TempDir()
	writeFiles(t, n.code("out"), map[string]string{"model.pt": "of run b", "log": "1"})
	writeFiles(t, dest, map[string]string{"out/model.pt": "of run a"})
	rules := PullRules{Placed: map[string]Placed{}, Mark: "b"}
	read := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dest, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	res, err := pullBy(t.Context(), n, n.code(), []string{"out"}, dest, rules)
	check(t, err)
	read("out/model.pt", "of run a")
	read("out/model.b.pt", "of run b")
	if len(res.Moved) != 1 || !strings.Contains(res.Moved[0], "out/model.b.pt") {
		t.Errorf("moved %q", res.Moved)
	}
	writeFiles(t, n.code("out"), map[string]string{"model.pt": "of run b, later", "log": "12"})
	res, err = pullBy(t.Context(), n, n.code(), []string{"out"}, dest, rules)
	check(t, err)
	read("out/model.pt", "of run a")
	read("out/model.b.pt", "of run b, later")
	read("out/log", "12")
	if len(res.Moved) != 0 {
		t.Errorf("moved again: %q", res.Moved)
	}
	writeFiles(t, dest, map[string]string{"out/log": "a person's own"})
	writeFiles(t, n.code("out"), map[string]string{"log": "123"})
	_, err = pullBy(t.Context(), n, n.code(), []string{"out"}, dest, rules)
	check(t, err)
	read("out/log", "a person's own")
	read("out/log.b", "123")
}

func TestALookTellsWhatWasWrittenSince(t *testing.T) {
	n := newAgentNode(t)
	writeFiles(t, n.code("out"), map[string]string{"same": "1", "grown": "1", "rewritten": "1", "touched back": "1", "sub/same": "1"})
	check(t, os.Symlink("same", n.code("out/newest")))
	makeOld(t, n.code("out"))
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	before, err := lookAt(t.Context(), n, n.code(), []string{"out/", "not there"})
	check(t, err)
	nextTick(t)
	writeFiles(t, n.code("out"), map[string]string{"grown": "12", "rewritten": "2", "touched back": "2", "new": "1", "sub/new": "1"})
	check(t, os.Chtimes(n.code("out/touched back"), then, then))
	check(t, os.Remove(n.code("out/newest")))
	check(t, os.Symlink("new", n.code("out/newest")))
	after := statesOf(t, n, "out/", "not there")
	var changed []string
	for p, state := range after {
		if !before.Holds(p, state) {
			changed = append(changed, strings.TrimPrefix(p, "out/"))
		}
	}
	slices.Sort(changed)
	if want := []string{"grown", "new", "newest", "rewritten", "sub/new", "touched back"}; !slices.Equal(changed, want) {
		t.Errorf("changed %q, want %q\nafter %v", changed, want, after)
	}
	if before.Len() != 6 {
		t.Errorf("before were %d files", before.Len())
	}
}

// statesOf are the files below paths of a node's code directory, with their states.
func statesOf(t *testing.T, n *agentNode, paths ...string) (states map[string]string) {
	t.Helper()
	check(t, eachOf(t.Context(), n, n.code(), paths, func() func(string, string) error {
		states = map[string]string{}
		return func(path, state string) error {
			states[path] = state
			return nil
		}
	}))
	return states
}

// earlierSeen is what an earlier dlwb noted of files.
func earlierSeen(t *testing.T, states map[string]string) (s Seen) {
	t.Helper()
	text, err := json.Marshal(namejson.Keys(states, namejson.Encode))
	check(t, err)
	check(t, json.Unmarshal(text, &s))
	return s
}

// nextTick waits until files are written at another time than before.
func nextTick(t *testing.T) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	written := func() time.Time {
		check(t, os.WriteFile(probe, nil, 0o600))
		info, err := os.Stat(probe)
		check(t, err)
		return info.ModTime()
	}
	for began := written(); written().Equal(began); {
		time.Sleep(time.Millisecond)
	}
}

// What lies in stores was noted by a script that called stat: GNU's, or that of
// busybox, which tells whole seconds.
func TestAStateIsWhatAnEarlierVersionNoted(t *testing.T) {
	n := newAgentNode(t)
	writeFiles(t, n.code(), map[string]string{"a": "text", "old": "x", "ancient": "yy", "whole": "", "l": "-> a"})
	for name, at := range map[string]time.Time{"old": time.Unix(-2, 25e7), "ancient": time.Unix(-1, 5e8), "whole": time.Unix(-7, 0)} {
		check(t, os.Chtimes(n.code(name), at, at))
	}
	for tool, line := range map[string]string{"gnu": "stat", "busybox": "busybox stat"} {
		out, err := exec.Command("sh", "-c", "cd "+shellword.Join(n.code())+" && "+line+` -c '%s %i %.9Y %.9Z %n' a old ancient whole l`).Output()
		if err != nil {
			t.Skipf("%s: %v", line, err)
		}
		seen := statesOf(t, n, ".")
		for said := range strings.Lines(string(out)) {
			at := strings.LastIndexByte(said, ' ')
			name, state := strings.TrimSpace(said[at:]), said[:at]
			if tool == "gnu" && seen[name] != state {
				t.Errorf("%s is %q, and stat says %q", name, seen[name], state)
			}
			if recent := name == "a" || name == "l"; recent && !earlierSeen(t, map[string]string{name: state}).Holds(name, seen[name]) {
				t.Errorf("%s: %q is not the same as %q, as %s says", name, seen[name], state, tool)
			}
		}
	}
}

func TestStatesOfWholeSecondsAreComparedAsFarAsTheyGo(t *testing.T) {
	for _, c := range []struct {
		noted, now string
		same       bool
	}{
		{"5 7 10.000000001 11.000000002", "5 7 10.000000001 11.000000002", true},
		{"5 7 10.000000001 11.000000002", "5 7 10.000000001 11.000000003", false},
		{"5 7 10 11", "5 7 10.000000001 11.000000002", true},
		{"5 7 10 11", "5 7 10.5 12.5", false},
		{"5 7 10 11", "6 7 10.5 11.5", false},
		{"5 7 10 11", "5 8 10.5 11.5", false},
		{"", "5 8 10.5 11.5", false},
	} {
		seen := earlierSeen(t, map[string]string{"a": c.noted, "exact": "5 7 1.5 1.5"})
		if got := seen.Holds("a", c.now); got != c.same || seen.Holds("exact", "5 7 1.25 1.5") {
			t.Errorf("%q and %q are the same: %v", c.noted, c.now, got)
		}
	}
}
