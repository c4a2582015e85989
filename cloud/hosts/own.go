package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/ownssh"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

// A host whose login wants what only a person has, such as a second factor, is reached
// by the user's own ssh, over the connection that this keeps open. Its configuration says
// who logs in where and on which way, and its known_hosts which key is the right one: of
// all that nothing is known here.

// host resolves one entry of machines.hosts.
func (r *resolver) host(entry string) (machine, error) {
	name, own := ownssh.Cut(entry)
	switch {
	case !own:
		return r.machine(entry, 0)
	case !ownssh.Plain(name):
		return machine{}, fmt.Errorf("%q is no machine for ssh", name)
	}
	user, host, has := strings.Cut(name, "@")
	if !has {
		user, host = "", name
	}
	return machine{Entry: entry, Alias: name, HostName: host, User: user, Own: true}, nil
}

// callOwn gets to a machine by the user's own ssh.
func (c *caller) callOwn(ctx context.Context, m machine, began time.Time) (*contact, error) {
	way := ownssh.At(m.Alias, c.config)
	if err := way.Try(ctx, c.mute); err != nil {
		p := &Problem{Host: m.Alias, machine: m, Why: err.Error(), Next: m.login()}
		var own *ownssh.Error
		if errors.As(err, &own) {
			p.Why, p.Next = own.Why, own.Next
		}
		return nil, p
	}
	return &contact{machine: m, own: way, took: time.Since(began), bounds: c.bounds}, nil
}

// whole is a problem where nothing beside it says what to do: of the user's own ssh only
// the user knows how it gets there.
func (p *Problem) whole() string {
	if p.machine.Own && p.Next != "" {
		return p.Why + ": " + p.Next
	}
	return p.Why
}

// commandOwn is command over the user's own ssh. took is called when input is taken, and
// out gets the output.
func (c *contact) commandOwn(ctx context.Context, line string, took func(), input [][]byte, out *capped) printed {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over := fmt.Errorf("it said more than %s, and not what it was asked", units.Bytes(hostclaim.AnswerMost))
	out.full = sync.OnceFunc(func() { cancel(over) })
	errs := capped{full: func() {}}
	parts := make([]io.Reader, len(input))
	for i, part := range input {
		parts[i] = bytes.NewReader(part)
	}
	code, err := c.own.Run(ctx, line, &taken{io.MultiReader(parts...), took}, out, &errs)
	switch {
	case err != nil:
	case code == 127:
		err = errors.New("there is no /bin/sh")
	case code != 0:
		err = &endedError{code}
	}
	return printed{out.bytes(), string(errs.bytes()), err}
}

// door is where the other hosts may reach a host, as it says itself.
type door struct {
	User    string `json:"user,omitempty"`
	Addr    string `json:"addr,omitempty"` // where its sshd took our connection
	Port    int    `json:"port,omitempty"`
	HostKey string `json:"host_key,omitempty"` // empty: it is not known
}

// doorScript prints who logs in, where sshd took the connection, and the host keys of
// that sshd: as it shows them there, else as their files have them.
const doorScript = `echo "dlwb-user $(id -un)"; set -- $SSH_CONNECTION; echo "dlwb-sshd $3 $4"; ` +
	`{ [ -z "$4" ] || ssh-keyscan -T 3 -p "$4" "$3"; for k in /etc/ssh/ssh_host_*_key.pub; do echo "file $(cat "$k")"; done; } 2>/dev/null | while read -r _ kind key _; do echo "dlwb-key $kind $key"; done; echo ` + doorShut

// doorShut is the last line of it.
const doorShut = "dlwb-over"

// openDoors asks hosts that the user's own ssh leads to where the others may reach them.
// It takes no login of theirs: it is what they say over a connection that has one.
func openDoors(ctx context.Context, contacts []*contact) {
	var all sync.WaitGroup
	for _, c := range contacts {
		if c.Own {
			all.Go(func() {
				got := c.command(ctx, shellword.Join("/bin/sh", "-c", doorScript), c.bounds.Script, func(out []byte) bool {
					return bytes.Contains(out, []byte(doorShut+"\n"))
				})
				if d := readDoor(string(got.out)); d.User != "" {
					c.Door = d
				}
			})
		}
	}
	all.Wait()
}

// keyKinds are the kinds of host keys, the best first.
var keyKinds = []string{"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"}

// readDoor reads what that has printed, among whatever a login shell prints. What no other
// host could be told is as good as not said.
func readDoor(text string) (d door) {
	keys := map[string]string{}
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 2 && w[0] == "dlwb-user" && ownssh.Plain(w[1]) && !strings.Contains(w[1], "@"):
			d.User = w[1]
		case len(w) == 3 && w[0] == "dlwb-sshd":
			at, err := netip.ParseAddrPort(net.JoinHostPort(w[1], w[2]))
			if err == nil && at.Port() > 0 && at.Addr().Zone() == "" { // one with a zone is on an interface of its own
				d.Addr, d.Port = w[1], int(at.Port())
			}
		case len(w) == 3 && w[0] == "dlwb-key" && keys[w[1]] == "":
			keys[w[1]] = w[1] + " " + w[2]
		}
	}
	for _, kind := range keyKinds {
		if d.HostKey = keys[kind]; d.HostKey != "" {
			break
		}
	}
	return d
}
