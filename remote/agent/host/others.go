//go:build linux

package host

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// The home directory of a host may hold what other clusters have there, which take no
// claim: jobs of Slurm, whose login node it is or whose disk it shares, a cluster of
// another provider whose node it is, the records of a dlwb that somebody uses there.
// Whose a run is its directory tells: by the life of a cluster that it was launched in,
// by the job that it is a part of, and for runs of an older dlwb by the place of its code,
// which has the name of the cluster.

// claimed are the names in ~/.dlwb that only whoever has the claim uses. The others
// serve everybody who runs something there.
var claimed = []string{"meet", "claim", "peers", "peer_key", "peer_known_hosts"}

// services are those of which ~/.dlwb has a record for each life and node: SERVICE.LIFE.NODE.
var services = []string{"jupyter", "tensorboard"}

// foreign reports whether a run's directory is another's than that of the life with the
// claim. One that does not tell is taken for its own, as whatever a crash has left.
func (h *Host) foreign(run string, c hostclaim.Claim) bool {
	if life := runs.At(run).Line(runs.LifeFile); life != "" {
		return life != c.Life
	}
	if h.partOfJob(run) {
		return true
	}
	of := h.codeOf(run)
	return of != c.Cluster && (of != "" || h.keepsRecords() || h.hasOthers(c)) // it may be just being launched
}

// hasOthers reports whether other hosts with this home are had by other clusters, or are
// about to be.
func (h *Host) hasOthers(c hostclaim.Claim) bool {
	for _, other := range h.claimsAndComing() {
		if other.Life != c.Life {
			return true
		}
	}
	return false
}

// partOfJob reports whether a run is what one node does for a job of a scheduler.
func (h *Host) partOfJob(run string) bool {
	id := filepath.Base(run)
	end := strings.LastIndex(id, ".n")
	return end > 0 && exists(h.at(filepath.Join(".dlwb/jobs", id[:end])))
}

// codeOf is the name of the cluster in whose place below the home a run's code lies;
// empty: it is not known, or somewhere else.
func (h *Host) codeOf(run string) string {
	for dir := runs.At(run).Line("dir"); len(dir) > 1; dir = filepath.Dir(dir) {
		if around := filepath.Dir(dir); filepath.Base(around) == "dlwb" && same(filepath.Dir(around), h.Home) {
			return filepath.Base(dir)
		}
	}
	return ""
}

// keepsRecords reports whether ~/.dlwb is somebody's DLWB_HOME: then runs lies in it
// with what is on record of runs elsewhere.
func (h *Host) keepsRecords() bool { return exists(h.at(".dlwb/dlwb.db")) }

// others are what other clusters have in ~/.dlwb: their runs, their jobs, their hosts.
func (h *Host) others(c hostclaim.Claim) (found []string) {
	for _, run := range h.runs() {
		if h.foreign(run, c) {
			found = append(found, filepath.Join(".dlwb/runs", filepath.Base(run)))
		}
	}
	jobs, _ := os.ReadDir(h.at(".dlwb/jobs"))
	for _, job := range jobs {
		found = append(found, filepath.Join(".dlwb/jobs", job.Name()))
	}
	all := h.claimsAndComing()
	for _, name := range sortedKeys(all) {
		if all[name].Life != c.Life {
			found = append(found, filepath.Join(claimsDir, name))
		}
	}
	if h.keepsRecords() {
		found = append(found, ".dlwb/dlwb.db")
	}
	return found
}

// runs are the directories of all runs in the home.
func (h *Host) runs() (dirs []string) {
	entries, _ := os.ReadDir(h.at(".dlwb/runs"))
	for _, e := range entries {
		dirs = append(dirs, h.at(filepath.Join(".dlwb/runs", e.Name())))
	}
	return dirs
}

// lent reports whether another's run has its code in the place of the cluster: both have
// the same name.
func (h *Host) lent(c hostclaim.Claim) bool {
	return slices.ContainsFunc(h.runs(), func(run string) bool { return h.foreign(run, c) && h.codeOf(run) == c.Cluster })
}

// liveOf are the live processes of the cluster's own runs.
func (h *Host) liveOf(c hostclaim.Claim) map[int]string {
	live, foreign := h.live(), map[string]bool{}
	for pid, run := range live {
		is, known := foreign[run]
		if !known {
			is = h.foreign(run, c)
			foreign[run] = is
		}
		if is {
			delete(live, pid)
		}
	}
	return live
}

// removeRuns removes the claim's own runs.
func (h *Host) removeRuns(c hostclaim.Claim) {
	for _, run := range h.runs() {
		if !h.foreign(run, c) {
			_ = removeAll(run)
		}
	}
}

// removeClaimed takes from ~/.dlwb what is the claim's own, and leaves what others have
// there or need. The caller is the only one who leaves.
func (h *Host) removeClaimed(c hostclaim.Claim) {
	h.removeRuns(c)
	beside := h.first().Life != c.Life
	entries, _ := os.ReadDir(h.at(".dlwb"))
	for _, e := range entries {
		first, rest, _ := strings.Cut(strings.TrimPrefix(e.Name(), "."), ".")
		path := h.at(filepath.Join(".dlwb", e.Name()))
		switch {
		case first == "claim" && !strings.HasPrefix(rest, c.Life+"."): // of somebody who just comes
		case slices.Contains(services, first) && strings.HasPrefix(rest, c.Life+"."): // the token of a service that ran here
			_ = removeAll(path)
		case first == "meet":
			removeMeetings(path, c.Life)
		case slices.Contains(claimed, first) && (first == "claim" || h.goesWith(c.Life, rest, beside)):
			_ = removeAll(path)
		}
	}
	h.handOver(c.Life)
	h.unclaim(c.Life)
}

// goesWith reports whether what has this behind its name, in ~/.dlwb, goes with a life:
// what has the life there, and with the first cluster what is of nobody who is there.
func (h *Host) goesWith(life, rest string, beside bool) bool {
	of := func(life string) bool { return rest == life || strings.HasPrefix(rest, life+".") }
	if beside {
		return of(life)
	}
	for _, other := range h.claims() {
		if other.Life != life && of(other.Life) {
			return false
		}
	}
	return true
}

// removeMeetings removes the meetings of a life.
func removeMeetings(dir, life string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if isMeetingOf(e.Name(), life) {
			_ = removeAll(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir) // where it is empty
}

// needed are the agents outside of the home that live runs have been started by, whose
// launchers start ranks with them, also again; and those that run for another home, as on
// a node of a local cluster: what they start next they start by their own file.
func (h *Host) needed() map[string]bool {
	paths := map[string]bool{}
	for _, pid := range proc.Numbers() {
		if !proc.Own(pid) || pid == os.Getpid() {
			continue
		}
		for _, v := range proc.Environ(pid) {
			if path, ok := bytes.CutPrefix(v, []byte(runs.EnvBin+"=")); ok {
				paths[filepath.Clean(string(path))] = true
			}
			if home, ok := bytes.CutPrefix(v, []byte("HOME=")); ok && filepath.Clean(string(home)) != filepath.Clean(h.Home) {
				if exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); err == nil {
					paths[exe] = true
				}
			}
		}
	}
	return paths
}
