//go:build linux

// Package runbox sees, for the tests of both sides, what of run r1 lies in a
// node's home and what of it runs there.
package runbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is for what must come, on a machine that others use too.
const Patience = time.Minute

// Box is a node's home.
type Box struct {
	T    testing.TB
	Home string
	UID  int // whose processes are all the box's; 0: those of nobody
}

// Process is one that is no zombie.
type Process struct {
	PID  int
	Args string
}

// File is where a file of the run lies.
func (b *Box) File(name string) string { return filepath.Join(b.Home, ".dlwb/runs/r1", name) }

// Has reports whether there is such a file.
func (b *Box) Has(name string) bool {
	_, err := os.Stat(b.File(name))
	return !errors.Is(err, fs.ErrNotExist)
}

// Read is what stands in a file of the run; nothing where there is none.
func (b *Box) Read(name string) string {
	text, _ := os.ReadFile(b.File(name))
	return string(text)
}

// WaitLog waits until a log holds a text.
func (b *Box) WaitLog(name, text string) {
	b.T.Helper()
	Within(b.T, Patience, fmt.Sprintf("%q in %s", text, name), func() bool { return strings.Contains(b.Read(name), text) })
}

// Supervisor is the process that supervises the run.
func (b *Box) Supervisor() int {
	b.T.Helper()
	pid, err := strconv.Atoi(strings.Fields(b.Read("pid") + " -")[0])
	if err != nil {
		b.T.Fatal(err)
	}
	return pid
}

// Kill sends a signal, and waits for the end that SIGKILL is.
func (b *Box) Kill(pid int, sig syscall.Signal) {
	b.T.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		b.T.Fatal(err)
	}
	if sig == syscall.SIGKILL {
		Within(b.T, Patience, "it is dead", func() bool { return !IsAlive(pid) })
	}
}

// Processes are those alive that have the box's home in their environment, or
// its path in their arguments, or the box's user.
func (b *Box) Processes() []Process {
	b.T.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		b.T.Fatal(err)
	}
	var found []Process
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		environ, _ := os.ReadFile(dir + "/environ")
		args, _ := os.ReadFile(dir + "/cmdline")
		ours := slices.Contains(strings.Split(string(environ), "\x00"), "HOME="+b.Home) || bytes.Contains(args, []byte(b.Home))
		if info, err := os.Stat(dir); err == nil && b.UID != 0 {
			ours = ours || int(info.Sys().(*syscall.Stat_t).Uid) == b.UID
		}
		if ours && IsAlive(pid) {
			found = append(found, Process{pid, strings.ReplaceAll(string(args), "\x00", " ")})
		}
	}
	return found
}

// Left waits until no process is left, and gives those that are.
func (b *Box) Left(limit time.Duration) []Process {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		if left := b.Processes(); len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// IsAlive reports whether there is a process that is no zombie.
func IsAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	return rest != "" && !strings.ContainsAny(rest[:1], "ZX")
}

// Within waits until something is so: for Patience at least.
func Within(t testing.TB, limit time.Duration, what string, so func() bool) {
	t.Helper()
	limit = max(limit, Patience)
	for end := time.Now().Add(limit); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
