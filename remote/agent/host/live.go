//go:build linux

package host

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/remote/agent/ending"
	"github.com/dlwb/dlwb/remote/agent/proc"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// live are the processes of the runs below the home directory, each with its
// run's directory: known by their environment, by the log that they print into,
// by the run's control group, or by their parent. Only processes of our own user
// are ours: no other user can make root end somebody else's process by a forged
// environment.
func (h *Host) live() map[int]string {
	all := h.at(".dlwb/runs")
	real := all
	if path, err := filepath.EvalSymlinks(all); err == nil {
		real = path
	}
	found := map[int]string{}
	table := proc.Table()
	for pid := range table {
		if !proc.Own(pid) {
			continue
		}
		if run := runOf(pid, all, real); run != "" {
			found[pid] = run
		}
	}
	dirs, _ := os.ReadDir(all)
	for _, e := range dirs {
		dir := filepath.Join(all, e.Name())
		for _, pid := range inGroup(runs.At(dir).Cgroup()) {
			found[pid] = dir
		}
	}
	inherit(table, found)
	delete(found, os.Getpid())
	return found
}

// runOf is the run of a process, by its own word or by where it prints to.
func runOf(pid int, all, real string) string {
	for _, v := range proc.Environ(pid) {
		dir, ok := bytes.CutPrefix(v, []byte(runs.EnvDir+"="))
		if run := filepath.Clean(string(dir)); ok && strings.HasPrefix(run, all+"/") {
			return run
		}
	}
	for _, to := range proc.Prints(pid) {
		rest, ours := strings.CutPrefix(to, real+"/")
		if ours && strings.HasSuffix(strings.TrimSuffix(rest, " (deleted)"), ".pipe") {
			id, _, _ := strings.Cut(rest, "/")
			return filepath.Join(all, id)
		}
	}
	return ""
}

// inGroup are the processes of a control group and of those below it.
func inGroup(dir string) (pids []int) {
	if dir == "" {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "cgroup.procs" {
			text, _ := os.ReadFile(path)
			for word := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil && pid > 1 {
					pids = append(pids, pid)
				}
			}
		}
		return nil
	})
	return pids
}

// inherit gives the children of a run's processes to the run.
func inherit(table map[int]proc.Process, found map[int]string) {
	for more := true; more; {
		more = false
		for pid, p := range table {
			if run := found[p.Parent]; run != "" && found[pid] == "" {
				found[pid], more = run, true
			}
		}
	}
}

// stop ends a run, by the stop that belongs to the dlwb which has started it, or
// by ours where there is none any more.
func (h *Host) stop(dir string) {
	const why = "the cluster was taken down"
	run := runs.At(dir)
	if program := h.at(".dlwb/bin/stop"); exists(program) {
		_, _ = ask(stopLimit, "sh", append([]string{program, run.ID, "-"}, strings.Fields(why)...)...)
		return
	}
	ending.Order{Run: run, Grace: run.Settings().Grace, Why: why}.End()
}
