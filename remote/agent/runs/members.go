//go:build linux

package runs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/remote/agent/proc"
)

// Member is a live process of a run. Role is empty for what the training
// started; ours say "supervise", "rank" or, in older versions, "log".
type Member struct {
	proc.Process
	Role string
}

// Members gives the live processes of the run, without the calling one and
// what that has started, unless it is the run's supervisor itself. A process
// belongs to a run when its environment holds the run's cookie, when it is in
// the supervisor's session or in the run's cgroup, when it prints into the pipe
// of one of the run's logs, or when it descends from such a process.
func (r Run) Members() []Member {
	sup, alive, _ := r.Supervisor()
	// Environments before the table: who has ended between the two is not there
	// any more.
	ours := r.marked()
	table := proc.Table()
	for pid, p := range table {
		if alive && (p.Session == sup.PID || p.Parent == sup.PID) {
			ours[pid] = true
		}
	}
	proc.Spread(table, ours)
	caller := map[int]bool{os.Getpid(): true}
	proc.Spread(table, caller)
	supervised := map[int]bool{sup.PID: alive} // also by one that the caller has started
	proc.Spread(table, supervised)
	var members []Member
	for pid := range ours {
		if p, there := table[pid]; there && pid > 1 && pid != os.Getpid() && (supervised[pid] || !caller[pid]) {
			members = append(members, Member{p, role(p)})
		}
	}
	return members
}

// role is what a process says of itself. In the middle of an exec it says
// nothing: what the supervisor is about to start is not taken for the training.
// podman, and what it has beside each container, can't say it, and are ended like what
// brings a log: when what runs inside has ended they end, and remove the container,
// which a signal of their own would leave for ever.
func role(p proc.Process) string {
	own, blank := roleOf(p.PID)
	if name := proc.Name(p.PID); own == "" && (name == "conmon" || name == "podman") {
		return "log"
	}
	if blank {
		own, _ = roleOf(p.Parent)
	}
	return own
}

// marked gives those that are known by themselves.
func (r Run) marked() map[int]bool {
	ours, real := map[int]bool{}, r.real()
	for _, pid := range proc.Numbers() {
		if proc.Own(pid) && (r.hasCookie(pid) || printsInto(pid, real)) {
			ours[pid] = true
		}
	}
	r.grouped(ours)
	return ours
}

func (r Run) hasCookie(pid int) bool {
	cookie := []byte(EnvDir + "=" + r.Dir)
	for _, v := range proc.Environ(pid) {
		if bytes.Equal(v, cookie) {
			return true
		}
	}
	return false
}

// printsInto: what has cleared its environment and left its session still prints
// to a pipe of the run's. Its name stays when the file is gone.
func printsInto(pid int, dir string) bool {
	for _, to := range proc.Prints(pid) {
		if strings.HasSuffix(strings.TrimSuffix(to, " (deleted)"), ".pipe") && strings.HasPrefix(to, dir+"/") {
			return true
		}
	}
	return false
}

// real is the run's directory as the kernel names it.
func (r Run) real() string {
	if dir, err := filepath.EvalSymlinks(r.Dir); err == nil {
		return dir
	}
	return r.Dir
}

const cgroups = "/sys/fs/cgroup"

// Cgroup is the directory of the run's own cgroup; empty where it has none.
func (r Run) Cgroup() string {
	if dir := r.Line("cgroup"); strings.HasPrefix(dir, cgroups+"/") && !strings.Contains(dir, "..") {
		return dir
	}
	return ""
}

// grouped adds what is in the run's cgroup or below it.
func (r Run) grouped(ours map[int]bool) {
	group := strings.TrimPrefix(r.Line("cgroup"), cgroups)
	if !strings.Contains(group, "dlwb-") {
		return
	}
	for _, top := range []string{cgroups, cgroups + "/systemd", cgroups + "/unified"} {
		_ = filepath.WalkDir(filepath.Join(top, group), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Name() == "cgroup.procs" {
				text, _ := os.ReadFile(path)
				for word := range strings.FieldsSeq(string(text)) {
					pid, _ := strconv.Atoi(word)
					ours[pid] = true
				}
			}
			return nil
		})
	}
}

func roleOf(pid int) (role string, blank bool) {
	environ := proc.Environ(pid)
	for _, v := range environ {
		if value, ok := bytes.CutPrefix(v, []byte(EnvRole+"=")); ok {
			role = string(value)
		}
	}
	return role, len(environ) == 0
}
