//go:build linux

// Package proc reads the machine's process table from /proc. A process is named
// by its number and the moment of its start together: numbers are given again.
package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one line of the process table.
type Process struct {
	PID, Parent, Group, Session int
	State                       byte   // as in proc(5)
	Start                       uint64 // in clock ticks since the boot
}

// Alive reports whether it is a process that still does something.
func (p Process) Alive() bool { return p.PID > 0 && p.State != 'Z' && p.State != 'X' && p.State != 'x' }

// Same reports whether both are the same process, and not two that have had one
// number after the other.
func (p Process) Same(q Process) bool { return p.PID == q.PID && p.Start == q.Start }

// ID names a process for good.
type ID struct {
	PID   int
	Start uint64
}

// ID gives its name.
func (p Process) ID() ID { return ID{p.PID, p.Start} }

// Read looks at one process; ok is false when there is no live one.
func Read(pid int) (p Process, ok bool) {
	p, ok = read(pid, make([]byte, statMost))
	return p, ok && p.Alive()
}

// EndedChild reports whether a process has ended, and one of some parents has not taken
// note of it yet.
func EndedChild(pid int, parents map[int]bool) bool {
	p, ok := read(pid, make([]byte, statMost))
	return ok && p.State == 'Z' && parents[p.Parent]
}

// Name is the name of the program that a process runs, of at most 15 bytes; empty
// when there is no such process.
func Name(pid int) string {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	return string(bytes.TrimSpace(text))
}

// statMost is more than a line of /proc/PID/stat can have.
const statMost = 4 << 10

func read(pid int, buf []byte) (Process, bool) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Process{}, false
	}
	n, err := unix.Read(fd, buf)
	_ = unix.Close(fd)
	if err != nil || n <= 0 {
		return Process{}, false
	}
	return parse(pid, buf[:n])
}

// The fields of /proc/PID/stat behind the name.
const (
	fieldState = iota
	fieldParent
	fieldGroup
	fieldSession
	fieldStart = 19
)

// parse reads a line of /proc/PID/stat. The name in it may hold anything:
// blanks, brackets, line ends and whole lines of this kind. Behind the last
// bracket there are numbers only.
func parse(pid int, stat []byte) (Process, bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= fieldStart || len(fields[fieldState]) != 1 {
		return Process{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(string(fields[i]))
		return n
	}
	start, err := strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	return Process{pid, number(fieldParent), number(fieldGroup), number(fieldSession), fields[fieldState][0], start}, err == nil
}

// Numbers gives those of all processes of the machine.
func Numbers() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Table gives the live processes of the machine, by number.
func Table() map[int]Process {
	table, buf := map[int]Process{}, make([]byte, statMost)
	for _, pid := range Numbers() {
		if p, ok := read(pid, buf); ok && p.Alive() {
			table[pid] = p
		}
	}
	return table
}

// Spread adds to a set of processes all that descend from one in it.
func Spread(table map[int]Process, set map[int]bool) {
	for more := true; more; {
		more = false
		for pid, p := range table {
			if set[p.Parent] && !set[pid] {
				set[pid], more = true, true
			}
		}
	}
}

// Own reports whether a process is our own user's.
func Own(pid int) bool {
	var st unix.Stat_t
	return unix.Stat("/proc/"+strconv.Itoa(pid), &st) == nil && int(st.Uid) == os.Geteuid()
}

// Environ gives a process's environment as it was at its exec. It is empty in
// the middle of one, and where the process has cleared it.
func Environ(pid int) [][]byte {
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if text = bytes.Trim(text, "\x00"); len(text) == 0 {
		return nil
	}
	return bytes.Split(text, []byte{0})
}

// Prints gives what the process's standard output and error are.
func Prints(pid int) []string {
	var to []string
	for _, fd := range []string{"1", "2"} {
		if target, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/" + fd); err == nil {
			to = append(to, target)
		}
	}
	return to
}

// AwaitEnd waits until one of some processes has ended, at most for a time. The kernel
// tells it, so nothing is looked at meanwhile. What a kernel without pidfds (before
// Linux 5.3) can't tell, or one that is asked for too many, goes unseen until then.
func AwaitEnd(some []Process, most time.Duration) {
	end := time.Now().Add(most)
	var ends []unix.PollFd
	defer func() {
		for _, e := range ends {
			_ = unix.Close(int(e.Fd))
		}
	}()
	for _, p := range some {
		fd, err := unix.PidfdOpen(p.PID, 0)
		if errors.Is(err, unix.ESRCH) {
			return
		}
		if err == nil {
			ends = append(ends, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
	}
	for left := most; left > 0; left = time.Until(end) {
		if _, err := unix.Poll(ends, int(left.Milliseconds())+1); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Signal sends a signal to that process and to no later one of its number.
func (p Process) Signal(sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	} else if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EPERM) {
		return err
	}
	if now, ok := Read(p.PID); !ok || !now.Same(p) {
		return unix.ESRCH
	}
	if err != nil { // a kernel without pidfds
		return unix.Kill(p.PID, sig)
	}
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}
