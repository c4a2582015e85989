//go:build linux

package host

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/containers"
	"github.com/dlwb/dlwb/internal/hostclaim"
)

// ours are the names in ~/.dlwb that dlwb uses, or has used. They go also where
// others have put something beside them.
var ours = []string{"bin", "runs", "sync", "manifests", "kept", "compat", "in", "look", "jupyter", "tensorboard", "fetched", "active", "meet",
	"peers", "peer_key", "peer_known_hosts", "claim", "claims", "leaving"}

// isOurs reports whether a file of ~/.dlwb is dlwb's, or was to become that.
func isOurs(name string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(name, "."), ".")
	return slices.Contains(ours, first)
}

// stopLimit bounds the stop of one run: its grace may be long.
const stopLimit = 5 * time.Minute

// remove gives the host back: it ends what a life of a cluster still runs there,
// removes what was put there, and looks again. Where the claim is of another
// life, or there is none, it does nothing.
func (h *Host) remove(r hostclaim.Request) (a hostclaim.Answer, err error) {
	a.Claim = h.claimOf(r.Life)
	if !a.Claim.Held() {
		h.removeTraces(r.Life)
		a.Claim = h.claim()
		return a, nil
	}
	if check(a.Claim) != nil {
		return a, nil
	}
	for _, run := range slices.Compact(slices.Sorted(maps.Values(h.liveOf(a.Claim)))) {
		h.stop(run)
	}
	if n := len(h.liveOf(a.Claim)); n > 0 { // their files may be what tells why
		a.Left = h.remains(a.Claim, n, h.first().Life != r.Life)
		return a, nil
	}
	h.removeGroups(a.Claim)
	lent := h.lent(a.Claim)
	if !lent {
		has, left := containers.Remove(context.Background(), h.at(filepath.Join("dlwb", a.Claim.Cluster)), nil)
		defer func() { a.Left.Contained = has }()
		if left != nil { // the files say what to look for
			a.Left = h.remains(a.Claim, 0, h.first().Life != r.Life)
			a.Left.Containers, a.Left.Unsure = left.Error(), len(left.Containers) == 0
			return a, nil
		}
	}
	if dir := a.Claim.Elsewhere(); dir != "" && !r.KeepCode && !lent {
		_ = removeAll(dir)
		_ = os.Remove(lifeFile(dir))
	}
	if r.Keep { // another host with this home removes what is in it
		h.removeAgents()
		a.Left = h.elsewhere(a.Claim, r)
		return a, nil
	}
	if !lent {
		_ = removeAll(h.at(filepath.Join("dlwb", a.Claim.Cluster)))
	}
	h.removeAgents()
	h.removeRuns(a.Claim) // the most of it
	done := h.leave(r.Life, leavingMost)
	beside := h.first().Life != r.Life
	h.unpair(a.Claim, beside)
	if !had(a.Claim, "dlwb") && !h.hasOthers(a.Claim) { // who comes may just be making his place in it
		_ = os.Remove(h.at("dlwb"))
	}
	others := h.others(a.Claim)
	if len(others) > 0 {
		h.removeClaimed(a.Claim)
	} else {
		h.removeOurs(a.Claim)
	}
	done()
	_ = os.Remove(h.at(".dlwb")) // where it is empty
	a.Left = h.remains(a.Claim, len(h.liveOf(a.Claim)), beside)
	switch {
	case len(others) > 0:
		a.Left.Others = others[:min(len(others), namedMost)]
	case had(a.Claim, ".dlwb"):
		a.Left.Others = names(h.at(".dlwb"), namedMost)
	}
	return a, nil
}

// namedMost is how much of what others have is named.
const namedMost = 3

// removeTraces removes what an interrupted claim or removal of a life has left that has
// no claim.
func (h *Host) removeTraces(life string) {
	if text, err := os.ReadFile(h.at(leavingFile)); err == nil && life != "" && string(text) == life {
		_ = os.Remove(h.at(leavingFile))
	}
	h.unclaim(life)
	entries, _ := os.ReadDir(h.at(".dlwb"))
	for _, e := range entries {
		if life != "" && strings.HasPrefix(e.Name(), "claim."+life+".") {
			_ = os.Remove(h.at(filepath.Join(".dlwb", e.Name())))
		}
	}
	_ = os.Remove(h.at(".dlwb")) // where it is empty
}

func had(c hostclaim.Claim, place string) bool { return slices.Contains(c.Had, place) }

// removeGroups removes the empty control groups of runs whose supervisor was
// killed.
func (h *Host) removeGroups(c hostclaim.Claim) {
	for _, run := range h.runs() {
		if h.foreign(run, c) {
			continue // it may start something in its own at any moment
		}
		b, err := os.ReadFile(filepath.Join(run, "cgroup"))
		group, _, _ := strings.Cut(string(b), "\n")
		if err == nil && group == filepath.Clean(group) && strings.HasPrefix(group, "/sys/fs/cgroup/") && strings.Contains(group, "/dlwb-") {
			_ = os.Remove(group) // a directory, and only when it is empty
		}
	}
}

// unpair takes the lines of a life's other nodes out of authorized_keys, and what was
// made for them when it is empty.
func (h *Host) unpair(c hostclaim.Claim, beside bool) {
	keys := h.at(authorizedKeys)
	_ = removeLines(keys, h.peerLines(c, beside))
	if info, err := os.Stat(keys); err == nil && info.Size() == 0 && !had(c, ".ssh/authorized_keys") {
		_ = os.Remove(keys)
	}
	if !had(c, ".ssh") {
		_ = os.Remove(h.at(".ssh"))
	}
}

// removeAgents removes the agents that lie outside of ~/.dlwb.
func (h *Host) removeAgents() {
	for _, path := range h.agents() {
		_ = os.Remove(path)
	}
	for _, dir := range h.Agents {
		_ = os.Remove(dir) // where it is empty
	}
}

// agents are the agents in the user's own directories outside of ~/.dlwb, without those
// that a live run needs.
func (h *Host) agents() (found []string) {
	used := sync.OnceValue(h.needed)
	for _, dir := range h.Agents {
		if owner(dir) != os.Geteuid() {
			continue
		}
		for _, pattern := range []string{"agent-*", ".agent-*"} {
			files, _ := fs.Glob(os.DirFS(dir), pattern)
			for _, file := range files {
				name := strings.TrimSuffix(strings.TrimPrefix(file, "."), ".whole")
				if !used()[filepath.Join(dir, name)] {
					found = append(found, filepath.Join(dir, file))
				}
			}
		}
	}
	return found
}

// removeOurs removes ~/.dlwb, the claims last; where others have put something there, only
// what is ours.
func (h *Host) removeOurs(c hostclaim.Claim) {
	shared := had(c, ".dlwb")
	last := []string{filepath.Base(hostclaim.File), filepath.Base(claimsDir), filepath.Base(leavingFile)}
	entries, _ := os.ReadDir(h.at(".dlwb"))
	for _, e := range entries {
		if name := e.Name(); !slices.Contains(last, name) && (!shared || isOurs(name)) {
			_ = removeAll(h.at(filepath.Join(".dlwb", name)))
		}
	}
	h.handOver(c.Life)
	h.unclaim(c.Life)
}

// removeAll is os.RemoveAll, also of directories that their owner may not write
// to, as package caches have them.
func removeAll(path string) error {
	if !exists(path) { // on a file system that can't be written, that would be an error
		return nil
	}
	err := os.RemoveAll(path)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(path)
}

// authorizedKeys has the line that lets the nodes of a cluster in.
const authorizedKeys = ".ssh/authorized_keys"

// remains tells what is still there.
func (h *Host) remains(c hostclaim.Claim, processes int, beside bool) hostclaim.Remains {
	r := hostclaim.Remains{Processes: processes}
	code, dir := "dlwb/"+c.Cluster, c.Elsewhere()
	if h.lent(c) {
		code, dir = "", ""
	}
	for _, name := range []string{".dlwb", code} {
		if path := h.at(name); name != "" && exists(path) {
			r.Places = append(r.Places, hostclaim.Place{Path: name, Files: count(path)})
		}
	}
	for _, path := range append([]string{dir}, h.agents()...) {
		if path != "" && exists(path) {
			r.Places = append(r.Places, hostclaim.Place{Path: path, Files: count(path)})
		}
	}
	if holds(h.at(authorizedKeys), h.peerLines(c, beside)) {
		r.Places = append(r.Places, hostclaim.Place{Path: authorizedKeys, Files: 1})
	}
	return r
}

// elsewhere is what is left on this host outside of a home that others have too.
func (h *Host) elsewhere(c hostclaim.Claim, asked hostclaim.Request) (r hostclaim.Remains) {
	r.Processes = len(h.liveOf(c))
	dir := c.Elsewhere()
	if asked.KeepCode || h.lent(c) {
		dir = ""
	}
	for _, path := range append([]string{dir}, h.agents()...) {
		if path != "" && exists(path) {
			r.Places = append(r.Places, hostclaim.Place{Path: path, Files: count(path)})
		}
	}
	return r
}

// count is how many files a directory holds; of a file it is 1.
func count(path string) (n int) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if d != nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// names are the first entries of a directory.
func names(dir string, most int) (found []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries[:min(len(entries), most)] {
		found = append(found, filepath.Base(dir)+"/"+e.Name())
	}
	return found
}
