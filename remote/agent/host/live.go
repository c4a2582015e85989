//go:build linux

package host

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a live process of a run.
type process struct {
	PID int
	Dir string // the run's
}

// cookie is what the environment of each process of a run holds.
const cookie = "DLWB_RUN_DIR="

// environMost is how much of an environment is read.
const environMost = 4 << 20

// live are the processes of the runs below a home directory, as far as their
// environment says. Only processes of our own user are asked: no other user can
// make root end somebody else's process by a forged environment.
func live(home string) (found []process) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || owner("/proc/"+e.Name()) != os.Geteuid() {
			continue
		}
		if dir := filepath.Clean(runDir(pid)); strings.HasPrefix(dir, filepath.Join(home, ".dlwb", "runs")+"/") {
			found = append(found, process{pid, dir})
		}
	}
	return found
}

// runDir is the run directory that the environment of a process names.
func runDir(pid int) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	b, _ := io.ReadAll(io.LimitReader(f, environMost))
	for entry := range bytes.SplitSeq(b, []byte{0}) {
		if dir, ok := bytes.CutPrefix(entry, []byte(cookie)); ok {
			return string(dir)
		}
	}
	return ""
}
