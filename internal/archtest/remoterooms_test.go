package archtest

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// remoteRooms are the packages below remote that run on this machine or on both
// sides, and which of each other they may import; "" is remote itself, one node
// through its agent. What moves files stands above it and asks nodes by its Call.
var remoteRooms = map[string][]string{
	"":          {"duplex", "transport", "wire"},
	"keeper":    {""},
	"transfer":  {"", "cut", "transfer/gitfiles", "wire", "wire/bulk"},
	"wire":      {},
	"wire/bulk": {"wire"},
	"cut":       {"wire"},

	"transfer/gitfiles": {},
	"duplex":            {},
	"transport":         {},
	"engine":            {},
	"environment":       {},
}

// onTheNode are the packages of them that the agent, which runs on nodes, may
// import besides its own parts.
var onTheNode = []string{"cut", "duplex", "wire", "wire/bulk"}

func TestImportsPointDownInsideRemote(t *testing.T) {
	seen := map[string]bool{}
	for rel, file := range programFiles(t) {
		dir := path.Dir(filepath.ToSlash(rel))
		if dir != "remote" && !strings.HasPrefix(dir, "remote/") {
			continue
		}
		room := strings.TrimPrefix(strings.TrimPrefix(dir, "remote"), "/")
		agent := isAgent(room)
		allowed, known := remoteRooms[room]
		if agent {
			allowed = onTheNode
		} else if !known {
			t.Errorf("remote/%s has no place among the rooms; see this test", room)
		}
		seen[room] = true
		for _, name := range oursOf(t, file) {
			if name != "remote" && !strings.HasPrefix(name, "remote/") {
				continue
			}
			to := strings.TrimPrefix(strings.TrimPrefix(name, "remote"), "/")
			if !slices.Contains(allowed, to) && !(agent && isAgent(to)) {
				t.Errorf("%s imports %s; it may import only %q below remote", rel, name, allowed)
			}
		}
	}
	for room := range remoteRooms {
		if !seen[room] {
			t.Errorf("there is no remote/%s", room)
		}
	}
}

func isAgent(room string) bool { return room == "agent" || strings.HasPrefix(room, "agent/") }
