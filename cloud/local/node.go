//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// readyFD is where a node tells the one who started it that it listens.
const readyFD = 3

// node is one node, in its own process.
type node struct {
	dir, home, temp, shell string
	index                  int
	intent                 intent
	clusterKey             ssh.PublicKey
	commands               *reaper
	listener               net.Listener

	mu      sync.Mutex
	hostKey ssh.Signer // the last one read
	conns   map[*ssh.ServerConn]struct{}
}

// NodeMain plays a node: args is its directory. It returns when the node was
// asked to end (SIGTERM) and everything it ran has ended, or when its cluster's
// directory is gone.
func NodeMain(args []string) int {
	ready := adoptReadyPipe()
	log.SetFlags(log.LstdFlags | log.LUTC)
	if len(args) != 1 {
		fmt.Fprintf(os.Stderr, "%s is started by dlwb itself, with the directory of a node\n", NodeCommand)
		return 2
	}
	n, err := openNode(args[0])
	if err != nil {
		log.Printf("this node can't start: %v", err)
		return 1
	}
	lock, err := n.lockOrYield(ready)
	if lock == nil {
		if err != nil {
			log.Printf("this node can't start: %v", err)
			return 1
		}
		return 0
	}
	defer lock.Close()
	if err := n.run(ready); err != nil {
		log.Printf("this node ends: %v", err)
		return 1
	}
	return 0
}

// adoptReadyPipe takes the pipe to the starter and closes all else that leaked
// in. Started by hand there is no pipe.
func adoptReadyPipe() *os.File {
	dropInherited(readyFD)
	var st syscall.Stat_t
	if err := syscall.Fstat(readyFD, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil
	}
	syscall.CloseOnExec(readyFD)
	return os.NewFile(readyFD, "ready")
}

// openNode reads what a node is, from its directory.
func openNode(dir string) (*node, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	in, err := readIntent(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	index, err := nodeIndex(dir)
	if err != nil {
		return nil, err
	}
	n := &node{
		dir: dir, home: filepath.Join(dir, homeDir), temp: in.tempDir(index), shell: shell(),
		index: index, intent: in, conns: map[*ssh.ServerConn]struct{}{},
	}
	if n.hostKey, err = readKey(filepath.Join(dir, hostKeyFile)); err != nil {
		return nil, err
	}
	key, err := readKey(filepath.Join(filepath.Dir(dir), keyFile))
	if err != nil {
		return nil, err
	}
	n.clusterKey = key.PublicKey()
	return n, nil
}

// shell is the interactive shell. The user's own may be one that greets an
// empty home directory with questions.
func shell() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "/bin/sh"
}

// lockOrYield makes sure that one process plays a node. When another does (the
// starter was killed, and started again, in the moment between), this one tells
// the starter where that one listens and returns no lock.
func (n *node) lockOrYield(ready *os.File) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(n.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); time.Since(began) < answerLimit; time.Sleep(5 * time.Millisecond) {
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return lock, nil
		}
		if s, err := readServing(n.dir); err == nil && s.alive() {
			tellReady(ready, s.Port)
			return nil, lock.Close()
		}
	}
	return nil, errors.Join(errors.New("another process plays this node and does not listen"), lock.Close())
}

func tellReady(ready *os.File, port int) {
	if ready != nil {
		fmt.Fprintln(ready, port)
		_ = ready.Close()
	}
}

// run listens, says so, serves, and ends what it ran.
func (n *node) run(ready *os.File) error {
	if err := mark(n.intent.ID); err != nil {
		log.Printf("processes that clear their environment can't be marked: %v", err)
	}
	if err := adoptOrphans(); err != nil {
		log.Printf("orphans can't be adopted: %v", err)
	}
	// A handler is needed for these also where they are not used: whoever
	// starts dlwb with nohup or in the background ignores them, and what is
	// ignored is inherited by every command; what is handled is not.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	n.commands = newReaper()
	if err := n.listen(); err != nil {
		return err
	}
	self, err := lookup(os.Getpid())
	if err != nil {
		return err
	}
	port := n.listener.Addr().(*net.TCPAddr).Port
	s := serving{PID: self.pid, Start: self.start, Port: port}
	if err := writeJSON(filepath.Join(n.dir, servingFile), s); err != nil {
		return err
	}
	go n.accept()
	tellReady(ready, port)
	log.Printf("node %d of cluster %s listens on 127.0.0.1:%d", n.index, n.intent.Name, port)
	n.waitForEnd(signals)
	return n.end()
}

// listen takes the port that the node had in an earlier life, so that its
// address stays what others know, or any free one.
func (n *node) listen() error {
	var err error
	if s, err2 := readServing(n.dir); err2 == nil {
		if n.listener, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", itoa(s.Port))); err == nil {
			return nil
		}
	}
	n.listener, err = net.Listen("tcp", "127.0.0.1:0")
	return err
}

// vanishedAfter is how many looks in a row must miss the cluster's intent.
const vanishedAfter = 3

// waitForEnd returns when the node was asked to end, or when somebody has
// deleted the cluster by hand: nothing could find this process afterwards.
func (n *node) waitForEnd(signals <-chan os.Signal) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for missed := 0; missed < vanishedAfter; {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				log.Printf("asked to end")
				return
			}
		case <-look.C:
			in, err := readIntent(filepath.Dir(n.dir))
			switch {
			case errors.Is(err, fs.ErrNotExist), err == nil && in.ID != n.intent.ID:
				missed++
			default:
				missed = 0
			}
		}
	}
	log.Printf("%s is gone, and so this node ends", filepath.Dir(n.dir))
}

// end ends everything that runs on the node. Connections are closed last, so
// that whoever is connected still learns how the commands ended.
func (n *node) end() error {
	_ = n.listener.Close()
	n.commands.close()
	seen, err := end(context.Background(), n.members(), grace)
	log.Printf("%d processes ended", len(seen))
	reported := make(chan struct{})
	go func() { n.commands.reports.Wait(); close(reported) }()
	select {
	case <-reported:
	case <-time.After(200 * time.Millisecond): // a client that does not read
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Close()
	}
	return err
}

// members finds what runs on this node: what it started or adopted, and where
// orphans can't be adopted what carries the cookie and its number.
func (n *node) members() finder {
	return func() ([]process, error) {
		all, err := processes()
		if mine := descendantsIn(all, os.Getpid()); err != nil || len(mine) > 0 {
			return mine, err
		}
		return slices.DeleteFunc(membersIn(all, n.intent.ID), func(p process) bool {
			return variable(p.pid, "DLWB_NODE") != itoa(n.index)
		}), nil
	}
}

// accept serves connections until the listener is closed.
func (n *node) accept() {
	for {
		conn, err := n.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Printf("accept a connection: %v", err)
			time.Sleep(50 * time.Millisecond) // out of file descriptors, as a rule
			continue
		}
		go n.serve(conn)
	}
}

// loginGrace is how long a connection may take to prove who it is.
const loginGrace = 30 * time.Second

// maxSessions per connection, as sshd has it: what works here works there.
const maxSessions = 10

// serve serves one connection.
func (n *node) serve(raw net.Conn) {
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(loginGrace))
	conn, channels, requests, err := ssh.NewServerConn(raw, n.serverConfig())
	if err != nil {
		return // a probe, or someone without a key
	}
	_ = raw.SetDeadline(time.Time{})
	n.mu.Lock()
	n.conns[conn] = struct{}{}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		delete(n.conns, conn)
		n.mu.Unlock()
	}()
	// Keepalives are answered here; listening for others is refused.
	go ssh.DiscardRequests(requests)
	may := grantsOf(conn)
	slots := make(chan struct{}, maxSessions)
	for c := range channels {
		switch c.ChannelType() {
		case "session":
			select {
			case slots <- struct{}{}:
				go func() {
					defer func() { <-slots }()
					n.session(conn, c, may)
				}()
			default:
				_ = c.Reject(ssh.ResourceShortage, fmt.Sprintf("no more than %d sessions on one connection", maxSessions))
			}
		case "direct-tcpip":
			go forward(c, may)
		default:
			_ = c.Reject(ssh.UnknownChannelType, "a node has no "+c.ChannelType())
		}
	}
}
