//go:build linux

package manynodes

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// host is an ssh server with a home of its own.
type host struct {
	home, addr string
	key        ssh.Signer
	config     *ssh.ServerConfig
	l          net.Listener

	mu    sync.Mutex
	procs map[int]bool // process groups that it has started
	conns map[net.Conn]bool
}

// newHost listens at an address of the loopback, and lets one key in.
func newHost(t testing.TB, addr, home string, user ssh.PublicKey) *host {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{home: home, addr: addr, key: key, l: l, procs: map[int]bool{}, conns: map[net.Conn]bool{}}
	h.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if string(k.Marshal()) != string(user.Marshal()) {
			return nil, errors.New("not this one")
		}
		return nil, nil
	}}
	h.config.AddHostKey(key)
	go h.serve()
	return h
}

func (h *host) serve() {
	for {
		c, err := h.l.Accept()
		if err != nil {
			return
		}
		go h.login(c)
	}
}

func (h *host) login(c net.Conn) {
	h.mu.Lock()
	h.conns[c] = true
	h.mu.Unlock()
	defer func() {
		_ = c.Close()
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
	}()
	conn, channels, requests, err := ssh.NewServerConn(c, h.config)
	if err != nil {
		return
	}
	go func() { // what is asked to keep the connection alive is answered
		for r := range requests {
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	}()
	for n := range channels {
		switch n.ChannelType() {
		case "session":
			go h.session(n)
		case "direct-tcpip":
			go dial(n)
		default:
			_ = n.Reject(ssh.UnknownChannelType, n.ChannelType())
		}
	}
	_ = conn.Wait()
}

// dial leads to a port of the host.
func dial(n ssh.NewChannel) {
	var to struct {
		Host       string
		Port       uint32
		From       string
		OriginPort uint32
	}
	if ssh.Unmarshal(n.ExtraData(), &to) != nil {
		_ = n.Reject(ssh.ConnectionFailed, "not understood")
		return
	}
	c, err := net.Dial("tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = n.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer c.Close()
	ch, requests, err := n.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	go ssh.DiscardRequests(requests)
	go func() { _, _ = io.Copy(c, ch); _ = c.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(ch, c)
}

// session runs one command in the host's home, as sshd does without a terminal.
func (h *host) session(n ssh.NewChannel) {
	ch, requests, err := n.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	var c *exec.Cmd
	for r := range requests {
		var command struct{ Text string }
		ok := r.Type == "exec" && c == nil && ssh.Unmarshal(r.Payload, &command) == nil
		if r.WantReply {
			_ = r.Reply(ok, nil)
		}
		if !ok {
			continue
		}
		c = exec.Command("/bin/sh", "-c", command.Text)
		go func() {
			status := h.play(c, ch)
			_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(status)))
			_ = ch.Close()
		}()
	}
}

func (h *host) play(c *exec.Cmd, ch ssh.Channel) int {
	c.Dir, c.Env = h.home, []string{"HOME=" + h.home, "USER=" + user, "LOGNAME=" + user, "SHELL=/bin/sh", "PATH=/usr/local/bin:/usr/bin:/bin"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := c.StdinPipe()
	if err != nil {
		return 127
	}
	c.Stdout, c.Stderr = ch, ch.Stderr()
	if err := c.Start(); err != nil {
		return 127
	}
	h.mu.Lock()
	h.procs[c.Process.Pid] = true
	h.mu.Unlock()
	go func() { _, _ = io.Copy(in, ch); _ = in.Close() }()
	_ = c.Wait()
	h.mu.Lock()
	delete(h.procs, c.Process.Pid)
	h.mu.Unlock()
	return max(c.ProcessState.ExitCode(), 0)
}

// close ends the server and what it has started.
func (h *host) close() {
	_ = h.l.Close()
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		_ = c.Close()
	}
	for p := range h.procs {
		_ = syscall.Kill(-p, syscall.SIGKILL)
	}
}
