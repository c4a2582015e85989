//go:build linux

package remote

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

// box is what lies on a node, and what runs there.
type box struct {
	t    *testing.T
	home string
}

const forever = "while :; do sleep 1; done"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ranks are plain ranks of run r1 that run the given sh programs.
func ranks(programs ...string) []Proc {
	procs := make([]Proc, len(programs))
	for i, program := range programs {
		name := fmt.Sprintf("rank-%d", i)
		procs[i] = Proc{
			Name: name, Ranks: []int{i}, Log: name + ".log",
			Env:  []string{fmt.Sprintf("RANK=%d", i)},
			Argv: []string{"sh", "~/.dlwb/bin/rank", "~/.dlwb/runs/r1", "sh", "-c", program},
		}
	}
	return procs
}

// within waits until something is so.
func within(t *testing.T, limit time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

func (b *box) file(name string) string { return filepath.Join(b.home, ".dlwb/runs/r1", name) }

func (b *box) has(name string) bool {
	_, err := os.Stat(b.file(name))
	return !errors.Is(err, fs.ErrNotExist)
}

func (b *box) read(name string) string {
	text, _ := os.ReadFile(b.file(name))
	return string(text)
}

// waitLog waits until a log holds a text.
func (b *box) waitLog(name, text string) {
	b.t.Helper()
	within(b.t, 10*time.Second, fmt.Sprintf("%q in %s", text, name), func() bool { return strings.Contains(b.read(name), text) })
}

type process struct {
	pid  int
	args string
}

// processes are those alive that have the box's home in their environment, or
// its path in their arguments.
func (b *box) processes() []process {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	must(b.t, err)
	var found []process
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		environ, _ := os.ReadFile(dir + "/environ")
		args, _ := os.ReadFile(dir + "/cmdline")
		ours := slices.Contains(strings.Split(string(environ), "\x00"), "HOME="+b.home) || bytes.Contains(args, []byte(b.home))
		if ours && isAlive(pid) {
			found = append(found, process{pid, strings.ReplaceAll(string(args), "\x00", " ")})
		}
	}
	return found
}

// isAlive reports whether there is a process that is no zombie.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')'):]), " ")
	return rest != "" && !strings.ContainsAny(rest[:1], "ZX")
}

// kinds is a status in short: "rank-ended 1 3".
func kinds(statuses []Status) []string {
	var all []string
	for _, s := range statuses {
		switch s.Kind {
		case RankStarted:
			all = append(all, fmt.Sprintf("%s %d", s.Kind, s.Rank))
		case RankEnded:
			all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %d %s", s.Kind, s.Rank, s.Code, s.Signal)))
		case Ended:
			all = append(all, fmt.Sprintf("%s %d", s.Kind, s.Code))
		case Stopping, PeerTold:
			all = append(all, s.Kind+" "+s.Why)
		default:
			all = append(all, s.Kind)
		}
	}
	return all
}

// wantOrder checks that the statuses hold the given ones in this order.
func wantOrder(t *testing.T, s RunState, want ...string) {
	t.Helper()
	rest := kinds(s.Statuses)
	for _, w := range want {
		i := slices.Index(rest, w)
		if i < 0 {
			t.Errorf("%q is missing, or not in this place, in %q", w, kinds(s.Statuses))
			return
		}
		rest = rest[i+1:]
	}
}

// killSupervise kills the process that supervises, and nothing else.
func (b *box) killSupervise() {
	b.t.Helper()
	pid, err := strconv.Atoi(strings.Fields(b.read("pid"))[0])
	must(b.t, err)
	must(b.t, syscall.Kill(pid, syscall.SIGKILL))
	within(b.t, 5*time.Second, "supervise's end", func() bool { return !isAlive(pid) })
}
