//go:build linux

package manynodes

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/overlay"
	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/trusttest"
)

const user = "ada"

// lab is many hosts, and a laptop that knows them.
type lab struct {
	t     *testing.T
	hosts []*host
	exe   string
	home  string // of the laptop
	dir   string // of the project
}

func newLab(t *testing.T, n int) *lab {
	t.Helper()
	// All hosts together have the cores of this machine: a look at one of them may take
	// as long as it takes.
	exe := overlay.Build(t, nil, overlay.Edit{File: "sshconn/limits.go", Changes: map[string]string{
		"Dial: 10 *": "Dial: 120 *", "Open: 10 *": "Open: 120 *", "Reply: 15 *": "Reply: 120 *", "Script: 20 *": "Script: 240 *"}},
		overlay.Edit{File: "workbench/follow/intervene.go", Changes: map[string]string{"StopLimit = 20 *": "StopLimit = 240 *"}},
		overlay.Edit{File: "workbench/train.go", Changes: map[string]string{"DrainLimit + 15*": "DrainLimit + 240*"}})
	l := &lab{t: t, exe: exe, home: t.TempDir()}
	l.dir = filepath.Join(l.home, "project")
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	homes := t.TempDir()
	t.Cleanup(func() { endAllBelow(homes) })
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = free.Close() }) // else somebody may get it before all hosts have it
	port := free.Addr().(*net.TCPAddr).Port
	var config, known strings.Builder
	for i := range n {
		addr := fmt.Sprintf("127.77.%d.%d", i/200, i%200+1)
		h := newHost(t, net.JoinHostPort(addr, strconv.Itoa(port)), filepath.Join(homes, fmt.Sprintf("gpu%d", i)), key)
		t.Cleanup(h.close)
		l.hosts = append(l.hosts, h)
		fmt.Fprintf(&config, "Host gpu%d\n HostName %s\n Port %d\n User %s\n", i, addr, port, user)
		fmt.Fprintf(&known, "[%s]:%d %s", addr, port, ssh.MarshalAuthorizedKey(h.key.PublicKey()))
	}
	l.write(".ssh/config", config.String())
	l.write(".ssh/known_hosts", known.String())
	l.write(".ssh/id_ed25519", string(pem.EncodeToMemory(block)))
	l.write("project/train.py", "import time\nprint('step 1 loss: 0.5', flush=True)\ntime.sleep(3600)\n")
	l.write("project/dlwb.yaml", fmt.Sprintf("name: many\nprovider: hosts\nmachines: {hosts: [\"gpu[0-%d]\"]}\n"+
		"environment: {python: /usr/bin/python3}\nrun: {engine: plain, command: train.py}\n", n-1))
	return l
}

// endAllBelow ends whatever runs from a directory, where a test has failed.
func endAllBelow(dir string) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		environ, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if pid != os.Getpid() && bytes.Contains(environ, []byte("HOME="+dir)) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func (l *lab) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// command is dlwb on the laptop.
func (l *lab) command(args ...string) *exec.Cmd {
	state := filepath.Join(l.home, "state")
	trusttest.Trust(state, l.dir)
	c := exec.Command(l.exe, args...)
	c.Dir = l.dir
	c.Env = append(os.Environ(), "HOME="+l.home, "DLWB_HOME="+state, "DLWB_KEEPER=off", "TERM=dumb", "SSH_AUTH_SOCK=")
	return c
}

// said is what a process prints, safe to read while it goes on.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// use is what a process has taken so far.
type use struct {
	cpu  time.Duration
	peak int // MB
}

// of reads what a process has taken.
func of(t *testing.T, pid int) (u use) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, f := range fields[11:13] { // utime and stime, in hundredths of a second
		n, _ := strconv.Atoi(f)
		u.cpu += time.Duration(n) * 10 * time.Millisecond
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			u.peak = n / 1024
		}
	}
	return u
}

// long is when something is certainly stuck.
const long = 6 * time.Minute

// The laptop goes through the life of a run on all hosts of a large lab with little
// memory. The test tells how much of a core it takes while they train, too: a tenth at
// most for 256 of them, on a machine that does nothing else.
func TestALabOfManyHostsTakesLittleOfTheLaptop(t *testing.T) {
	sample.Leave(t)
	n := sample.Of(t, 16, 256, "hosts")
	l := newLab(t, n)
	out := &said{}
	run := l.command("run", "--plain")
	run.Stdout, run.Stderr = out, out
	began := time.Now()
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Wait() }()
	t.Cleanup(func() { _ = run.Process.Kill() })
	for !strings.Contains(out.String(), "rank 0 | step 1 loss: 0.5") {
		select {
		case <-ended:
			t.Fatalf("the run has ended before it said something:\n%s", out)
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(began) > long {
			t.Fatalf("nothing was said in %s:\n%s", long, out)
		}
	}
	first := of(t, run.Process.Pid)
	t.Logf("%d hosts: the first rank has said something %.1f s after enter; dlwb has taken %.1f s of a core and %d MB", n, time.Since(began).Seconds(), first.cpu.Seconds(), first.peak)
	time.Sleep(3 * time.Second) // what the launch leaves to do
	before := of(t, run.Process.Pid)
	quiet := time.Duration(sample.Of(t, 5, 20, "seconds of looking")) * time.Second
	time.Sleep(quiet)
	after := of(t, run.Process.Pid)
	idle := (after.cpu - before.cpu).Seconds() * 10 / quiet.Seconds()
	t.Logf("%d hosts: idle, %.2f s of a core in 10 s, %d MB at most", n, idle, after.peak)
	// A race detector takes several times the memory.
	// 200 MB for 256 hosts are aimed at; 164 to 184 were measured, on a machine with a load of 40 to 100.
	if most := 100 + n*2/5; !raced && after.peak > most {
		t.Errorf("%d MB, at most %d", after.peak, most)
	}
	for _, args := range [][]string{{"ls"}, {"stop"}, {"down", "--plain"}} {
		began := time.Now()
		text, err := l.command(args...).CombinedOutput()
		t.Logf("dlwb %s: %.1f s", strings.Join(args, " "), time.Since(began).Seconds())
		if err != nil {
			t.Fatalf("dlwb %v: %v\n%s", args, err, text)
		}
	}
	<-ended
	for _, h := range l.hosts {
		if left, _ := filepath.Glob(filepath.Join(h.home, "*")); len(left) > 0 {
			t.Errorf("left on %s: %v", h.addr, left)
		}
	}
}
