//go:build unix

package remote

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"golang.org/x/crypto/ssh"
)

func TestChangedHostKeyIsRefusedWithNothingSent(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	if err := n.Connect(testContext(t)); err != nil {
		t.Fatal(err)
	}
	changed := s.ChangeHostKey()
	before := len(s.Log())
	err := Open(targetOf(s)).Connect(testContext(t))
	var hostKey *HostKeyError
	if !errors.As(err, &hostKey) {
		t.Fatalf("got %v, want a HostKeyError", err)
	}
	if want := "ssh-ed25519 " + fingerprint(t, s.HostKey); hostKey.Want != want {
		t.Errorf("expected key is given as %q, want %q", hostKey.Want, want)
	}
	if want := "ssh-ed25519 " + fingerprint(t, changed); hostKey.Got != want {
		t.Errorf("shown key is given as %q, want %q", hostKey.Got, want)
	}
	for _, sent := range []string{"Accepted", "Failed", "Postponed", "authenticating user"} {
		if log := s.Log()[before:]; strings.Contains(log, sent) {
			t.Errorf("the server saw a login (%q):\n%s", sent, log)
		}
	}
}

func TestUnknownHostKeyIsRefusedWithoutDialing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, key := range []string{"", "ssh-ed25519 AAAA", "nonsense"} {
		n := Open(Target{Name: "node0", Addr: l.Addr().String(), HostKey: key})
		err = n.Connect(testContext(t))
		var hostKey *HostKeyError
		if !errors.As(err, &hostKey) {
			t.Errorf("with known key %q got %v, want a HostKeyError", key, err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	_ = l.(*net.TCPListener).SetDeadline(time.Now())
	if _, err := l.Accept(); err == nil {
		t.Error("the host was dialed")
	}
}

func TestHostThatHasNoKeyOfTheKnownKindIsRefused(t *testing.T) {
	s := sshdtest.Start(t)
	target := targetOf(s)
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(other.Public())
	if err != nil {
		t.Fatal(err)
	}
	target.HostKey = string(ssh.MarshalAuthorizedKey(public))
	n := Open(target)
	defer n.Close()
	var hostKey *HostKeyError
	if err := n.Connect(testContext(t)); !errors.As(err, &hostKey) || !strings.Contains(hostKey.Got, "ssh-ed25519") {
		t.Errorf("got %v, want a HostKeyError that names the host's kind of key", err)
	}
}

func TestHostWithSeveralKeysShowsTheKnownOne(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rsa")
	writeFile(t, path, string(pem.EncodeToMemory(block)))
	s := sshdtest.Start(t, sshdtest.Config("HostKey "+path))
	target := targetOf(s)
	for _, key := range []string{s.HostKey, string(ssh.MarshalAuthorizedKey(public))} {
		target.HostKey = key
		if err := connectOnce(t, target); err != nil {
			t.Error(err)
		}
	}
}

func TestWrongKeyIsAnAuthError(t *testing.T) {
	s := sshdtest.Start(t)
	target := targetOf(s)
	target.KeyFile = filepath.Join(t.TempDir(), "other")
	var auth *AuthError
	err := connectOnce(t, target)
	if !errors.As(err, &auth) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("with a key that is not there got %v, want an AuthError about that", err)
	}
	sshdtest.MakeKey(t, target.KeyFile)
	if err := connectOnce(t, target); !errors.As(err, &auth) {
		t.Errorf("with another key got %v, want an AuthError", err)
	}
}

func TestUnreachableHostIsSaidToBe(t *testing.T) {
	s := sshdtest.Start(t)
	s.Stop()
	var unreachable *UnreachableError
	if err := connectOnce(t, targetOf(s)); !errors.As(err, &unreachable) {
		t.Errorf("got %v, want an UnreachableError", err)
	}
}

func TestHostThatNeverAnswersEndsTheDial(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody speaks
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	key := sshdtest.MakeKey(t, filepath.Join(dir, "key"))
	n := Open(Target{Name: "node0", Addr: l.Addr().String(), HostKey: key, KeyFile: filepath.Join(dir, "key")})
	defer n.Close()
	n.bounds.Dial = 200 * time.Millisecond
	var unreachable *UnreachableError
	if err := n.Connect(testContext(t)); !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "no ssh answer within") {
		t.Errorf("got %v, want an UnreachableError about the time", err)
	}
}

func TestOneConnectionServesAllAndComesBackAfterItsLoss(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	states := make(chan string, 10)
	n.OnState(func(connected bool, why string) {
		if connected {
			why = "up"
		}
		states <- why
	})
	for range 5 {
		mustExec(t, n, "true")
	}
	if got := s.KillConnections(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
	if got := next(t, states); got != "up" {
		t.Errorf("first state is %q, want up", got)
	}
	if got := next(t, states); !strings.Contains(got, "lost") {
		t.Errorf("second state is %q, want the connection to be lost", got)
	}
	mustExec(t, n, "true")
	if got := next(t, states); got != "up" {
		t.Errorf("third state is %q, want up", got)
	}
}

func TestFrozenNodeIsNoticedAndBlocksNothingForEver(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	n.bounds.Every, n.bounds.Answer = 100*time.Millisecond, 300*time.Millisecond
	ctx := testContext(t)
	running := make(chan error, 1)
	go func() {
		_, err := n.Exec(ctx, Cmd{Line: "echo running; exec sleep 30", Stdout: signalWriter(func() { s.Freeze() })})
		running <- err
	}()
	err := next(t, running)
	s.Thaw()
	var lost *LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("got %v, want a LostError about the missing answer", err)
	}
	mustExec(t, n, "true")
}

func TestManyCallsShareOneSessionAndCommandsDoNotWaitForThem(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t, sshdtest.Config("MaxSessions 1"))
	n := openTest(t, s)
	ctx, cancel := context.WithCancel(testContext(t))
	var all sync.WaitGroup
	began := make(chan struct{}, 64)
	for range cap(began) {
		all.Go(func() {
			_, err := n.Exec(ctx, Cmd{Line: "echo begun; exec sleep 600", Quiet: NoLimit, Stdout: signalWriter(func() { began <- struct{}{} })})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a command that was cancelled ended with %v", err)
			}
		})
	}
	for range cap(began) {
		next(t, began)
	}
	mustExec(t, n, "true")
	cancel()
	all.Wait()
}

func TestClosedNodeRefusesEverything(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	mustExec(t, n, "true")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Exec(testContext(t), Cmd{Line: "true"}); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

func connectOnce(t *testing.T, target Target) error {
	t.Helper()
	n := Open(target)
	defer n.Close()
	return n.Connect(testContext(t))
}

func mustExec(t testing.TB, n *Node, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := n.Exec(ctx, Cmd{Line: line})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%s: exit %d, %v: %s", line, res.ExitCode, err, res.Stderr)
	}
	return string(res.Stdout)
}

// next waits for a value, and fails the test when none comes.
func next[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
		panic("unreachable")
	}
}

// signalWriter calls itself once for each write.
type signalWriter func()

func (w signalWriter) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

func fingerprint(t *testing.T, line string) string {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(key)
}
