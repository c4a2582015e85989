//go:build linux

package intake

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// fanMost is how many nodes one node sends to; these send on to the others.
	fanMost = 8
	// queueMost is how many writes may wait for a node that reads slowly, and
	// stallLimit how long all others wait for it then.
	queueMost  = 16
	stallLimit = 10 * time.Second
	// peerLimit is how long a stream from another node may be silent, and
	// lateLimit how long it may take to come once that one is through.
	peerLimit = 30 * time.Second
	lateLimit = 2 * time.Second
	// waitLimit is how long a peer that brings files waits for somebody to
	// want them.
	waitLimit = 30 * time.Second
)

// fan passes bytes on to other nodes.
type fan struct{ to []*branch }

// branch is a node that gets them.
type branch struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	queue chan queued
	ended chan struct{}
	gone  bool
}

// queued is what is to be written, or somebody to be told that all before it was.
type queued struct {
	p    []byte
	told chan<- struct{}
}

// openFan connects to the first few nodes, and tells each which others it sends to.
func openFan(home, name string, peers []string) *fan {
	known := peersOf(home)
	f := &fan{}
	for i := range min(len(peers), fanMost) {
		words := []string{"sync", name}
		for k := i + fanMost; k < len(peers); k += fanMost {
			words = append(words, peers[k])
		}
		if to, ok := known[peers[i]]; ok {
			if b, err := startBranch(home, to, strings.Join(words, " ")); err == nil {
				f.to = append(f.to, b)
			}
		}
	}
	return f
}

// peerOf is where a node is reached from here.
type peerOf struct{ host, port, user string }

func peersOf(home string) map[string]peerOf {
	text, _ := os.ReadFile(filepath.Join(home, ".dlwb/peers"))
	known := map[string]peerOf{}
	for line := range strings.Lines(string(text)) {
		if w := strings.Fields(line); len(w) == 4 && w[1][0] != '-' && w[3][0] != '-' {
			known[w[0]] = peerOf{w[1], w[2], w[3]}
		}
	}
	return known
}

func startBranch(home string, to peerOf, line string) (*branch, error) {
	dir := filepath.Join(home, ".dlwb")
	cmd := exec.Command(sshProgram(), "-i", dir+"/peer_key", "-p", to.port,
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile="+dir+"/peer_known_hosts",
		"-o", "GlobalKnownHostsFile=/dev/null", "-o", "StrictHostKeyChecking=yes",
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=5",
		"-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=2",
		to.user+"@"+to.host, line)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	b := &branch{cmd: cmd, in: in, queue: make(chan queued, queueMost), ended: make(chan struct{})}
	go b.feed()
	return b, nil
}

func (b *branch) feed() {
	defer close(b.ended)
	for q := range b.queue {
		if q.told != nil {
			q.told <- struct{}{}
			continue
		}
		if _, err := b.in.Write(q.p); err != nil {
			break
		}
	}
	_ = b.in.Close()
	_ = b.cmd.Wait()
}

// Write passes bytes on, and leaves out whoever does not take them: dlwb hears of
// that from that node itself, and sees to it directly.
func (f *fan) Write(p []byte) (int, error) {
	f.put(queued{p: p})
	return len(p), nil
}

func (f *fan) put(q queued) {
	var limit <-chan time.Time
	for _, b := range f.to {
		if b.gone {
			continue
		}
		select {
		case b.queue <- q:
			continue
		case <-b.ended:
		default:
			if limit == nil {
				limit = time.After(stallLimit)
			}
			select {
			case b.queue <- q:
				continue
			case <-b.ended:
			case <-limit:
			}
		}
		b.drop()
	}
}

// flush waits until everybody has taken what was sent, or is left out.
func (f *fan) flush() {
	told := make(chan struct{}, len(f.to))
	f.put(queued{told: told})
	limit := time.After(stallLimit)
	for _, b := range f.to {
		if b.gone {
			continue
		}
		select {
		case <-told:
		case <-b.ended:
		case <-limit:
			b.drop()
		}
	}
}

// send passes a step on.
func (f *fan) send(step wire.SyncStep) {
	if text, err := wire.Frame(step); err == nil {
		_, _ = f.Write(text)
	}
}

func (b *branch) drop() {
	b.gone = true
	close(b.queue)
	_ = b.cmd.Process.Kill()
}

// close waits until all nodes have got everything.
func (f *fan) close() {
	limit := time.After(stallLimit)
	for _, b := range f.to {
		if !b.gone {
			close(b.queue)
			b.gone = true
		}
		select {
		case <-b.ended:
		case <-limit:
			_ = b.cmd.Process.Kill()
		}
	}
}

// cut gives all of it up.
func (f *fan) cut() {
	for _, b := range f.to {
		if !b.gone {
			b.drop()
		}
		<-b.ended
	}
}

func (in *intake) forward(_ context.Context, f *wire.SyncForward) error {
	if in.fan != nil {
		in.fan.close()
		in.fan = nil
	}
	if f.Over {
		return in.done(wire.SyncDone{})
	}
	if !plainWord(f.Name) || len(f.Peers) > wire.SyncPeersMost {
		return wire.Faultf(wire.Wrong, "nothing can go on under the name %.60q", f.Name)
	}
	for _, peer := range f.Peers {
		if !plainWord(peer) {
			return wire.Faultf(wire.Wrong, "%.60q is no node's name", peer)
		}
	}
	in.fan = openFan(in.place.home, f.Name, f.Peers)
	return nil
}

// listener waits for what another node sends.
type listener struct {
	socket net.Listener
	steps  chan received
	quit   chan struct{}
	once   sync.Once
	came   bool
}

// meeting is the socket for a name. Its path may be longer than a socket's may
// be: it is reached by its directory.
func meeting(home, name string, do func(path string) error) error {
	dir := filepath.Join(home, ".dlwb/in")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return do(fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), name))
}

func listen(home, name string) (*listener, error) {
	l := &listener{steps: make(chan received), quit: make(chan struct{})}
	path := filepath.Join(home, ".dlwb/in", name)
	err := meeting(home, name, func(short string) (err error) {
		l.socket, err = net.Listen("unix", short)
		return err
	})
	if err != nil {
		return nil, wrap("wait for files of other nodes", err)
	}
	l.socket.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.socket.Close()
		return nil, err
	}
	go func() {
		conn, err := l.socket.Accept()
		_ = os.Remove(path) // one sender each
		_ = l.socket.Close()
		if err == nil {
			defer func() { _ = conn.Close() }()
			defer context.AfterFunc(l.context(), func() { _ = conn.Close() })()
			l.pass(conn)
		}
		close(l.steps)
	}()
	return l, nil
}

// context ends when nobody listens any more.
func (l *listener) context() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-l.quit
		cancel()
	}()
	return ctx
}

// pass reads what comes.
func (l *listener) pass(conn io.Reader) {
	from := bufio.NewReaderSize(conn, 64<<10)
	for {
		var r received
		r.err = wire.ReadFrame(from, &r.step)
		select {
		case l.steps <- r:
		case <-l.quit:
			return
		}
		if r.err != nil {
			return
		}
	}
}

func (l *listener) close() {
	l.once.Do(func() { close(l.quit) })
	_ = l.socket.Close()
	for range l.steps { // until it is over
	}
}

func (in *intake) listen(name string) (err error) {
	if in.peer != nil {
		in.peer.close()
		in.peer = nil
	}
	if !plainWord(name) {
		return wire.Faultf(wire.Wrong, "nothing can come under the name %.60q", name)
	}
	if in.peer, err = listen(in.place.home, name); err != nil {
		return err
	}
	return in.done(wire.SyncDone{})
}

// fromPeer takes what another node sends, up to its mark. The caller says by a
// step when that one is through. That something is wrong with what
// comes shows by what lacks then.
func (in *intake) fromPeer(ctx context.Context) error {
	if in.peer == nil {
		return wire.Faultf(wire.Wrong, "no other node is to send anything")
	}
	patience := peerLimit
	for {
		limit := time.NewTimer(patience)
		select {
		case r, open := <-in.peer.steps:
			limit.Stop()
			in.peer.came = true
			if !open || r.err != nil || r.step.Mark {
				return nil
			}
			if r.step.Pack != nil || r.step.Piece != nil {
				in.stage.take(r.step)
			}
			if err := in.stage.failed(); err != nil {
				return err
			}
		case r := <-in.steps:
			limit.Stop()
			if r.err != nil {
				return r.err
			}
			if !r.step.Through {
				return wire.Faultf(wire.Wrong, "there is a step while another node sends")
			}
			if patience = stallLimit; !in.peer.came {
				patience = lateLimit
			}
		case <-limit.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Peer is what another node of the cluster may ask for by "sync NAME PEER…": it
// hands its input to whoever waits for it here, and passes it on to more nodes.
func Peer(home string, words []string, input io.Reader) error {
	for _, word := range words {
		if !plainWord(word) {
			return errors.New("this key can only stop a run or pass on files")
		}
	}
	if len(words) == 0 {
		return errors.New("files need a name under which they come")
	}
	conn, err := meet(home, words[0])
	if err != nil {
		return fmt.Errorf("nobody waits for %s here: %w", words[0], err)
	}
	defer func() { _ = conn.Close() }()
	if len(words) == 1 {
		_, err = io.Copy(conn, input)
		return err
	}
	f := openFan(home, words[0], words[1:])
	defer f.close()
	for {
		block := make([]byte, 64<<10)
		n, err := input.Read(block)
		if n > 0 {
			_, _ = conn.Write(block[:n]) // the others get theirs in any case
			_, _ = f.Write(block[:n])
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// meet connects to whoever waits under a name.
func meet(home, name string) (conn net.Conn, err error) {
	for deadline := time.Now().Add(waitLimit); ; time.Sleep(50 * time.Millisecond) {
		err = meeting(home, name, func(short string) (err error) {
			ctx, cancel := context.WithTimeout(context.Background(), stallLimit)
			defer cancel()
			conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
			return err
		})
		if err == nil || time.Now().After(deadline) {
			return conn, err
		}
	}
}
