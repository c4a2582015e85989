package local

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// tick is the unit of the times in /proc (USER_HZ), 100 on every Linux that Go
// runs on.
const tick = 10 * time.Millisecond

// pfKthread is the flag of a thread of the kernel (PF_KTHREAD).
const pfKthread = 0x00200000

// bootID tells a pid and start time of this boot from the same pair of another.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 8 {
		return "boot"
	}
	return string(id[:8])
})

// processes reads the process table, without the threads of the kernel: on a machine
// with many cores they are most of it.
func processes() ([]process, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("look at the process table: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("look at the process table: %w", err)
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := lookup(pid); err == nil && !p.kernel {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("look at the process table: /proc shows no process; mount it (mount -t proc proc /proc)")
	}
	return all, nil
}

// readProc reads a file of a process, one of a single line no further than to its
// end. A look at the table reads thousands, and os.ReadFile makes twice the system
// calls: it asks how large a file is and whether it can be waited for.
func readProc(pid int, name string, line bool) (text []byte, err error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // it was only read
	text = make([]byte, 0, 4096)
	for {
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n == 0:
			return text, nil
		default:
			if text = text[:len(text)+n]; line && text[len(text)-1] == '\n' {
				return text, nil
			}
			text = slices.Grow(text, 512)
		}
	}
}

// lookup reads the entry of one process.
func lookup(pid int) (process, error) {
	b, err := readProc(pid, "stat", true)
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, b)
}

// parseStat reads /proc/PID/stat. The name stands in parentheses and may
// contain anything, also parentheses and spaces.
func parseStat(pid int, b []byte) (process, error) {
	from, to := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if from < 0 || to < from {
		return process{}, fmt.Errorf("process %d: /proc/%d/stat has no name in it", pid, pid)
	}
	f := strings.Fields(string(b[to+1:])) // f[0] is field 3 of proc(5)
	if len(f) < 22 {
		return process{}, fmt.Errorf("process %d: /proc/%d/stat has only %d fields", pid, pid, len(f)+2)
	}
	num := func(field int) int64 { n, _ := strconv.ParseInt(f[field-3], 10, 64); return n }
	return process{
		pid: pid, ppid: int(num(4)), name: string(b[from+1 : to]),
		start: bootID() + "-" + f[22-3],
		// A process whose first thread ended looks like a zombie while its
		// other threads still run.
		dead:   (f[0] == "Z" || f[0] == "X") && num(20) <= 1,
		kernel: num(9)&pfKthread != 0,
		cpu:    time.Duration(num(14)+num(15)) * tick,
		rss:    num(24) * int64(os.Getpagesize()),
	}, nil
}

// carriers tells which processes carry the cookie or the mark of a cluster.
func carriers(id string) func(pid int) bool {
	want := markOf(id)
	return func(pid int) bool {
		return readMark(pid) == want || variable(pid, cookieName) == id
	}
}

// variable is an environment variable that a process was started with; empty
// when it has none of that name or does not let us look.
func variable(pid int, name string) string {
	env, err := readProc(pid, "environ", false)
	if err != nil {
		return ""
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if k, v, ok := bytes.Cut(entry, []byte("=")); ok && string(k) == name {
			return string(v)
		}
	}
	return ""
}

// rlimitRTTime is RLIMIT_RTTIME, how many microseconds a real-time process may
// run without a system call.
const rlimitRTTime = 15

// markOf makes a number for a limit that nobody reaches (it is more than ten
// thousand years) and nobody sets. Limits are inherited by everything, also by
// what called setsid, forked twice and cleared its environment, and anyone may
// read them: so a process that lost both its parent and its cookie is still
// known as ours.
func markOf(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return 1<<61 | binary.BigEndian.Uint64(sum[:8])>>4
}

// mark sets the mark on this process and so on all it starts. Where the limit
// is already set by someone it stays as it is, and the cookie has to do.
func mark(id string) error {
	v := markOf(id)
	return unix.Setrlimit(rlimitRTTime, &unix.Rlimit{Cur: v, Max: v})
}

// readMark reads the limit of a process; 0 when it has none.
func readMark(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, rlimitRTTime, nil, &limit) == nil {
		if limit.Cur == unix.RLIM_INFINITY {
			return 0
		}
		return limit.Cur
	}
	b, err := readProc(pid, "limits", false) // as of other users' processes
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(b), "Max realtime timeout")
	if !ok {
		return 0
	}
	f := strings.Fields(rest)
	if len(f) < 2 {
		return 0
	}
	v, _ := strconv.ParseUint(f[0], 10, 64) // "unlimited" is 0: no mark
	return v
}

// adoptOrphans makes this process the parent of every descendant whose own
// parent ends, so that none can hide from it by forking twice.
func adoptOrphans() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// runningOn finds what runs on a node. Orphans are adopted: all are descendants.
func runningOn(pid int, _ string, _ int) finder { return descendantsOf(pid) }

// dropInherited closes what leaked in from whoever started dlwb (a make job
// server, a pipe that someone reads to its end): a node lives for days and must
// not keep it open. The runtime's own descriptors are anonymous inodes.
func dropInherited(keep int) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 || fd == keep {
			continue
		}
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(to, "anon_inode:") {
			_ = syscall.Close(fd)
		}
	}
}

// mountsBelow lists the mount points at and in a directory.
func mountsBelow(dir string) ([]string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("look for mounts in %s: %w", dir, err)
	}
	octal := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 {
			if at := octal.Replace(f[4]); strings.HasPrefix(at+"/", dir+"/") {
				found = append(found, at)
			}
		}
	}
	return found, nil
}

// pollable gives back the master side of a pty in the mode in which closing it
// ends a read that waits.
func pollable(master *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	_ = master.Close()
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "pty"), nil
}
