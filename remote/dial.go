package remote

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/plainfile"
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
	if err := n.refused; a == nil && err != nil && time.Until(n.notBefore) > backoffMost {
		n.mu.Unlock()
		return err // nobody waits for so long without a word
	}
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
	n.refused = nil
	if at := refused(err); !at.IsZero() {
		n.refused, n.refusedAt = err, at
	}
	switch {
	case n.closed && err == nil:
		w.machine.Kill(ErrClosed)
		err = n.wrap("connect", ErrClosed)
	case err == nil:
		n.met = true
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
	if n.met && n.refused != nil && n.target.Own.Name == "" { // package ownssh has pauses of its own
		pause = min(refusedMost, refusedLeast<<min(n.failures, 10))
	}
	n.failures++
	pause = pause/2 + rand.N(pause/2+1)
	n.notBefore = began.Add(pause)
}

// dial makes one connection: TCP, host key, login.
func (n *Node) dial(ctx context.Context) (way, error) {
	if w, found, err := n.borrow(ctx); found || err != nil {
		return w, err
	}
	t := n.target
	if t.Own.Name != "" {
		return n.byOwn(ctx)
	}
	p := party{
		name: t.Name, addr: t.Addr, user: t.User, hostKeys: []string{t.HostKey}, keyFile: t.KeyFile, keys: t.Keys, reach: t.Reach,
		shown: func(key ssh.PublicKey) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.shown = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
		},
	}
	if t.NextHostKey != "" {
		p.hostKeys = append(p.hostKeys, t.NextHostKey)
	}
	client, err := p.dial(ctx, t.Jumps, n.bounds)
	return way{machine: overSSH{client}, client: client}, err
}

// party is the ssh server at the other end: a node, or a jump host on the way.
type party struct {
	name, addr, user string
	hostKeys         []string // any of which it may show; errors name the first
	keyFile          string   // must be there; empty: only keys are tried
	keys             sshkeys.Keys
	shown            func(ssh.PublicKey)                     // told of the key that was accepted; may be nil
	reach            func(context.Context) (net.Conn, error) // nil: by TCP
}

// dial connects, directly or through a chain of jump hosts, and logs in.
func (p party) dial(ctx context.Context, chain []Jump, b sshconn.Bounds) (*sshconn.Conn, error) {
	known, err := p.known()
	if err != nil {
		return nil, err
	}
	open := p.reach
	if open == nil {
		open = func(ctx context.Context) (net.Conn, error) { return reach(ctx, chain, p.addr, b) }
	}
	client, err := sshconn.Server{
		Name: p.name, Addr: p.addr, User: p.user, Algorithms: hostKeyAlgorithms(known[0].Type()),
		Check: func(shown ssh.PublicKey) error { return p.check(known, shown) },
		Keys:  func(ctx context.Context) (*sshkeys.Proof, error) { return p.login(ctx, b.Dial) },
		Reach: open,
	}.Dial(ctx, b)
	if err != nil {
		return nil, p.dialError(err, known[0])
	}
	return client, nil
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

// login gathers what to log in with.
func (p party) login(ctx context.Context, limit time.Duration) (*sshkeys.Proof, error) {
	if p.keyFile == "" {
		return sshkeys.Gather(ctx, p.keys, limit), nil
	}
	text, err := plainfile.Read(p.keyFile, keyMost)
	if err != nil {
		return nil, p.authError(err, p.keyFile)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, p.authError(err, p.keyFile)
	}
	login := &sshkeys.Proof{}
	if len(p.keys.Files) > 0 || p.keys.Agent != "" {
		login = sshkeys.Gather(ctx, p.keys, limit)
	}
	login.Signers = append([]ssh.Signer{signer}, login.Signers...)
	login.Tried = append([]string{p.keyFile}, login.Tried...)
	return login, nil
}

func (p party) check(known []ssh.PublicKey, shown ssh.PublicKey) error {
	if !slices.ContainsFunc(known, func(key ssh.PublicKey) bool { return sshkeys.Same(shown, key) }) {
		return &HostKeyError{p.name, p.addr, sshkeys.Text(known[0]), sshkeys.Text(shown)}
	}
	if p.shown != nil {
		p.shown(shown)
	}
	return nil
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
func (p party) dialError(err error, known ssh.PublicKey) error {
	var hostKey *HostKeyError
	var auth *AuthError
	var algo *ssh.AlgorithmNegotiationError
	var refused *sshconn.RefusedError
	switch {
	case errors.As(err, &hostKey) && hostKey.Name == p.name:
		return hostKey
	case hostKey != nil, errors.As(err, &auth):
		return fmt.Errorf("connect to %s: %w", p.name, err)
	case errors.As(err, &algo) && algo.What == "host key":
		return &HostKeyError{p.name, p.addr, sshkeys.Text(known), "only other kinds of key: " + strings.Join(algo.RequestedAlgorithms, ", ")}
	case errors.As(err, &refused):
		return p.authError(refusal(refused.Login), strings.Join(refused.Login.Tried, ", "))
	}
	return &UnreachableError{p.name, p.addr, err}
}

func (p party) authError(err error, tried string) error {
	if tried == "" {
		tried = "no key"
	}
	return &AuthError{p.name, p.addr, p.user, tried, err}
}

// refusal says why a login with these keys failed, and which other key could
// have been tried.
func refusal(p *sshkeys.Proof) error {
	text := "the server accepted none of the keys"
	switch len(p.Signers) {
	case 0:
		text = "there is no key to log in with"
	case 1:
		text = "the server did not accept the key"
	}
	if why, next := p.Missed(); why != "" {
		text += "; " + why + ": " + next
	}
	return errors.New(text)
}
