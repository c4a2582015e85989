//go:build linux

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// lookLimit bounds each thing that is asked of the host: a program or a file
// system that hangs must not keep the rest from being told.
const lookLimit = 8 * time.Second

// look tells what the host is and has. It changes nothing.
func (h *Host) look(r hostclaim.Request) hostclaim.Answer {
	a := hostclaim.Answer{Facts: hostclaim.Facts{
		Now: time.Now().Unix(), OS: runtime.GOOS + "/" + runtime.GOARCH, User: userName(os.Geteuid(), os.Getpid()), Home: h.Home,
	}}
	f := &a.Facts
	f.Machine, f.Name = machine()
	var all sync.WaitGroup
	all.Go(func() {
		at, ok := within(lookLimit, func() place { return lookAt(h.Home) })
		f.Disk, f.Inode, f.HomeRoom = at.disk, at.inode, at.room
		if !ok {
			f.HomeRoom.Problem = hostclaim.Hangs
			return
		}
		a.Claim = h.claim()
	})
	if r.Dir != "" {
		all.Go(func() {
			at, ok := within(lookLimit, func() place { return lookAt(r.Dir) })
			if f.DirRoom = at.room; !ok {
				f.DirRoom.Problem = hostclaim.Hangs
			}
		})
	}
	if r.Line == "" {
		all.Go(func() { f.Python, f.NoPython = h.python(r.Python) })
	} else {
		all.Go(func() { f.Said = said(r.Line) })
	}
	all.Go(func() { f.GPUs, f.Users, f.Silent = gpus() })
	all.Wait()
	return a
}

// lineLimit bounds a line of sh that a look runs: the first start of an interpreter from
// a file system on the network takes its time.
const lineLimit = 20 * time.Second

// said is what a line of sh printed, also where it did not end.
func said(line string) []byte {
	out, _ := ask(lineLimit, "sh", "-c", line)
	return []byte(out[:min(len(out), hostclaim.SaidMost)])
}

// machine tells this machine, and this boot of it, from others.
func machine() (id, name string) {
	for _, file := range []string{"/etc/machine-id", "/proc/sys/kernel/random/boot_id"} {
		b, _ := os.ReadFile(file) // a container may have neither
		id += strings.TrimSpace(string(b)) + " "
	}
	name, _ = os.Hostname()
	return id + name, name
}

// place is what the system tells of a directory.
type place struct {
	disk  string
	inode uint64
	room  hostclaim.Room
}

// lookAt looks at a directory that dlwb would write to.
func lookAt(dir string) place {
	p := place{disk: diskOf(dir), room: hostclaim.Room{Files: -1}}
	info, err := os.Stat(dir)
	switch {
	case err != nil || !info.IsDir():
		p.room.Problem = hostclaim.NoDirectory
		return p
	case unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) != nil:
		p.room.Problem = hostclaim.ReadOnly
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		p.inode = stat.Ino
	}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Blocks > 0 {
		p.room.Known = true
		p.room.Bytes = int64(fs.Bavail) * fs.Frsize
		if fs.Files > 0 {
			p.room.Files = int64(fs.Ffree)
		}
	}
	return p
}

// diskOf is what is mounted where a directory lies: a device, or a server's
// directory.
func diskOf(dir string) (source string) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	longest := -1
	for line := range strings.Lines(string(table)) {
		mount, device, _ := strings.Cut(line, " - ")
		f, d := strings.Fields(mount), strings.Fields(device)
		if len(f) < 5 || len(d) < 2 {
			continue
		}
		point := octal(f[4])
		inside := dir == point || strings.HasPrefix(dir, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest { // of two on one point the later one covers the other
			longest, source = len(point), octal(d[1])
		}
	}
	return source
}

// octal undoes what the kernel does to blanks in names.
func octal(name string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(name)
}

// interpreters are where Python is looked for, below the home directory too.
var interpreters = []string{"python3", "/opt/conda/bin/python3", "miniconda3/bin/python3", "anaconda3/bin/python3", "miniforge3/bin/python3"}

// python gives the version of the first interpreter that runs, and whether the
// one that the profile gives does not.
func (h *Host) python(given string) (version string, missing bool) {
	if given != "" {
		if version = h.pythonVersion(given); version != "" {
			return version, false
		}
	}
	deadline := time.Now().Add(lookLimit)
	for _, name := range interpreters {
		if version = h.pythonVersion(name); version != "" || time.Now().After(deadline) {
			break
		}
	}
	return version, given != ""
}

func (h *Host) pythonVersion(name string) string {
	if strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = h.at(name)
	}
	out, err := ask(lookLimit, name, "-c", `import sys; print("dlwb %d.%d.%d" % sys.version_info[:3])`)
	_, version, ok := strings.Cut(out, "dlwb ")
	if err != nil || !ok {
		return ""
	}
	version, _, _ = strings.Cut(version, "\n")
	return strings.TrimSpace(version)
}

// userName is the name of a user, of whom a process is known: ps asks the
// directories on the network, where the users of large sites are.
func userName(uid, pid int) string {
	out, err := ask(lookLimit, "ps", "-o", "user=", "-p", strconv.Itoa(pid))
	if name := strings.TrimSpace(out); err == nil && name != "" {
		return name
	}
	if uid < 0 {
		return ""
	}
	return localName(uid)
}

// localName is the name of a user of this machine, or the number.
func localName(uid int) string {
	table, _ := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(table)) {
		if f := strings.SplitN(line, ":", 4); len(f) == 4 && f[2] == fmt.Sprint(uid) {
			return f[0]
		}
	}
	return strconv.Itoa(uid)
}
