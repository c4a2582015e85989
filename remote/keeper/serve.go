//go:build unix

package keeper

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// lookEvery is how often the keeper looks for what nobody uses.
const lookEvery = time.Second

// Main is the keeper: STATE BUILD, with the socket as descriptor 3.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "dlwb starts its keeper by itself; dlwb keeper shows it")
		return 2
	}
	f := os.NewFile(3, "socket")
	l, err := net.FileListener(f)
	if err != nil {
		return 1
	}
	_ = f.Close()
	_, keep, err := Setting()
	if err != nil || keep == 0 {
		keep = keepFor
	}
	k := &keeper{state: args[0], build: args[1], keep: keep, since: time.Now(), listener: l, held: map[key]*held{}, tunnels: map[tunnelKey]*tunnel{}, opening: map[tunnelKey]chan struct{}{}, over: make(chan struct{})}
	// A hang-up is of the terminal of whoever started it.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	go k.accept()
	go k.look()
	select {
	case <-ended:
	case <-k.over:
	}
	k.end()
	return 0
}

// key names a connection: all that a target says.
type key [sha256.Size]byte

// held is a connection that is kept.
type held struct {
	key    key
	target remote.Target
	node   *remote.Node
	since  time.Time

	// guarded by keeper.mu
	users int
	idle  time.Time    // when the last one went
	lent  *remote.Lent // the last one; nil: none was
}

// keeper is the process.
type keeper struct {
	state, build string
	keep         time.Duration
	since        time.Time
	listener     net.Listener
	over         chan struct{} // closed when it is to end
	once         sync.Once

	mu      sync.Mutex
	held    map[key]*held
	tunnels map[tunnelKey]*tunnel
	opening map[tunnelKey]chan struct{} // closed when it is opened, or can't be
	guests  int                         // connections of commands
	empty   time.Time                   // since when there was nothing to hold; zero: there is
}

func (k *keeper) stop() { k.once.Do(func() { close(k.over) }) }

// end ends every connection. A socket that is gone means that no command waits for
// an answer which does not come.
func (k *keeper) end() {
	path := socketPath(k.state, k.build)
	if unlock, err := lock(context.Background(), path+".lock", startLimit); err == nil {
		_, _, _ = os.Remove(path), k.listener.Close(), os.Remove(path+".lock")
		unlock()
	}
	k.endTunnels("its keeper was ended", func(*tunnel) bool { return true })
	k.dropAll(func(*held) bool { return true })
}

func (k *keeper) accept() {
	for {
		conn, err := k.listener.Accept()
		if err != nil {
			k.stop()
			return
		}
		go k.serve(conn)
	}
}

// look ends what nobody uses, and itself when nothing is left, or when the state
// directory is gone.
func (k *keeper) look() {
	for range time.Tick(lookEvery) {
		k.endTunnels("its node was not reached for "+awayMost.String(), (*tunnel).isLost)
		k.dropAll(func(h *held) bool { return h.users == 0 && (time.Since(h.idle) > k.keep || h.isDead()) })
		_, err := os.Stat(k.state)
		k.mu.Lock()
		switch {
		case len(k.held) > 0 || len(k.tunnels) > 0 || k.guests > 0:
			k.empty = time.Time{}
		case k.empty.IsZero():
			k.empty = time.Now()
		}
		empty := !k.empty.IsZero() && time.Since(k.empty) > emptyFor
		k.mu.Unlock()
		if empty || os.IsNotExist(err) {
			k.stop()
			return
		}
	}
}

// isDead reports whether the connection has ended.
func (h *held) isDead() bool {
	if h.lent == nil {
		return true
	}
	select {
	case <-h.lent.Done():
		return true
	default:
		return false
	}
}

// dropAll ends the connections that are picked.
func (k *keeper) dropAll(pick func(*held) bool) {
	var gone []*held
	k.mu.Lock()
	for id, h := range k.held {
		if pick(h) {
			delete(k.held, id)
			gone = append(gone, h)
		}
	}
	k.mu.Unlock()
	var closing sync.WaitGroup
	for _, h := range gone {
		closing.Go(func() { _ = h.node.Close() })
	}
	closing.Wait()
}

// serve answers the question of one connection.
func (k *keeper) serve(conn net.Conn) {
	k.visit(1)
	defer k.visit(-1)
	defer conn.Close()
	if sameUser(conn) != nil {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(greetLimit))
	in := bufio.NewReaderSize(conn, 64<<10)
	var q question
	if receive(in, &q) != nil || send(conn, greeting{k.build, os.Getpid()}) != nil {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	switch q.Op {
	case opLend:
		if q.Build == k.build && len(q.Targets) == 1 {
			k.lend(conn, in, q.Targets[0])
		}
	case opHold:
		if q.Build == k.build && q.Tunnel != nil {
			k.hold(conn, in, q)
		}
	case opTicket:
		k.ticket(conn, q.Like)
	case opEnd:
		k.endLike(conn, q.Like)
	case opDrop:
		k.endTunnels("the machine goes, or has another address or key", func(t *tunnel) bool { return slices.ContainsFunc(q.Targets, t.by.isAt) })
		k.dropAll(func(h *held) bool { return slices.ContainsFunc(q.Targets, h.isAt) })
		_ = send(conn, answer{})
	case opStatus:
		_ = send(conn, answer{Status: k.status()})
	case opStop:
		_ = send(conn, answer{})
		k.stop()
		<-time.After(greetLimit) // the connection ends with the process
	}
}

func (k *keeper) visit(by int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.guests += by
}

// isAt reports whether a connection leads to the machine of a target.
func (h *held) isAt(t remote.Target) bool {
	return h.target.Addr == t.Addr && h.target.User == t.User && h.target.Own == t.Own
}

// take gives the connection of a target for use, and release gives it back.
func (k *keeper) take(t remote.Target) (*held, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	id := key(sha256.Sum256(text))
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.held[id]
	if h == nil {
		h = &held{key: id, target: t, node: remote.Open(t), since: time.Now()}
		k.held[id] = h
	}
	h.users++
	return h, nil
}

func (k *keeper) release(h *held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h.users--
	h.idle = time.Now()
}

// lend lends the agent of a node for as long as the other side is there.
func (k *keeper) lend(conn net.Conn, in *bufio.Reader, t remote.Target) {
	h, err := k.take(t)
	if err != nil {
		return
	}
	defer k.release(h)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	guest := watchGuest(conn, in, cancel)
	lent, err := h.node.Lend(ctx)
	if err != nil {
		_ = send(conn, answer{Failure: failureOf(err)})
		return
	}
	k.mu.Lock()
	h.lent = lent
	k.mu.Unlock()
	if send(conn, answer{HostKey: h.node.HostKey()}) == nil {
		_ = lent.To(guest)
	}
}

// guest is the connection of a command, whose first byte is waited for while it has
// nothing to say: that ends when it goes.
type guest struct {
	net.Conn
	in    *bufio.Reader
	ready chan struct{} // closed when the first byte is there
}

func watchGuest(conn net.Conn, in *bufio.Reader, gone func()) *guest {
	g := &guest{conn, in, make(chan struct{})}
	go func() {
		defer close(g.ready)
		if _, err := in.Peek(1); err != nil {
			gone()
		}
	}()
	return g
}

func (g *guest) Read(p []byte) (int, error) {
	<-g.ready
	return g.in.Read(p)
}

// status is what the keeper holds, by name.
func (k *keeper) status() *Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &Status{PID: os.Getpid(), Since: k.since, Keep: k.keep.String(), Nodes: []Kept{}, Tunnels: k.tunnelsLocked()}
	for _, h := range k.held {
		s.Nodes = append(s.Nodes, Kept{Name: h.target.Name, Addr: h.target.Addr, User: h.target.User, Since: h.since, Users: h.users, IdleSince: h.idle})
	}
	slices.SortFunc(s.Nodes, func(a, b Kept) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Addr, b.Addr)) })
	return s
}
