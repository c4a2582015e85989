//go:build unix

package remote

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/sshkeys"
)

// jumpOf is a server as one to pass through.
func jumpOf(name string, s *sshdtest.Server) Jump {
	return Jump{Name: name, Addr: s.Addr, User: s.User, HostKey: s.HostKey, Keys: sshkeys.Keys{Files: []string{s.KeyFile}}}
}

func logins(s *sshdtest.Server) int { return strings.Count(s.Log(), "Accepted publickey") }

func TestNodeBehindTwoJumpHostsWorksAsAnyOther(t *testing.T) {
	outer, inner := sshdtest.Start(t), sshdtest.Start(t, sshdtest.Config("MaxSessions 1"))
	for _, config := range []string{"MaxSessions 10", "MaxSessions 2", "MaxSessions 1"} {
		t.Run(config, func(t *testing.T) {
			s := sshdtest.Start(t, sshdtest.Config(config))
			target := targetOf(s)
			target.Jumps = []Jump{jumpOf("outer", outer), jumpOf("inner", inner)}
			n := Open(target)
			t.Cleanup(func() { _ = n.Close() })
			if got := mustExec(t, n, "echo $HOME"); got != s.Home+"\n" {
				t.Errorf("the command ran in %q, want %q", got, s.Home)
			}
			// One session carries all calls at a time.
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() { mustExec(t, n, "sleep 0.2") })
			}
			all.Wait()
			mustExec(t, n, "true")
		})
	}
}

func TestNodesBehindOneJumpHostShareItsConnection(t *testing.T) {
	jump, behind := sshdtest.Start(t, sshdtest.Config("MaxStartups 1")), sshdtest.Start(t)
	before := logins(jump)
	var all sync.WaitGroup
	nodes := make([]*Node, 16)
	for i := range nodes {
		target := targetOf(behind)
		target.Jumps = []Jump{jumpOf("bastion", jump)}
		nodes[i] = Open(target)
		defer nodes[i].Close()
		all.Go(func() {
			if err := nodes[i].Connect(testContext(t)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := logins(jump) - before; got != 1 {
		t.Errorf("the jump host saw %d logins, want 1", got)
	}
	for _, n := range nodes {
		_ = n.Close()
	}
	settled := func() bool { hops.Lock(); defer hops.Unlock(); return len(hops.open) == 0 }
	for deadline := time.Now().Add(60 * time.Second); !settled(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection to the jump host is still there when all nodes are closed")
		}
	}
}

func TestJumpHostThatFailsIsNamed(t *testing.T) {
	outer, inner, s := sshdtest.Start(t), sshdtest.Start(t), sshdtest.Start(t)
	through := func(change func(outer, inner *Jump)) error {
		target := targetOf(s)
		target.Jumps = []Jump{jumpOf("outer", outer), jumpOf("inner", inner)}
		change(&target.Jumps[0], &target.Jumps[1])
		return connectOnce(t, target)
	}
	var hostKey *HostKeyError
	err := through(func(_, inner *Jump) { inner.HostKey = s.HostKey })
	if !errors.As(err, &hostKey) || hostKey.Name != "inner" || !strings.Contains(err.Error(), "node0") {
		t.Errorf("with a wrong host key got %v, want a HostKeyError of inner on the way to node0", err)
	}
	var auth *AuthError
	err = through(func(outer, _ *Jump) { outer.Keys.Files = []string{s.KeyFile} })
	if !errors.As(err, &auth) || auth.Name != "outer" {
		t.Errorf("with a wrong key got %v, want an AuthError of outer", err)
	}
	inner.Stop()
	var unreachable *UnreachableError
	err = through(func(_, _ *Jump) {})
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "connect to inner") {
		t.Errorf("with the jump host down got %v, want an UnreachableError of inner", err)
	}
}

func TestLostJumpHostLosesTheNodeAndBothComeBack(t *testing.T) {
	jump, s := sshdtest.Start(t), sshdtest.Start(t)
	target := targetOf(s)
	target.Jumps = []Jump{jumpOf("bastion", jump)}
	n := Open(target)
	defer n.Close()
	n.bounds.Every, n.bounds.Answer = 100*time.Millisecond, 4*time.Second // a busy machine answers by then
	states := make(chan string, 10)
	n.OnState(func(connected bool, why string) {
		if connected {
			why = "up"
		}
		states <- why
	})
	for _, lose := range []func(){func() { jump.KillConnections() }, jump.Freeze} {
		mustExec(t, n, "true")
		if got := next(t, states); got != "up" {
			t.Fatalf("state is %q, want up", got)
		}
		lose()
		if got := next(t, states); !strings.Contains(got, "lost") {
			t.Errorf("state is %q, want the connection to be lost", got)
		}
		jump.Thaw()
	}
	mustExec(t, n, "true")
}

func TestServerThatIsBusyWithOtherLoginsIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Config("MaxStartups 1"))
	waiting, err := net.Dial("tcp", s.Addr) // takes the only place
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	banner := make([]byte, 4)
	if _, err := waiting.Read(banner); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = waiting.Close() })
	if err := connectOnce(t, targetOf(s)); err != nil {
		t.Error(err)
	}
}

// startAgent runs an ssh-agent for the test and returns its socket.
func startAgent(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "agent")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 500 {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			return socket
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("ssh-agent does not answer")
	return ""
}

func tool(t *testing.T, socket, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
}

func TestKeyWithAPassphraseIsUsedThroughTheAgent(t *testing.T) {
	s := sshdtest.Start(t)
	socket := startAgent(t)
	plain, err := os.ReadFile(s.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	locked := filepath.Join(t.TempDir(), "locked")
	writeFile(t, locked, string(plain))
	tool(t, "", "ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", locked)
	target := targetOf(s)
	target.KeyFile, target.Keys = "", sshkeys.Keys{Files: []string{locked}, Agent: socket, OnlyFiles: true}
	var auth *AuthError
	if err := connectOnce(t, target); !errors.As(err, &auth) || !strings.Contains(err.Error(), "ssh-add "+locked) {
		t.Errorf("without it in the agent got %v, want an AuthError that names ssh-add", err)
	}
	tool(t, socket, "ssh-add", "-q", s.KeyFile)
	if err := connectOnce(t, target); err != nil {
		t.Errorf("with it in the agent: %v", err)
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	target.Keys = sshkeys.Keys{Agent: "SSH_AUTH_SOCK"}
	if err := connectOnce(t, target); err != nil {
		t.Errorf("with the agent alone: %v", err)
	}
	target.Keys.OnlyFiles = true
	if err := connectOnce(t, target); !errors.As(err, &auth) || !strings.Contains(err.Error(), "no key") {
		t.Errorf("with no file, and only files allowed, got %v, want an AuthError about no key", err)
	}
}

func TestEveryKeyFileIsTriedAndThoseThatAreNotThereArePassedOver(t *testing.T) {
	s := sshdtest.Start(t)
	dir := t.TempDir()
	sshdtest.MakeKey(t, filepath.Join(dir, "other"))
	target := targetOf(s)
	target.KeyFile = ""
	target.Keys.Files = []string{filepath.Join(dir, "absent"), filepath.Join(dir, "other"), s.KeyFile}
	if err := connectOnce(t, target); err != nil {
		t.Error(err)
	}
}
