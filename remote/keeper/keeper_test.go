//go:build unix

package keeper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	_ "github.com/dlwb/dlwb/internal/agentbuilt"
	"github.com/dlwb/dlwb/internal/otheruser"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testprogram"
	"github.com/dlwb/dlwb/remote"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// desk is a state directory and the commands that use it.
type desk struct {
	t     *testing.T
	state string
	exe   string
}

// newDesk makes one, of which no keeper may be left.
func newDesk(t *testing.T) *desk {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t, t.TempDir(), exe}
	t.Cleanup(func() {
		if _, err := d.client().Stop(); err != nil {
			t.Error(err)
		}
		if left := d.status(); len(left) > 0 {
			t.Errorf("a keeper is left: %+v", left)
		}
	})
	return d
}

func (d *desk) client() *Client {
	d.t.Helper()
	c, err := New(d.state, d.exe)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *desk) status() []Status {
	d.t.Helper()
	all, err := d.client().Status()
	if err != nil {
		d.t.Fatal(err)
	}
	return all
}

// pid is the keeper's process.
func (d *desk) pid() int {
	d.t.Helper()
	all := d.status()
	if len(all) != 1 {
		d.t.Fatalf("%d keepers, want 1", len(all))
	}
	return all[0].PID
}

// command is a node as a command of its own has it: it borrows from the keeper.
func (d *desk) command(target remote.Target) *remote.Node {
	d.t.Helper()
	remote.BorrowFrom(d.client().Lender())
	defer remote.BorrowFrom(nil)
	n := remote.Open(target)
	d.t.Cleanup(func() { _ = n.Close() })
	return n
}

func targetOf(s *sshdtest.Server) remote.Target {
	return remote.Target{Name: "node0", Addr: s.Addr, User: s.User, HostKey: s.HostKey, KeyFile: s.KeyFile}
}

func says(t *testing.T, n *remote.Node, line, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := n.Exec(ctx, remote.Cmd{Line: line})
	if err != nil || strings.TrimSpace(string(r.Stdout)) != want {
		t.Fatalf("%s: %q, %v; want %q", line, r.Stdout, err, want)
	}
}

func logins(s *sshdtest.Server) int { return strings.Count(s.Log(), "Accepted publickey") }

// eventually waits for a condition.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestTheSecondCommandUsesTheConnectionOfTheFirst(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	for range 3 {
		n := d.command(targetOf(s))
		says(t, n, "echo here", "here")
		if n.HostKey() != s.HostKey {
			t.Errorf("the node's key is %q", n.HostKey())
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := logins(s); got != 1 {
		t.Errorf("%d logins, want 1", got)
	}
	eventually(t, "nobody uses it", func() bool {
		all := d.status()
		return len(all) == 1 && len(all[0].Nodes) == 1 && all[0].Current && all[0].Nodes[0].Users == 0
	})
}

func TestCommandsThatStartAtOnceStartOneKeeper(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	var all sync.WaitGroup
	nodes := make([]*remote.Node, 8)
	for i := range nodes {
		nodes[i] = d.command(targetOf(s))
	}
	for _, n := range nodes {
		all.Go(func() {
			if r, err := n.Exec(t.Context(), remote.Cmd{Line: "echo here"}); err != nil || string(r.Stdout) != "here\n" {
				t.Errorf("%q, %v", r.Stdout, err)
			}
		})
	}
	all.Wait()
	if d.pid(); logins(s) != 1 {
		t.Errorf("%d logins, want 1", logins(s))
	}
}

func TestWhatGoesThroughTheKeeperArrivesWhole(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	n := d.command(targetOf(s))
	sent := make([]byte, 24<<20)
	for i := range sent {
		sent[i] = byte(rand.N(256))
	}
	var some sync.WaitGroup
	for range 3 { // beside each other, on one connection
		some.Go(func() {
			var out bytes.Buffer
			r, err := n.Exec(t.Context(), remote.Cmd{Line: "cat; exit 7", Stdin: bytes.NewReader(sent), Stdout: &out})
			if err != nil || r.ExitCode != 7 || sha256.Sum256(out.Bytes()) != sha256.Sum256(sent) {
				t.Errorf("%d bytes came back of %d, code %d, %v", out.Len(), len(sent), r.ExitCode, err)
			}
		})
	}
	some.Wait()
}

func TestACommandThatIsGivenUpEndsThere(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	n, mark := d.command(targetOf(s)), filepath.Join(s.Home, "pid")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = n.Exec(ctx, remote.Cmd{Line: "echo $$ >" + mark + "; exec sleep 600"}) }()
	var pid int
	eventually(t, "the command began", func() bool {
		text, err := os.ReadFile(mark)
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		return err == nil
	})
	cancel()
	eventually(t, "the command ended", func() bool { return syscall.Kill(pid, 0) != nil })
	// So does one whose dlwb is gone, as after kill -9: its socket closes.
	_ = os.Remove(mark)
	go func() { _, _ = n.Exec(t.Context(), remote.Cmd{Line: "echo $$ >" + mark + "; exec sleep 600"}) }()
	eventually(t, "the command began", func() bool {
		text, err := os.ReadFile(mark)
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		return err == nil
	})
	_ = n.Close()
	eventually(t, "the command ended", func() bool { return syscall.Kill(pid, 0) != nil })
}

func TestAKilledKeeperIsALostConnectionAndTheNextCommandConnects(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	n := d.command(targetOf(s))
	says(t, n, "echo here", "here")
	ended := make(chan error, 1)
	began, to := io.Pipe()
	go func() {
		_, err := n.Exec(t.Context(), remote.Cmd{Line: "echo began; exec sleep 600", Stdout: to})
		ended <- err
	}()
	if _, err := began.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(d.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var lost *remote.LostError
	if err := <-ended; !errors.As(err, &lost) || !strings.Contains(err.Error(), "the connection was lost") || !strings.Contains(err.Error(), "keeper") {
		t.Errorf("the command under way said: %v", err)
	}
	says(t, n, "echo again", "again") // the same command goes on
	says(t, d.command(targetOf(s)), "echo again", "again")
	if logins(s) != 2 {
		t.Errorf("%d logins, want 2", logins(s))
	}
}

func TestALostConnectionIsToldToWhoBorrowsIt(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	n := d.command(targetOf(s))
	ended := make(chan error, 1)
	began, to := io.Pipe()
	go func() {
		_, err := n.Exec(t.Context(), remote.Cmd{Line: "echo began; exec sleep 600", Stdout: to})
		ended <- err
	}()
	if _, err := began.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	s.KillConnections()
	var lost *remote.LostError
	if err := <-ended; !errors.As(err, &lost) || strings.Contains(err.Error(), "keeper") {
		t.Errorf("the command under way said: %v", err)
	}
	says(t, n, "echo again", "again")
	says(t, d.command(targetOf(s)), "echo again", "again")
}

func TestAnIdleConnectionThatIsDeadIsNotUsed(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	says(t, d.command(targetOf(s)), "echo here", "here")
	s.KillConnections()
	says(t, d.command(targetOf(s)), "echo again", "again")
}

func TestAnotherHostKeyOrUserIsAnotherConnection(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	says(t, d.command(targetOf(s)), "echo here", "here")
	other := targetOf(s)
	other.HostKey = sshdtest.MakeKey(t, filepath.Join(t.TempDir(), "key"))
	var key *remote.HostKeyError
	if err := d.command(other).Connect(t.Context()); !errors.As(err, &key) || key.Name != "node0" || key.Want == "" || key.Got == "" {
		t.Errorf("with another host key: %v", err)
	}
	other = targetOf(s)
	other.KeyFile = filepath.Join(t.TempDir(), "key")
	sshdtest.MakeKey(t, other.KeyFile)
	var auth *remote.AuthError
	if err := d.command(other).Connect(t.Context()); !errors.As(err, &auth) {
		t.Errorf("with another key: %v", err)
	}
	other = targetOf(s)
	other.Addr = "127.0.0.1:1"
	var out *remote.UnreachableError
	if err := d.command(other).Connect(t.Context()); !errors.As(err, &out) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("where nobody listens: %v", err)
	}
}

func TestDroppedConnectionsEnd(t *testing.T) {
	s, other, d := sshdtest.Start(t), sshdtest.Start(t), newDesk(t)
	says(t, d.command(targetOf(s)), "echo here", "here")
	says(t, d.command(targetOf(other)), "echo here", "here")
	d.client().drop([]remote.Target{targetOf(s)})
	all := d.status()
	if len(all) != 1 || len(all[0].Nodes) != 1 || all[0].Nodes[0].Addr != other.Addr {
		t.Errorf("held after the drop: %+v", all)
	}
	says(t, d.command(targetOf(s)), "echo again", "again")
	if logins(s) != 2 || logins(other) != 1 {
		t.Errorf("%d and %d logins, want 2 and 1", logins(s), logins(other))
	}
}

func TestTheKeeperOfAnotherBuildIsNotSpokenTo(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	says(t, d.command(targetOf(s)), "echo here", "here")
	first := d.pid()
	text, err := os.ReadFile(d.exe)
	if err != nil {
		t.Fatal(err)
	}
	newer := *d
	newer.exe = filepath.Join(t.TempDir(), "dlwb")
	if err := testprogram.Write(newer.exe, text, 0o700); err != nil {
		t.Fatal(err)
	}
	says(t, newer.command(targetOf(s)), "echo here", "here")
	all := newer.status()
	if len(all) != 2 || slices.IndexFunc(all, func(s Status) bool { return s.Current == (s.PID != first) }) < 0 {
		t.Errorf("keepers: %+v", all)
	}
	// One that greets as another build is left alone.
	if _, err := ask(t.Context(), socketPath(d.state, d.client().build), question{Build: "other", Op: opLend}); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("a wrong greeting: %v", err)
	}
	if ended, err := newer.client().Stop(); ended != 2 || err != nil {
		t.Errorf("stop ended %d keepers, %v", ended, err)
	}
}

func TestASocketThatNobodyServesIsReplaced(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	path := socketPath(d.state, d.client().build)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
	says(t, d.command(targetOf(s)), "echo here", "here")
	d.pid()
}

func TestWithoutAKeeperTheCommandConnectsItself(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	for name, spoil := range map[string]func(*Client){
		"a program that can't be started": func(c *Client) { c.exe = filepath.Join(d.state, "nothing") },
		"a directory that can't be made":  func(c *Client) { c.state = "/proc/1/nothing" },
		"a program that is no keeper":     func(c *Client) { c.exe = "/bin/true" },
	} {
		c := d.client()
		spoil(c)
		c.build = fmt.Sprintf("%012x", len(name))
		remote.BorrowFrom(c.Lender())
		n := remote.Open(targetOf(s))
		remote.BorrowFrom(nil)
		says(t, n, "echo "+shortName(name), shortName(name))
		_ = n.Close()
	}
}

func shortName(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", "")
}

func TestALongStateDirectoryHasItsSocketElsewhere(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	d.state = filepath.Join(d.state, strings.Repeat("long/", 40))
	if err := os.MkdirAll(d.state, 0o700); err != nil {
		t.Fatal(err)
	}
	path := socketPath(d.state, d.client().build)
	if len(path) > 103 || strings.HasPrefix(path, d.state) {
		t.Fatalf("the socket would be at %s", path)
	}
	says(t, d.command(targetOf(s)), "echo here", "here")
	says(t, d.command(targetOf(s)), "echo here", "here")
	if logins(s) != 1 {
		t.Errorf("%d logins, want 1", logins(s))
	}
	if _, err := d.client().Stop(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{path, path + ".lock"} {
		if _, err := os.Stat(gone); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
}

func TestNobodyElseReachesTheSocket(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	says(t, d.command(targetOf(s)), "echo here", "here")
	path := socketPath(d.state, d.client().build)
	for at, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(at); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", at, info.Mode(), err)
		}
	}
	// Even where the modes were opened, the keeper looks at whose the other end is.
	for at := path; at != "/"; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && strings.HasPrefix(at, os.TempDir()) && at != os.TempDir() {
			if err := os.Chmod(at, info.Mode().Perm()|0o055|0o022); err != nil {
				t.Fatal(err)
			}
		}
	}
	const client = `import socket,sys
s=socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(sys.argv[1])
s.sendall(b'{"op":"status"}\n'); print(repr(s.recv(100)))`
	said, _ := otheruser.Run(t, "/usr/bin/python3", "-c", client, path)
	if strings.Contains(said, "pid") || !strings.Contains(said, "b''") && !strings.Contains(said, "reset") && !strings.Contains(said, "Broken pipe") {
		t.Errorf("another user was told %q", said)
	}
	d.pid() // it goes on
}

func TestWhatNobodyUsesEndsAfterAWhileAndTheKeeperWithIt(t *testing.T) {
	t.Setenv(Variable, "1s")
	s, d := sshdtest.Start(t), newDesk(t)
	n := d.command(targetOf(s))
	says(t, n, "echo here", "here")
	began := time.Now()
	says(t, n, "sleep 3; echo here", "here") // what is used is kept
	if d.pid(); logins(s) != 1 {
		t.Errorf("%d logins after %v, want 1", logins(s), time.Since(began))
	}
	_ = n.Close()
	eventually(t, "the keeper ends", func() bool { return len(d.status()) == 0 })
	if _, err := os.Stat(socketPath(d.state, d.client().build)); err == nil {
		t.Error("its socket is left")
	}
}

func TestTheKeeperEndsWithItsStateDirectory(t *testing.T) {
	s, d := sshdtest.Start(t), newDesk(t)
	d.state = filepath.Join(d.state, "state")
	if err := os.Mkdir(d.state, 0o700); err != nil { // its socket may lie elsewhere
		t.Fatal(err)
	}
	says(t, d.command(targetOf(s)), "echo here", "here")
	pid := d.pid()
	if err := os.RemoveAll(d.state); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the keeper ends", func() bool { return syscall.Kill(pid, 0) != nil })
}

func TestTheSettingIsOffOnOrATime(t *testing.T) {
	for text, want := range map[string]struct {
		on   bool
		keep time.Duration
		bad  bool
	}{"": {on: true, keep: keepFor}, "on": {on: true, keep: keepFor}, "off": {}, "0": {}, "30m": {on: true, keep: 30 * time.Minute}, "soon": {bad: true}, "-1s": {bad: true}} {
		t.Setenv(Variable, text)
		on, keep, err := Setting()
		if on != want.on || keep != want.keep || (err != nil) != want.bad {
			t.Errorf("%q: %v, %v, %v", text, on, keep, err)
		}
	}
}
