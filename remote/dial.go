package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/sshconn"
	"github.com/dlwb/dlwb/sshkeys"
)

// attempt is one dial, shared by everybody who waits for a connection.
type attempt struct {
	done chan struct{}
	err  error // valid after done
}

// dialShared waits for the dial under way, or starts one. The dial goes on
// when ctx ends: somebody else may be waiting for it.
func (n *Node) dialShared(ctx context.Context) error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return n.wrap("connect", ErrClosed)
	}
	a := n.attempt
	if a == nil {
		a = &attempt{done: make(chan struct{})}
		n.attempt = a
		notBefore := n.notBefore
		n.tasks.Go(func() { n.try(a, notBefore) })
	}
	n.mu.Unlock()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return n.wrap("connect", context.Cause(ctx))
	}
}

// try dials once, not before the given time.
func (n *Node) try(a *attempt, notBefore time.Time) {
	select {
	case <-time.After(time.Until(notBefore)):
	case <-n.ctx.Done():
	}
	began := time.Now()
	w, err := n.open(n.ctx)
	n.mu.Lock()
	n.attempt = nil
	switch {
	case n.closed && err == nil:
		w.machine.Kill(ErrClosed)
		err = n.wrap("connect", ErrClosed)
	case err == nil:
		n.addLocked(w)
	default:
		n.backOffLocked(began)
	}
	n.mu.Unlock()
	if err == nil {
		n.tell(true, "")
	} else if !n.isClosed() {
		n.tellDown(err.Error())
	}
	a.err = err
	close(a.done)
}

// tellDown reports that the node can't be reached, unless some link lives.
func (n *Node) tellDown(why string) {
	n.mu.Lock()
	alive := len(n.links) > 0
	n.mu.Unlock()
	if !alive {
		n.tell(false, why)
	}
}

func (n *Node) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// backOffLocked sets when the next dial may start, counted from the beginning of
// the last one: who has waited for an answer in vain need not pause besides. The
// jitter keeps many nodes that were lost together from coming back together.
func (n *Node) backOffLocked(began time.Time) {
	pause := min(backoffMost, backoffLeast<<min(n.failures, 10))
	n.failures++
	pause = pause/2 + rand.N(pause/2+1)
	n.notBefore = began.Add(pause)
}

// dial makes one connection: TCP, host key, login.
func (n *Node) dial(ctx context.Context) (way, error) {
	t := n.target
	p := party{
		name: t.Name, addr: t.Addr, user: t.User, hostKeys: []string{t.HostKey}, keyFile: t.KeyFile, keys: t.Keys,
		shown: func(key ssh.PublicKey) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.shown = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		},
	}
	if t.NextHostKey != "" {
		p.hostKeys = append(p.hostKeys, t.NextHostKey)
	}
	client, conn, err := p.dialUnlocking(ctx, t.Jumps, n.timing)
	return way{overSSH{client}, client, conn}, err
}

// dialUnlocking dials within the limit, and again where a key could not be
// tried and a person has now given its passphrase: that may take longer than
// any dial.
func (p party) dialUnlocking(ctx context.Context, chain []Jump, t timing) (*sshconn.Conn, net.Conn, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, t.dialLimit)
		client, conn, err := p.dial(limited, chain, t)
		cancel()
		var auth *AuthError
		if err == nil || ctx.Err() != nil || !errors.As(err, &auth) || auth.Name != p.name || auth.login == nil || !auth.login.Unlock() {
			return client, conn, err
		}
	}
}

// party is the ssh server at the other end: a node, or a jump host on the way.
type party struct {
	name, addr, user string
	hostKeys         []string // any of which it may show; errors name the first
	keyFile          string   // must be there; empty: only keys are tried
	keys             sshkeys.Keys
	shown            func(ssh.PublicKey) // told of the key that was accepted; may be nil
}

// dialTries is how often a server is tried that hangs up before it says who it
// is: so sshd does when more people than MaxStartups are logging in.
const dialTries = 6

// dial connects, directly or through a chain of jump hosts, and logs in.
func (p party) dial(ctx context.Context, chain []Jump, t timing) (*sshconn.Conn, net.Conn, error) {
	known, err := p.known()
	if err != nil {
		return nil, nil, err
	}
	for try := 1; ; try++ {
		client, conn, err := p.dialOnce(ctx, chain, known, t)
		if err == nil || try == dialTries || !hungUp(err) {
			return client, conn, err
		}
		select {
		case <-time.After(min(backoffLeast/2<<try, time.Second) + rand.N(backoffLeast)):
		case <-ctx.Done():
			return nil, nil, err
		}
	}
}

// hungUp reports whether a server took the connection and closed it at once.
func hungUp(err error) bool {
	var unreachable *UnreachableError
	return errors.As(err, &unreachable) && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET))
}

func (p party) dialOnce(ctx context.Context, chain []Jump, known []ssh.PublicKey, t timing) (*sshconn.Conn, net.Conn, error) {
	login, err := p.login(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	defer login.Close()
	ctx, cancel := waits.Within(ctx, waits.Wait{On: p.name, What: "to answer by ssh at " + p.addr, Then: "it shows its host key and takes the login"})
	defer cancel()
	conn, err := reach(ctx, chain, p.addr, t)
	if err != nil {
		return nil, nil, p.dialError(silence(ctx, err, login, t), login)
	}
	conn = &heard{Conn: conn}
	client, err := sshconn.Handshake(ctx, p.name, conn, p.addr, &ssh.ClientConfig{
		User:              p.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(login.Signers...)},
		HostKeyCallback:   p.hostKeyCheck(known),
		HostKeyAlgorithms: hostKeyAlgorithms(known[0].Type()),
	}, t.bounds)
	if err != nil {
		return nil, nil, p.dialError(silence(ctx, err, login, t), login)
	}
	return client, conn, nil
}

// silence says who did not answer when a dial ran out of time; else it returns
// the error.
func silence(ctx context.Context, err error, login *sshkeys.Proof, t timing) error {
	switch {
	case ctx.Err() == nil:
		return err
	case login.Stuck() != "":
		return fmt.Errorf("the ssh agent at %s did not answer within %v, when it was asked for a signature", login.Stuck(), t.dialLimit)
	}
	return fmt.Errorf("no ssh answer within %v", t.dialLimit)
}

// known are the host keys that the server may show.
func (p party) known() ([]ssh.PublicKey, error) {
	var keys []ssh.PublicKey
	for _, text := range p.hostKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
		if err != nil {
			return nil, &HostKeyError{Name: p.name, Addr: p.addr, Got: fmt.Sprintf("have %q", text)}
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// login reads the keys anew for every dial: they may have been made after Open,
// and the agent may hold others than before.
func (p party) login(ctx context.Context, t timing) (*sshkeys.Proof, error) {
	if p.keyFile == "" {
		return sshkeys.Gather(ctx, p.keys, t.dialLimit), nil
	}
	text, err := plainfile.Read(p.keyFile, keyMost)
	if err != nil {
		return nil, p.authError(err, p.keyFile, nil)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, p.authError(err, p.keyFile, nil)
	}
	login := &sshkeys.Proof{}
	if len(p.keys.Files) > 0 || p.keys.Agent != "" {
		login = sshkeys.Gather(ctx, p.keys, t.dialLimit)
	}
	login.Signers = append([]ssh.Signer{signer}, login.Signers...)
	login.Tried = append([]string{p.keyFile}, login.Tried...)
	return login, nil
}

func (p party) hostKeyCheck(known []ssh.PublicKey) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, got ssh.PublicKey) error {
		if !slices.ContainsFunc(known, func(want ssh.PublicKey) bool { return sshkeys.Same(got, want) }) {
			return &HostKeyError{p.name, p.addr, sshkeys.Text(known[0]), sshkeys.Text(got)}
		}
		if p.shown != nil {
			p.shown(got)
		}
		return nil
	}
}

// hostKeyAlgorithms are those that make the host show a key of the known type.
// Else a host with several keys may show another one, which would look like a
// changed key.
func hostKeyAlgorithms(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// dialError gives an error of dialing its type. What a jump host failed with
// has one.
func (p party) dialError(err error, login *sshkeys.Proof) error {
	var hostKey *HostKeyError
	var auth *AuthError
	if errors.As(err, &hostKey) || errors.As(err, &auth) {
		if hostKey != nil && hostKey.Name == p.name {
			return hostKey
		}
		return fmt.Errorf("connect to %s: %w", p.name, err)
	}
	var algo *ssh.AlgorithmNegotiationError
	if errors.As(err, &algo) && algo.What == "host key" {
		want := "a valid key"
		if known, err := p.known(); err == nil {
			want = sshkeys.Text(known[0])
		}
		return &HostKeyError{p.name, p.addr, want, "only other kinds of key: " + strings.Join(algo.RequestedAlgorithms, ", ")}
	}
	// x/crypto has no type for this one on the client's side.
	if strings.Contains(err.Error(), "unable to authenticate") {
		return p.authError(refused(login), strings.Join(login.Tried, ", "), login)
	}
	return &UnreachableError{p.name, p.addr, err}
}

func (p party) authError(err error, tried string, login *sshkeys.Proof) error {
	if tried == "" {
		tried = "no key"
	}
	return &AuthError{p.name, p.addr, p.user, tried, err, login}
}
