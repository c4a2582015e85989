//go:build linux

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote/wire"
)

// liar is an ssh server that does what it is asked, as a host would. Between dlwb
// and the agent that is started there it is an agent itself, which passes all
// calls on until it is told to lie about some of them.
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
	to  string // the service that is called, or toLook
	has string // what the request has in it
	// tell answers a call; over is closed when nobody listens any more.
	tell func(s *wire.Stream, over <-chan struct{})
	// print answers toLook.
	print func(out io.Writer, over <-chan struct{})
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

// The lines that start an agent; see package agentbin.
var (
	becomes = regexp.MustCompile(`exec "[^"]*" (serve|host) (\w+) (\w+)`)
	takes   = regexp.MustCompile(`head -c (\d+)`)
)

// answer does what was asked, or lies.
func (l *liar) answer(command string, channel ssh.Channel, quit <-chan struct{}) int {
	began := becomes.FindStringSubmatch(command)
	if began != nil && began[1] == "host" {
		if lie := l.lieTo(toLook, nil); lie != nil {
			_, _ = io.WriteString(channel, hostclaim.Mark(began[2], began[3]))
			lie.print(channel, quit)
			return 0
		}
	}
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = l.home, []string{"HOME=" + l.home, "TMPDIR=" + l.home, "PATH=/usr/bin:/bin", "USER=liar"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Stderr = channel.Stderr()
	stdin, inErr := c.StdinPipe()
	stdout, outErr := c.StdoutPipe()
	l.mu.Lock()
	err := errors.Join(inErr, outErr)
	if err == nil {
		err = c.Start()
		l.children[c] = err == nil
	}
	l.mu.Unlock()
	if err != nil {
		return 127
	}
	if began != nil && began[1] == "serve" {
		l.stand(command, wire.Hello(began[2], began[3]), channel, ends{bufio.NewReader(stdout), stdin})
	} else {
		go func() {
			_, _ = io.Copy(stdin, channel)
			_ = stdin.Close()
		}()
		_, _ = io.Copy(channel, stdout)
	}
	err = c.Wait()
	l.mu.Lock()
	delete(l.children, c)
	l.mu.Unlock()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return max(exit.ExitCode(), 0)
	}
	return 0
}

// ends are a command's output and input as one connection.
type ends struct {
	*bufio.Reader
	io.WriteCloser
}

// stand stands between dlwb and an agent until one of them goes. The line that
// brings an agent takes its bytes first; one that does not become an agent says
// why.
func (l *liar) stand(command, hello string, caller ssh.Channel, agent ends) {
	defer func() { _ = agent.Close() }()
	if size := takes.FindStringSubmatch(command); size != nil {
		n, _ := strconv.ParseInt(size[1], 10, 64)
		go func() { _, _ = io.CopyN(agent, caller, n) }()
	}
	if _, err := wire.AwaitHello(agent.Reader, hello); err != nil {
		if none := new(wire.NoHelloError); errors.As(err, &none) {
			_, _ = caller.Write(none.Said)
		}
		return
	}
	honest, err := wire.Dial(agent)
	if err != nil {
		return
	}
	defer func() { _ = honest.Close() }()
	if _, err := io.WriteString(caller, hello); err != nil {
		return
	}
	session, err := wire.Answer(caller)
	if err != nil {
		return
	}
	defer func() { _ = session.Close() }()
	go func() {
		<-honest.Done()
		_ = session.Close()
	}()
	for {
		s, err := session.Accept()
		if err != nil {
			return
		}
		go l.call(s, honest, session.Done())
	}
}

// call lies to one call, or passes it on.
func (l *liar) call(s *wire.Stream, honest *wire.Session, over <-chan struct{}) {
	defer s.Close()
	var service string
	var request cbor.RawMessage
	if errors.Join(s.Recv(&service), s.Recv(&request)) != nil {
		s.Reset()
		return
	}
	if lie := l.lieTo(service, request); lie != nil {
		lie.tell(s, over)
		return
	}
	up, err := honest.Call(context.Background(), service, request)
	if err != nil {
		s.Reset()
		return
	}
	defer up.Close()
	there := make(chan struct{})
	go func() {
		defer close(there)
		pass(up, s)
	}()
	pass(s, up)
	<-there
}

// pass passes on what comes on one call to another one, and how it ends.
func pass(to, from *wire.Stream) {
	_, err := io.Copy(to.Raw(), from.Raw())
	if err == nil {
		err = to.CloseWrite()
	}
	if err != nil {
		to.Reset()
		from.Reset()
	}
}

// lieTo is what is told instead of an answer; nil: the truth.
func (l *liar) lieTo(service string, request []byte) *lie {
	if !l.lying.Load() {
		return nil
	}
	for i, lie := range l.lies {
		if lie.to == service && bytes.Contains(request, []byte(lie.has)) {
			l.told.Add(1)
			return &l.lies[i]
		}
	}
	return nil
}

// repeat says the same again and again, with a pause between, until nobody
// listens or it was said so many times; then it says nothing, and goes on.
func repeat(say func() error, pause time.Duration, most int, over <-chan struct{}) {
	for range most {
		if say() != nil {
			return
		}
		select {
		case <-over:
			return
		case <-time.After(pause):
		}
	}
	<-over
}

// messages tells messages of a service without end.
func messages(v any, pause time.Duration, most int) func(*wire.Stream, <-chan struct{}) {
	return func(s *wire.Stream, over <-chan struct{}) {
		repeat(func() error { return s.Send(v) }, pause, most, over)
	}
}

// pages tells different messages, one after the other, without end.
func pages[V any](next func() V) func(*wire.Stream, <-chan struct{}) {
	return func(s *wire.Stream, over <-chan struct{}) {
		repeat(func() error { return s.Send(next()) }, 0, endless, over)
	}
}

// endless is more often than anybody listens.
const endless = math.MaxInt

// announced is how a message of a length begins.
func announced(length uint64) []byte { return append(binary.AppendUvarint(nil, length), 0) }

// stream tells bytes that are no message: some once, others without end.
func stream(first, again []byte, pause time.Duration) func(*wire.Stream, <-chan struct{}) {
	return func(s *wire.Stream, over <-chan struct{}) {
		_, _ = s.Raw().Write(first)
		prints(again, pause)(s.Raw(), over)
	}
}

// prints prints the same without end.
func prints(text []byte, pause time.Duration) func(io.Writer, <-chan struct{}) {
	return func(out io.Writer, over <-chan struct{}) {
		repeat(func() error { _, err := out.Write(text); return err }, pause, endless, over)
	}
}
