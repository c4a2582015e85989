//go:build unix

package wedge

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// Server is a running server. It runs real commands, as this user.
type Server struct {
	Addr    string
	HostKey string // in authorized_keys form
	KeyFile string // a private key that it accepts
	Home    string

	host  ssh.Signer
	login string // the public half of KeyFile
	ended chan struct{}

	taken   atomic.Int64
	mu      sync.Mutex
	stage   Stage
	changed chan struct{} // closed and replaced when the stage changes
	tasks   sync.WaitGroup
}

// Start starts a server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	dir := t.TempDir()
	home, err := os.MkdirTemp("", "dlwb-wedge-")
	check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	s := &Server{Home: home, KeyFile: filepath.Join(dir, "key"), ended: make(chan struct{}), changed: make(chan struct{})}
	s.login = sshdtest.MakeKey(t, s.KeyFile)
	s.HostKey = sshdtest.MakeKey(t, filepath.Join(dir, "host"))
	text, err := os.ReadFile(filepath.Join(dir, "host"))
	check(t, err)
	s.host, err = ssh.ParsePrivateKey(text)
	check(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	s.Addr = l.Addr().String()
	t.Cleanup(func() {
		_ = l.Close()
		close(s.ended)
		s.sweep()
		s.tasks.Wait()
		s.sweep() // what was being started just then
	})
	s.tasks.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.taken.Add(1)
			s.tasks.Go(func() { s.serve(nc) })
		}
	})
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Wedge makes the server hang at a stage from now on; None: it works again.
func (s *Server) Wedge(stage Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stage = stage
	close(s.changed)
	s.changed = make(chan struct{})
}

// at reports whether the server hangs at a stage.
func (s *Server) at(stage Stage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stage == stage
}

// hang waits until the stage is another one, or the connection or the test is
// over.
func (s *Server) hang(stage Stage, over <-chan struct{}) {
	for {
		s.mu.Lock()
		still, changed := s.stage == stage, s.changed
		s.mu.Unlock()
		if !still {
			return
		}
		select {
		case <-changed:
		case <-over:
			return
		case <-s.ended:
			return
		}
	}
}

// conn is a connection whose writes, or all of it, may hang.
type conn struct {
	net.Conn
	s    *Server
	over chan struct{} // closed with the connection
	once sync.Once

	mu   sync.Mutex
	left int // writes before it hangs; below 0: any number
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.over) })
	return c.Conn.Close()
}

func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	hangs := c.left == 0
	if c.left > 0 {
		c.left--
	}
	c.mu.Unlock()
	if hangs {
		select {
		case <-c.over:
		case <-c.s.ended:
		}
		return 0, net.ErrClosed
	}
	c.s.hang(Frozen, c.over)
	return c.Conn.Write(p)
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.hang(Frozen, c.over)
	return n, err
}

func (c *conn) hangAfter(writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = writes
}

// serve serves one connection.
func (s *Server) serve(nc net.Conn) {
	c := &conn{Conn: nc, s: s, over: make(chan struct{}), left: -1}
	defer c.Close()
	s.tasks.Go(func() {
		select {
		case <-s.ended:
			_ = c.Close()
		case <-c.over:
		}
	})
	if s.greet(c) {
		return
	}
	s.mu.Lock()
	if n := writes[s.stage]; n > 0 {
		c.left = n
	}
	s.mu.Unlock()
	sc, channels, requests, err := ssh.NewServerConn(c, s.config(c))
	if err != nil {
		return
	}
	if s.at(Rekey) {
		c.hangAfter(60) // in the middle of what a threshold of so few bytes causes
	}
	s.tasks.Go(func() { s.answer(c, requests) })
	s.tasks.Go(func() {
		for nc := range channels {
			s.tasks.Go(func() { s.channel(c, nc) })
		}
	})
	_ = sc.Wait()
}

// greet is the server's end of connections that never come to ssh; false: this
// one does.
func (s *Server) greet(c *conn) bool {
	switch {
	case s.at(Silent):
		_, _ = io.Copy(io.Discard, c)
	case s.at(TrickledBanner):
		s.trickle(c, strings.Repeat("SSH-2.0-OpenSSH_9.9", 100), time.Second)
	case s.at(EndlessBanner):
		s.trickle(c, strings.Repeat("\n", 1<<20), time.Millisecond)
	default:
		return false
	}
	return true
}

// trickle writes a text byte by byte.
func (s *Server) trickle(c *conn, text string, pause time.Duration) {
	for i := range len(text) {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			return
		}
		select {
		case <-time.After(pause):
		case <-s.ended:
			return
		}
	}
}

// config is how logins go.
func (s *Server) config(c *conn) *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		NoClientAuth: true,
		NoClientAuthCallback: func(ssh.ConnMetadata) (*ssh.Permissions, error) {
			s.hang(NoneAuth, c.over)
			return nil, errors.New("a key is needed")
		},
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			s.hang(KeyQuery, c.over)
			if strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) != s.login {
				return nil, errors.New("not this key")
			}
			return &ssh.Permissions{}, nil
		},
		VerifiedPublicKeyCallback: func(_ ssh.ConnMetadata, _ ssh.PublicKey, p *ssh.Permissions, _ string) (*ssh.Permissions, error) {
			s.hang(Signature, c.over)
			return p, nil
		},
	}
	if s.at(Rekey) {
		config.RekeyThreshold = 256
	}
	config.AddHostKey(s.host)
	return config
}

// answer answers the requests of a connection.
func (s *Server) answer(c *conn, requests <-chan *ssh.Request) {
	for r := range requests {
		if r.WantReply {
			_ = r.Reply(false, nil)
		}
	}
}

// channel serves a channel.
func (s *Server) channel(c *conn, nc ssh.NewChannel) {
	if nc.ChannelType() == "direct-tcpip" {
		s.hang(Direct, c.over)
		_ = nc.Reject(ssh.ConnectionFailed, "there is nothing there")
		return
	}
	s.hang(OpenChannel, c.over)
	ch, requests, err := nc.Accept()
	if err != nil {
		return
	}
	s.session(c, ch, requests)
}

// Taken is how many connections the server has taken.
func (s *Server) Taken() int64 { return s.taken.Load() }

// Profile is a machines.hosts entry of a profile for this server, and the ssh
// configuration that leads there by a name.
func (s *Server) Profile(name string) (config, known string) {
	host, port, _ := net.SplitHostPort(s.Addr)
	return fmt.Sprintf("Host %s\n HostName %s\n Port %s\n User test\n IdentityFile %s\n IdentitiesOnly yes\n", name, host, port, s.KeyFile),
		fmt.Sprintf("[%s]:%s %s\n", host, port, s.HostKey)
}
