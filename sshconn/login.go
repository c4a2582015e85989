package sshconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/sshkeys"
)

// Server is an ssh server that is to be logged in to.
type Server struct {
	Name       string // what waits and errors call it
	Addr, User string
	// Algorithms are the kinds of host key that it may show. Else a host with
	// several keys may show another one, which would look like a changed key.
	Algorithms []string
	// Check is asked whether the host key that it shows is the right one.
	Check func(shown ssh.PublicKey) error
	// Keys gathers what to log in with, anew for each try: keys may have been made
	// since, and the agent may hold others than before.
	Keys func(ctx context.Context) (*sshkeys.Proof, error)
	// Reach connects to it.
	Reach func(ctx context.Context) (net.Conn, error)
}

// RefusedError says that a server accepted none of the keys.
type RefusedError struct {
	Login *sshkeys.Proof
	// NoKeys says that the server takes no keys at all, as one with passwords only.
	NoKeys bool
}

func (e *RefusedError) Error() string {
	if e.NoKeys {
		return "it takes no keys, and a password is never sent"
	}
	return "none of the keys was accepted"
}

// AgentError says that the ssh agent owes the answer that a login waits for.
type AgentError struct {
	Socket string
	Limit  time.Duration
}

func (e *AgentError) Error() string {
	return fmt.Sprintf("the ssh agent at %s did not answer within %v, when it was asked for a signature", e.Socket, e.Limit)
}

// NoAnswerError says that a server did not answer in time.
type NoAnswerError struct {
	Limit time.Duration
	// Begun says that it had begun to, and not shown its host key yet: it hangs, or
	// the way does not carry what is large.
	Begun bool

	again bool // the next connection has small segments, as this one had not
}

func (e *NoAnswerError) Error() string {
	if e.Begun {
		return fmt.Sprintf("it began to answer by ssh, and did not get on within %v: it hangs, or packets of full size are lost on the way (MTU)", e.Limit)
	}
	return fmt.Sprintf("no ssh answer within %v", e.Limit)
}

// Dial connects, checks the host key and logs in, within the bound. What Check,
// Keys and Reach fail with is its error. A key that could not be tried is tried
// when a person has now given its passphrase: that may take longer than any dial.
func (s Server) Dial(ctx context.Context, b Bounds) (*Conn, error) {
	for {
		c, err := s.dialWithin(ctx, b)
		var mute *NoAnswerError
		if errors.As(err, &mute) && mute.again && ctx.Err() == nil {
			continue
		}
		var refused *RefusedError
		if err == nil || ctx.Err() != nil || !errors.As(err, &refused) || !refused.Login.Unlock() {
			return c, err
		}
	}
}

// dialTries is how often a server is tried that hangs up before it says who it
// is: so sshd does when more people than MaxStartups are logging in.
const dialTries = 6

func (s Server) dialWithin(ctx context.Context, b Bounds) (*Conn, error) {
	ctx, cancel := waits.Within(ctx, waits.Wait{On: s.Name, What: "to answer by ssh at " + s.Addr, Limit: b.Dial,
		Then: "it shows its host key and takes the login"})
	defer cancel()
	for try := 1; ; try++ {
		c, err := s.dialOnce(ctx, b)
		if err == nil || try == dialTries || !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			return c, err
		}
		select {
		case <-time.After(min(100*time.Millisecond<<try, time.Second) + rand.N(200*time.Millisecond)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (s Server) dialOnce(ctx context.Context, b Bounds) (*Conn, error) {
	login, err := s.Keys(ctx)
	if err != nil {
		return nil, err
	}
	defer login.Close()
	conn, err := s.Reach(ctx)
	if err != nil {
		return nil, silence(ctx, err, login, b)
	}
	listening, introduced := &heard{Conn: conn}, atomic.Bool{}
	c, err := Handshake(ctx, s.Name, listening, s.Addr, &ssh.ClientConfig{
		User: s.User,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(login.Signers...)},
		HostKeyCallback: func(_ string, _ net.Addr, shown ssh.PublicKey) error {
			introduced.Store(true)
			return s.Check(shown)
		},
		HostKeyAlgorithms: s.Algorithms,
	}, b)
	// x/crypto has no type for this one on the client's side.
	if err != nil && strings.Contains(err.Error(), "unable to authenticate") && (ctx.Err() == nil || login.Stuck() == "") {
		// It names the methods that both sides know, and keys are all that we have.
		return nil, &RefusedError{login, !strings.Contains(err.Error(), "publickey")}
	}
	err = silence(ctx, err, login, b)
	var mute *NoAnswerError
	if errors.As(err, &mute) && listening.at.Load() != 0 && !introduced.Load() {
		mute.Begun, mute.again = true, fellSilent(conn)
	}
	return c, err
}

// silence says who did not answer when a dial ran out of time; else it returns
// the error.
func silence(ctx context.Context, err error, login *sshkeys.Proof, b Bounds) error {
	switch {
	case err == nil, ctx.Err() == nil:
		return err
	case login.Stuck() != "":
		return &AgentError{login.Stuck(), b.Dial}
	}
	return &NoAnswerError{Limit: b.Dial}
}

// reachLimit bounds one try to open a TCP connection. The kernel sends the first
// packet again after 1, 3 and 7 s: a new try is sooner.
const reachLimit = 2 * time.Second

// Reach opens a TCP connection. It tries for as long as ctx lasts when nobody
// answers at all.
func Reach(ctx context.Context, addr string) (net.Conn, error) {
	for {
		began := time.Now()
		conn, err := (&net.Dialer{Timeout: reachLimit, Control: segments}).DialContext(ctx, "tcp", addr)
		var timeout net.Error
		if err == nil || ctx.Err() != nil || !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(began) < reachLimit/2 {
			return conn, err
		}
	}
}
