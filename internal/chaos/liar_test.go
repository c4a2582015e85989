//go:build linux

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// liar is an ssh server that does what it is asked, as a host would, until it
// is told to lie about some of it.
type liar struct {
	t        *testing.T
	home     string // of the host
	config   string // for ssh -F: the host is called liar
	listener net.Listener
	lies     []lie
	lying    atomic.Bool
	told     atomic.Int64 // lies so far

	mu       sync.Mutex
	children map[*exec.Cmd]bool
	conns    map[net.Conn]bool
}

// lie is an answer that no honest host gives.
type lie struct {
	to string // what the command or its input has in it
	// tell answers; quit is closed when nobody listens any more.
	tell func(out io.Writer, quit <-chan struct{})
}

// newLiar starts a server on loopback, which ends with the test.
func newLiar(t *testing.T, lies ...lie) *liar {
	t.Helper()
	dir := t.TempDir()
	home, err := os.MkdirTemp("", "dlwb-liar")
	if err != nil {
		t.Fatal(err)
	}
	l := &liar{t: t, home: home, config: filepath.Join(dir, "config"), lies: lies, children: map[*exec.Cmd]bool{}, conns: map[net.Conn]bool{}}
	sshdtest.MakeKey(t, filepath.Join(dir, "key"))
	public := sshdtest.MakeKey(t, filepath.Join(dir, "hostkey"))
	text, err := os.ReadFile(filepath.Join(dir, "hostkey"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(l.listener.Addr().String())
	for name, text := range map[string]string{
		"known": fmt.Sprintf("[%s]:%s %s\n", host, port, public),
		"config": fmt.Sprintf("Host liar\n HostName %s\n Port %s\n User liar\n IdentityFile %s/key\n IdentitiesOnly yes\n UserKnownHostsFile %s/known\n",
			host, port, dir, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(signer)
	go l.serve(config)
	t.Cleanup(l.end)
	return l
}

// end hangs up and ends everything that was started here.
func (l *liar) end() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.children {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	}
	cookie := []byte("HOME=" + l.home + "\x00")
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		var pid int
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, cookie) {
			if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	_ = os.RemoveAll(l.home)
}

func (l *liar) serve(config *ssh.ServerConfig) {
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.mu.Lock()
		l.conns[conn] = true
		l.mu.Unlock()
		go func() {
			_, channels, requests, err := ssh.NewServerConn(conn, config)
			if err != nil {
				return
			}
			go ssh.DiscardRequests(requests)
			for c := range channels {
				if c.ChannelType() != "session" {
					_ = c.Reject(ssh.UnknownChannelType, "only sessions")
					continue
				}
				if channel, requests, err := c.Accept(); err == nil {
					go l.session(channel, requests)
				}
			}
		}()
	}
}

// cutOff ends all connections.
func (l *liar) cutOff() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	clear(l.conns)
}

// session runs the one command of a session.
func (l *liar) session(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		var exec struct{ Command string }
		ok := r.Type == "exec" && ssh.Unmarshal(r.Payload, &exec) == nil
		_ = r.Reply(ok || r.Type == "env", nil)
		if !ok {
			continue
		}
		quit := make(chan struct{})
		go func() { // what else is asked of a session is its end
			defer close(quit)
			ssh.DiscardRequests(requests)
		}()
		code := l.answer(exec.Command, channel, quit)
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
		_ = channel.Close()
		return
	}
}

// answer lies, or does what was asked.
func (l *liar) answer(command string, channel ssh.Channel, quit <-chan struct{}) int {
	var input io.Reader = channel
	text := command
	if strings.TrimSpace(command) == "sh" || strings.HasSuffix(command, "; sh'") { // a program comes over stdin
		program, _ := io.ReadAll(channel)
		text += string(program)
		input = bytes.NewReader(program)
	}
	if strings.Contains(text, "read -r dlwb_n") {
		return 0 // a shell that waits would answer what it is asked later, and tell no lies
	}
	if l.lying.Load() {
		for _, lie := range l.lies {
			if strings.Contains(text, lie.to) {
				l.told.Add(1)
				if strings.HasPrefix(command, "exec sh -c") { // what a command says first, see remote/leader.go
					_, _ = io.WriteString(channel, "\x01dlwb 99999999\n")
				}
				lie.tell(channel, quit)
				return 0
			}
		}
	}
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = l.home, []string{"HOME=" + l.home, "TMPDIR=" + l.home, "PATH=/usr/bin:/bin", "USER=liar"}
	c.Stdout, c.Stderr = channel, channel.Stderr()
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := c.StdinPipe()
	if err == nil {
		l.mu.Lock()
		err = c.Start()
		l.children[c] = err == nil
		l.mu.Unlock()
	}
	if err != nil {
		return 127
	}
	go func() {
		_, _ = io.Copy(stdin, input)
		_ = stdin.Close()
	}()
	err = c.Wait()
	l.mu.Lock()
	delete(l.children, c)
	l.mu.Unlock()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 0)
	}
	return 0
}

// repeat tells the same again and again, with a pause between, until nobody
// listens or so many bytes are told; then it says nothing, and goes on.
func repeat(text []byte, pause time.Duration, most int64) func(io.Writer, <-chan struct{}) {
	return func(out io.Writer, quit <-chan struct{}) {
		for told := int64(0); told < most; told += int64(len(text)) {
			if _, err := out.Write(text); err != nil {
				return
			}
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
		}
		<-quit
	}
}

// once tells something and ends as a command does that has succeeded.
func once(text string) func(io.Writer, <-chan struct{}) {
	return func(out io.Writer, _ <-chan struct{}) { _, _ = io.WriteString(out, text) }
}
