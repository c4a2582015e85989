package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/programconn"
	"github.com/dlwb/dlwb/sshconn"
	"github.com/dlwb/dlwb/sshkeys"
)

// Problem is why a host can't be used, as one sentence, and what to do about
// it.
type Problem struct {
	Host string // its name for ssh
	Why  string
	Next string
	// Fingerprint is that of a host key of which nothing is known, and only
	// then set.
	Fingerprint string

	machine machine       // the one that it is about: the host, or a jump host on the way
	key     ssh.PublicKey // the one with the fingerprint
	mute    *muteError    // nobody took the connection; nil: somebody did
}

func (p *Problem) Error() string { return p.Host + ": " + p.Why }

// Unwrap gives what is to be told from other errors.
func (p *Problem) Unwrap() error {
	if p.mute == nil {
		return nil
	}
	return p.mute
}

// Advice is what to do about it.
func (p *Problem) Advice() string { return p.Next }

// caller makes connections, for as long as one call of the provider lasts. All
// hosts behind the same jump hosts share the connection to them.
type caller struct {
	mu     sync.Mutex
	hops   map[string]func() (*sshconn.Conn, string, error)
	open   []*sshconn.Conn
	bounds sshconn.Bounds
	mute   time.Duration // how long a host may not take a connection; 0: as bounds say
	held   []cloud.Held  // connections that there are already
	config string        // the ssh configuration for the user's own ssh; empty: the usual ones
}

func (p *Provider) newCaller() *caller {
	return &caller{bounds: sshconn.Standard, hops: map[string]func() (*sshconn.Conn, string, error){}, config: p.options.Config}
}

// close ends every connection.
func (c *caller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.open) - 1; i >= 0; i-- {
		_ = c.open[i].Close()
	}
}

// forget lets the jump hosts that could not be used be dialed anew.
func (c *caller) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.hops)
}

// contact is an open connection to a host, and what was learnt on the way.
type contact struct {
	machine               // with the host keys that were accepted, of the jump hosts too
	client  *sshconn.Conn // nil: it is asked by held
	held    *cloud.Held
	own     ownssh.Way // the user's own ssh is how it is asked; none: it is not
	took    time.Duration
	bounds  sshconn.Bounds
}

// holding is a caller that uses the connections to nodes that the cluster has.
func (p *Provider) holding(ctx context.Context, spec cloud.Spec) *caller {
	c := p.newCaller()
	if spec.Held != nil {
		c.held = spec.Held(ctx)
	}
	return c
}

// call connects to a machine and logs in, unless a connection to it is held.
func (c *caller) call(ctx context.Context, m machine) (*contact, error) {
	began := time.Now()
	if kept, h := heldOf(c.held, m); h != nil {
		return &contact{machine: kept, held: h, took: time.Since(began), bounds: c.bounds}, nil
	}
	if m.Own {
		return c.callOwn(ctx, m, began)
	}
	m, via, err := c.way(ctx, m)
	if err != nil {
		return nil, err
	}
	client, key, err := c.dial(ctx, via, m, false)
	if err != nil {
		return nil, err
	}
	m.HostKey = key
	return &contact{machine: m, client: client, took: time.Since(began), bounds: c.bounds}, nil
}

// knock goes as far as the host key of a machine and does not log in there.
func (c *caller) knock(ctx context.Context, m machine) error {
	if m.Own {
		_, err := c.callOwn(ctx, m, time.Now())
		return err
	}
	m, via, err := c.way(ctx, m)
	if err == nil {
		_, _, err = c.dial(ctx, via, m, true)
	}
	return err
}

// way connects to the jump hosts of a machine. The machine is returned with
// their host keys.
func (c *caller) way(ctx context.Context, m machine) (machine, *sshconn.Conn, error) {
	jumps := make([]machine, len(m.Jumps))
	var via *sshconn.Conn
	for i := range m.Jumps {
		client, key, err := c.hop(ctx, via, m.Jumps[:i+1])
		var p *Problem
		if errors.As(err, &p) {
			onWay := *p
			onWay.Host, onWay.Why = m.Alias, "the jump host "+p.machine.String()+" on the way: "+p.Why
			err = &onWay
		}
		if err != nil {
			return m, nil, err
		}
		via = client
		jumps[i] = m.Jumps[i]
		jumps[i].HostKey = key
	}
	m.Jumps = jumps
	return m, via, nil
}

// hop connects to the last of a chain of jump hosts, once.
func (c *caller) hop(ctx context.Context, via *sshconn.Conn, chain []machine) (*sshconn.Conn, string, error) {
	id := fmt.Sprintf("%#v", chain)
	c.mu.Lock()
	dial := c.hops[id]
	if dial == nil {
		dial = once(func() (*sshconn.Conn, string, error) { return c.dial(ctx, via, chain[len(chain)-1], false) })
		c.hops[id] = dial
	}
	c.mu.Unlock()
	return dial()
}

// once is a function that is called once and whose answer is kept.
func once(f func() (*sshconn.Conn, string, error)) func() (*sshconn.Conn, string, error) {
	type answer struct {
		client *sshconn.Conn
		key    string
		err    error
	}
	kept := sync.OnceValue(func() answer {
		client, key, err := f()
		return answer{client, key, err}
	})
	return func() (*sshconn.Conn, string, error) {
		a := kept()
		return a.client, a.key, a.err
	}
}

// errKnocked ends a handshake when the host key has been accepted.
var errKnocked = errors.New("the host key is the right one")

// dial connects, checks the host key and, unless it only knocks, logs in.
func (c *caller) dial(ctx context.Context, via *sshconn.Conn, m machine, knock bool) (client *sshconn.Conn, key string, err error) {
	k, err := knownOf(m)
	if err != nil {
		return nil, "", err
	}
	client, err = sshconn.Server{
		Name: m.Alias, Addr: m.addr(), User: m.User, Algorithms: k.algorithms(),
		Check: func(shown ssh.PublicKey) error {
			accepted, err := k.check(shown)
			switch {
			case errors.Is(err, errUnknown):
				return &Problem{key: accepted}
			case err != nil:
				return err
			case knock:
				return errKnocked
			}
			key = authorizedForm(accepted)
			return nil
		},
		Keys: func(ctx context.Context) (*sshkeys.Proof, error) {
			if knock {
				return &sshkeys.Proof{}, nil
			}
			return sshkeys.Gather(ctx, m.Keys, c.bounds.Dial), nil
		},
		Reach: func(ctx context.Context) (net.Conn, error) {
			if via != nil {
				return via.Dial(ctx, "tcp", m.addr())
			}
			return c.reach(ctx, m)
		},
	}.Dial(ctx, c.bounds)
	if knock && errors.Is(err, errKnocked) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", explain(m, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, client)
	return client, key, nil
}

// reach makes a TCP connection, or one over the machine's command.
func (c *caller) reach(ctx context.Context, m machine) (net.Conn, error) {
	if m.Command != "" {
		return startCommand(ctx, m.Command)
	}
	if c.mute <= 0 {
		return sshconn.Reach(ctx, m.addr())
	}
	limited, cancel := context.WithTimeout(ctx, c.mute)
	defer cancel()
	conn, err := sshconn.Reach(limited, m.addr())
	var timeout net.Error
	if err != nil && ctx.Err() == nil && (limited.Err() != nil || errors.As(err, &timeout) && timeout.Timeout()) {
		err = &muteError{m.addr(), c.mute}
	}
	return conn, err
}

// muteError says that a host does not take connections.
type muteError struct {
	addr  string
	limit time.Duration
}

func (e *muteError) Error() string {
	return fmt.Sprintf("no answer from %s within %v", e.addr, e.limit)
}

// explain turns what went wrong with a machine into a sentence.
func explain(m machine, err error) error {
	p := &Problem{Host: m.Alias, machine: m}
	var unknown *Problem
	var changed *changedError
	var refused *sshconn.RefusedError
	var algorithms *ssh.AlgorithmNegotiationError
	var channel *ssh.OpenChannelError
	var agent *sshconn.AgentError
	var silent *sshconn.NoAnswerError
	var mute *muteError
	var command *programconn.EndedError
	switch {
	case errors.As(err, &command):
		p.Why, p.Next = "it can't be reached: "+command.Error(), "see whether the user's own ssh gets further: "+m.login()
	case errors.As(err, &mute):
		p.mute = mute
		p.Why, p.Next = "no ssh answer: "+mute.Error(), "is it on, and in this network? "+m.login()
	case errors.As(err, &unknown):
		p.key, p.Fingerprint = unknown.key, sshkeys.Text(unknown.key)
		p.Why = "its host key is not known: it shows " + p.Fingerprint
		p.Next = "compare with ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub on the machine itself; if they are the same, " +
			m.login() + " once and say yes, or give it in machines.host_keys"
	case errors.As(err, &changed):
		p.Why, p.Next = changed.Error(), changed.next()
	case errors.As(err, &refused):
		p.Why, p.Next = refusal(m, refused)
	case errors.As(err, &algorithms) && algorithms.What == "host key":
		p.Why = "it has no host key of the known kind, but " + strings.Join(algorithms.RequestedAlgorithms, ", ") + ". Nothing was sent"
		p.Next = "if the machine was made anew: ssh-keygen -R '" + m.keyName() + "', then " + m.login() + " once"
	case strings.Contains(err.Error(), "is revoked by"):
		p.Why, p.Next = strings.TrimPrefix(err.Error(), "ssh: handshake failed: "), "give the machine a new host key"
	case errors.As(err, &agent):
		p.Why, p.Next = agent.Error(), "SSH_AUTH_SOCK= in front of the command does without it"
	case errors.As(err, &silent) && silent.Begun:
		p.Why = m.addr() + ": " + silent.Error()
		p.Next = "see whether the user's own ssh gets further: " + m.login() + "; through a VPN or a tunnel, give its interface here an MTU of 1280"
	case errors.As(err, &silent) && m.Command != "":
		p.Why = fmt.Sprintf("no ssh answer by %s within %v; it has no terminal to ask a question at", commandName, silent.Limit)
		p.Next = "see whether the user's own ssh gets further: " + m.login()
	case errors.As(err, &silent):
		p.mute = &muteError{m.addr(), silent.Limit}
		p.Why, p.Next = fmt.Sprintf("no ssh answer from %s within %v", m.addr(), silent.Limit), "is it on, and in this network? "+m.login()
	case errors.As(err, &channel):
		p.Why, p.Next = fmt.Sprintf("the jump host could not reach %s: %s", m.addr(), channel.Message), m.login()
	default:
		p.Why, p.Next = fmt.Sprintf("%s can't be reached: %s", m.addr(), reason(err)), "is it on, and does sshd run there? "+m.login()
	}
	return p
}

// reason is an error without what the sentence around it says already.
func reason(err error) string {
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return "there is no host of this name"
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	if errors.Is(err, io.EOF) {
		return "it hangs up before it says who it is"
	}
	return strings.TrimPrefix(err.Error(), "ssh: handshake failed: ")
}

// refusal says why a machine lets nobody in with these keys.
func refusal(m machine, refused *sshconn.RefusedError) (why, next string) {
	if refused.NoKeys {
		return "sshd there takes no keys for " + m.User + ", and dlwb logs in by keys only: it never sends a password",
			"PubkeyAuthentication yes in its sshd_config; then ssh-copy-id"
	}
	login := refused.Login
	tried := "there was no key to try"
	if len(login.Tried) > 0 {
		tried = "tried: " + strings.Join(login.Tried, ", ")
	}
	why = fmt.Sprintf("it does not let %s in (%s)", m.User, tried)
	if missed, next := login.Missed(); missed != "" {
		return why + "; " + missed, next
	}
	port := ""
	if m.Port != 22 {
		port = fmt.Sprintf("-p %d ", m.Port)
	}
	return why, "is the user right? If so: ssh-copy-id " + port + m.User + "@" + m.HostName
}

// jumpsOf are the jump hosts of a machine as plain data.
func jumpsOf(m machine) []cloud.Jump {
	var jumps []cloud.Jump
	for _, j := range m.Jumps {
		jumps = append(jumps, cloud.Jump{Name: j.Alias, Addr: j.addr(), User: j.User, HostKey: j.HostKey, Keys: j.Keys})
	}
	return jumps
}
