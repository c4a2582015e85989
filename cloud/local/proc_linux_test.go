package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dlwb/dlwb/cloud"
)

func TestTheProcessTableIsReadAsItIs(t *testing.T) {
	t.Parallel()
	fields := func(state, threads string) string {
		f := strings.Fields(state + " 7 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 " + threads + " 0 4242 1000 3 0")
		return strings.Join(f, " ")
	}
	p, err := parseStat(12, []byte("12 (a) b (c\n) "+fields("S", "1")))
	if err != nil || p.name != "a) b (c\n" || p.ppid != 7 || p.dead || p.cpu.Seconds() != 2 || !strings.HasSuffix(p.start, "-4242") || p.rss != int64(3*os.Getpagesize()) {
		t.Errorf("%+v %v", p, err)
	}
	if p, _ := parseStat(12, []byte("12 (z) "+fields("Z", "1"))); !p.dead {
		t.Error("a zombie is taken for alive")
	}
	thread := strings.Replace(fields("S", "1"), "-1 0", "-1 2129984", 1) // its flags
	if k, _ := parseStat(12, []byte("12 (kswapd0) "+thread)); !k.kernel || p.kernel {
		t.Error("a thread of the kernel is not told from a process")
	}
	if p, _ := parseStat(12, []byte("12 (z) "+fields("Z", "3"))); p.dead {
		t.Error("a process with living threads is taken for dead")
	}
	for _, broken := range []string{"", "12 (", "12 (x) S 1"} {
		if p, err := parseStat(12, []byte(broken)); err == nil {
			t.Errorf("%q: %+v", broken, p)
		}
	}
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, p := range all {
		found = found || p.pid == os.Getpid() && p.ppid == os.Getppid() && p.rss > 0
	}
	if !found {
		t.Error("the process table does not list this process")
	}
}

func TestEverythingANodeStartsCarriesItsMark(t *testing.T) {
	t.Parallel()
	p := provider(t)
	client := login(t, up(t, p, 1, 0), 0)
	in, err := readIntent(p.dir + "/c")
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(sh(t, client, "env -i sleep 1000 >/dev/null 2>&1 </dev/null & echo $!"))
	eventually(t, "the process has no environment", func() bool { return variable(pid, cookieName) == "" })
	if got := readMark(pid); got != markOf(in.ID) {
		t.Errorf("its mark is %x, want %x", got, markOf(in.ID))
	}
	if readMark(os.Getpid()) != 0 || markOf("a") == markOf("b") {
		t.Error("marks do not tell processes apart")
	}
}

func FuzzStat(f *testing.F) {
	f.Add([]byte("12 (a) S 7 1 1 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 4242 1000 3 0"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if p, err := parseStat(1, b); err == nil && p.pid != 1 {
			t.Errorf("%+v", p)
		}
	})
}

func TestTheReceiptCountsFilesThatCouldNotBeRemoved(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs a mount, and so root")
	}
	p := provider(t)
	up(t, p, 1, 0)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "precious"), "kept")
	at := filepath.Join(nodeDir(filepath.Join(p.dir, "c"), 0), homeDir, "data set")
	mkdir(t, at)
	if err := syscall.Mount(outside, at, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("no mounts here: %v", err)
	}
	unmount := func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) }
	defer unmount()
	r, err := p.Down(t.Context(), cloud.Life{Name: "c"}, nil)
	if err == nil || !strings.Contains(err.Error(), "umount '"+at+"'") || r.Proven() || r.FilesLeft < 3 || r.ProcessesLeft != 0 {
		t.Errorf("down with a mount in the way: %v %+v", err, r)
	}
	if b, err := os.ReadFile(filepath.Join(outside, "precious")); err != nil || string(b) != "kept" {
		t.Errorf("down removed a file of another file system: %v", err)
	}
	unmount()
	down(t, p)
}

func TestTheReceiptCountsProcessesThatCouldNotBeEnded(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to start what the owner of the cluster can't end")
	}
	t.Parallel()
	// A cluster of an ordinary user, who ran something with sudo on it.
	dir := t.TempDir()
	p := New(filepath.Join(dir, "state"), copyOfTestBinary(t, dir))
	as := func(args ...string) *exec.Cmd {
		cmd := exec.Command(p.exe, args...)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		return cmd
	}
	t.Cleanup(func() { _, _ = p.Down(context.Background(), cloud.Life{Name: "c"}, nil) }) // when the test failed half way
	mkdir(t, p.dir)
	if err := os.Chown(p.dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	takeDown := func() (cloud.Receipt, error) {
		var r cloud.Receipt
		out, err := as(downCommand, p.dir, "c").Output()
		if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
			t.Fatalf("%v %v", err, jsonErr)
		}
		return r, err
	}
	startAndKill(t, as(starterCommand, p.dir, "c", "1"))
	in, err := readIntent(filepath.Join(p.dir, "c"))
	if err != nil {
		t.Fatal(err)
	}
	stray := exec.Command(p.exe, markedCommand, in.ID)
	input, err := stray.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := stray.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stray.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(said, make([]byte, len("marked\n"))); err != nil {
		t.Fatal(err)
	}
	r, err := takeDown()
	if err == nil || r.Proven() || r.ProcessesLeft != 1 || r.FilesLeft == 0 {
		t.Errorf("down with a process that can't be ended: %v %+v", err, r)
	}
	if last := r.Resources[len(r.Resources)-1]; last.State != cloud.Alive || !strings.HasPrefix(last.ID, fmt.Sprintf("pid %d (", stray.Process.Pid)) {
		t.Errorf("the receipt does not name it: %+v", r.Resources)
	}
	input.Close()
	_ = stray.Wait()
	if r, err := takeDown(); err != nil || !r.Proven() {
		t.Errorf("down, when it has ended: %v %+v", err, r)
	}
}

// copyOfTestBinary lies where every user can run it.
func copyOfTestBinary(t *testing.T, dir string) string {
	t.Helper()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not by ourselves: another test's fork would hold it open for writing, and
	// then nobody can run it.
	to := filepath.Join(dir, "dlwb")
	if out, err := exec.Command("cp", exe, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

// A look at the table is taken many times while a cluster is taken down: what is the
// kernel's is not looked into, and what has an end of a line is not read twice.
func TestTheTableHasNoThreadsOfTheKernel(t *testing.T) {
	t.Parallel()
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	own := false
	for _, p := range all {
		own = own || p.pid == os.Getpid()
		if p.kernel {
			t.Errorf("%s is in it", p.name)
		}
	}
	if !own {
		t.Error("this process is not in it")
	}
	short, err := readProc(os.Getpid(), "stat", true)
	if err != nil || !strings.HasSuffix(string(short), "\n") {
		t.Errorf("%q %v", short, err)
	}
	if limits, err := readProc(os.Getpid(), "limits", false); err != nil || strings.Count(string(limits), "\n") < 10 {
		t.Errorf("%q %v", limits, err)
	}
}
