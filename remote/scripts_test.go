//go:build linux

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inEachShell runs a test once per shell, each in a home of its own, and checks
// that it left no process behind.
func inEachShell(t *testing.T, test func(t *testing.T, b *box)) {
	t.Helper()
	t.Parallel()
	for _, shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, shell)
			test(t, b)
			b.wantNothingLeft()
		})
	}
}

// box is a node without ssh: a home directory, and a PATH on which `sh` is the
// shell under test.
type box struct {
	t    *testing.T
	home string
	bin  string
	env  []string
}

const forever = "while :; do sleep 1; done"

func newBox(t *testing.T, shell string) *box {
	t.Helper()
	b := &box{t: t, bin: shellDir(t, shell)}
	home, err := os.MkdirTemp("", "dlwb-box-")
	must(t, err)
	b.home = home
	t.Cleanup(func() {
		for _, p := range b.processes() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(home)
	})
	b.env = []string{"HOME=" + home, "PATH=" + b.bin + ":" + os.Getenv("PATH")}
	text, _ := install()
	b.sh(text)
	return b
}

// shellDir is a directory in which `sh` is the given shell, with the tools that
// come with it.
func shellDir(t *testing.T, shell string) string {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Fatalf("this test needs %s: apt-get install -y dash bash busybox", shell)
	}
	dir := t.TempDir()
	names := []string{"sh"}
	if shell == "busybox" {
		names = append(names, busyboxScriptTools...)
	}
	for _, name := range names {
		must(t, os.Symlink(path, filepath.Join(dir, name)))
	}
	return dir
}

// busyboxScriptTools are what the scripts use, where busybox is all there is.
var busyboxScriptTools = strings.Fields("awk cat cksum cut date dd df find grep head id ls mkdir mkfifo mktemp mv ps rm rmdir sed setsid sleep tail tr wc")

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// try runs a text by sh as Exec does: over stdin.
func (b *box) try(text string) (stdout, stderr string, code int) {
	b.t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(filepath.Join(b.bin, "sh"))
	cmd.Env, cmd.Dir = b.env, b.home
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (b *box) sh(text string) string {
	b.t.Helper()
	out, errs, code := b.try(text)
	if code != 0 {
		b.t.Fatalf("exit code %d; it said: %s%s", code, out, errs)
	}
	return out
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

func (b *box) wantNothingLeft() {
	b.t.Helper()
	var left []process
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if left = b.processes(); len(left) == 0 {
			return
		}
	}
	b.t.Errorf("processes are left: %v", left)
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

// An installation that finds no room says so, and leaves the scripts that are
// there as they were.
func TestInstallOnAFullDiskChangesNothing(t *testing.T) {
	inEachShell(t, func(t *testing.T, b *box) {
		disk := smallDisk(t, 96)
		bin := filepath.Join(disk, ".dlwb/bin")
		must(t, os.MkdirAll(bin, 0o700))
		must(t, os.WriteFile(filepath.Join(bin, "peer"), []byte("as it was"), 0o600))
		must(t, os.WriteFile(filepath.Join(disk, "hold"), make([]byte, 80<<10), 0o600))
		text, _ := install()
		_, errs, code := b.try("HOME=" + quoteWord(disk) + "\n" + text)
		if code != 74 || !strings.Contains(errs, "can't write "+bin+"/") || !strings.Contains(errs, "is the disk full?") {
			t.Errorf("exit code %d: %s", code, errs)
		}
		left, err := os.ReadDir(bin)
		must(t, err)
		if kept, _ := os.ReadFile(filepath.Join(bin, "peer")); len(left) != 1 || string(kept) != "as it was" {
			t.Errorf("%v is there, and peer is %.40q", left, kept)
		}
	})
}

// killSupervise kills the process that supervises, and nothing else.
func (b *box) killSupervise() {
	b.t.Helper()
	pid, err := strconv.Atoi(strings.Fields(b.read("pid"))[0])
	must(b.t, err)
	must(b.t, syscall.Kill(pid, syscall.SIGKILL))
	within(b.t, 5*time.Second, "supervise's end", func() bool { return !isAlive(pid) })
}
