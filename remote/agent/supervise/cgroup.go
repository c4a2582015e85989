//go:build linux

package supervise

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote/agent/runs"
)

// cgroup is a group of the run's own, where one may be made: it keeps together
// whatever the run starts, also when nobody supervises it any more. Only the
// processes of the run are in it.
type cgroup struct {
	own   string // its directory; empty: none
	outer string // the one that this process is in
	dir   *os.File
}

// enclose makes the group. No right, no cgroup of version 2, no DLWB_CGROUP:
// the run goes without.
func enclose(r runs.Run) cgroup {
	var g cgroup
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		at, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok || strings.Contains(at, "..") {
			continue
		}
		for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			if _, err := os.Stat(top + "/cgroup.controllers"); err == nil {
				g.outer = filepath.Join(top, at)
			}
		}
	}
	if g.outer == "" || os.Getenv("DLWB_CGROUP") == "no" {
		return g
	}
	own := filepath.Join(g.outer, groupName(r))
	if os.Mkdir(own, 0o755) != nil {
		return g
	}
	dir, err := os.Open(own)
	if err != nil || r.Write("cgroup", []byte(own+"\n")) != nil {
		_ = os.Remove(own)
		return g
	}
	g.own, g.dir = own, dir
	return g
}

// groupName: two nodes may share a machine, and each may have a run of that id.
func groupName(r runs.Run) string {
	return fmt.Sprintf("dlwb-%s-%d", r.ID, crc32.ChecksumIEEE([]byte(r.Dir)))
}

// remove removes the group, of which the kernel may still have to bury the last
// process.
func (g *cgroup) remove() {
	for try := 0; g.own != "" && try < 20; try++ {
		if err := os.Remove(g.own); err == nil || os.IsNotExist(err) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// starved is how many processes of the group the kernel has ended for lack of
// memory (memory.events of cgroup v2); -1 where nobody counts.
func (g *cgroup) starved() int {
	for _, dir := range []string{g.own, g.outer} {
		text, err := os.ReadFile(dir + "/memory.events")
		if dir == "" || err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(count))
				return n
			}
		}
	}
	return -1
}
