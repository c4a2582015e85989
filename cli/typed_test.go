//go:build unix

package cli

import (
	"crypto/ed25519"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/creack/pty"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/wedge"
)

// typedAt runs dlwb at a terminal of its own, waits for a text, types Ctrl-C so
// many times, and tells how it ended. The terminal must be as it was.
func (b *bed) typedAt(awaited string, ctrlCs int, args ...string) (said string, code int, took time.Duration) {
	b.t.Helper()
	c := b.command(args...)
	c.Env = append(slices.Clone(c.Env), "TERM=xterm")
	ours, theirs, err := pty.Open()
	if err != nil {
		b.t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	before, err := term.GetState(theirs.Fd())
	if err != nil {
		b.t.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = theirs, theirs, theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	var heard heardWriter
	go func() { _, _ = io.Copy(&heard, ours) }()
	heard.await(b.t, awaited)
	for end := time.Now().Add(longest); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if now, err := term.GetState(theirs.Fd()); err == nil && *now != *before {
			break // it turns raw, or silent, behind what is written
		}
	}
	began := time.Now()
	for range ctrlCs {
		_, _ = ours.Write([]byte{3})
		time.Sleep(2 * sameSignal)
	}
	gone := time.AfterFunc(longest, func() { _ = c.Process.Kill() })
	_ = c.Wait()
	took = time.Since(began)
	if !gone.Stop() {
		b.t.Errorf("dlwb %s goes on after Ctrl-C", strings.Join(args, " "))
	}
	after, err := term.GetState(theirs.Fd())
	if err != nil || *after != *before {
		b.t.Errorf("the terminal is not as it was: %v", err)
	}
	return heard.String(), c.ProcessState.ExitCode(), took
}

func TestCtrlCEndsAnOpenQuestionForAPassphrase(t *testing.T) {
	for times := 1; times <= 2; times++ {
		t.Run(strings.Repeat("^C", times), func(t *testing.T) { questioned(t, times) })
	}
}

func questioned(t *testing.T, times int) {
	t.Helper()
	b, _ := wedgedBed(t)
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(b.home, "locked")
	if err := os.WriteFile(key, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(b.home, "ssh_config")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "IdentityFile ", "IdentityFile "+key+"\n # ", 1))
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	said, code, took := b.typedAt("passphrase of", times, "plan", "--plain")
	if code == 0 || took > atOnce {
		t.Errorf("%d times: exit %d after %v: %s", times, code, took, said)
	}
}

func TestCtrlCLeavesAShellThatNeverCame(t *testing.T) {
	b, s := wedgedBed(t)
	b.env = slices.DeleteFunc(b.env, func(v string) bool { return strings.HasPrefix(v, shortBounds+"=") })
	b.must("up", "--plain")
	s.Wedge(wedge.Unanswered)
	said, code, took := b.typedAt("", 1, "ssh", "bed")
	if code == 0 || took > atOnce {
		t.Errorf("exit %d after %v: %s", code, took, said)
	}
	s.Wedge(wedge.None)
}
