package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/units"
)

// heldOf finds the connection that is held to a machine, and gives the machine with
// the host keys that were accepted. It must be what a new login would lead to: by the
// same address, user, keys and jump hosts, and host keys that are still the right ones.
// Else the machine is dialed, and what is wrong is told.
func heldOf(held []cloud.Held, m machine) (machine, *cloud.Held) {
	if len(m.Jumps) > 0 && m.byCommand() {
		return m, nil // a node does not tell the keys of the jump hosts there
	}
	for i, h := range held {
		n := h.Node
		if own := n.Way == cloud.ByOwnSSH; own || m.Own {
			if own && m.Own && n.ID == m.Entry {
				return m, &held[i]
			}
			continue
		}
		if (n.Way == wayCommand) != m.byCommand() || n.Addr != m.addr() || n.User != m.User || len(n.Jumps) != len(m.Jumps) || !reflect.DeepEqual(n.Keys, m.Keys) || !accepted(&m, n.HostKey) {
			continue
		}
		jumps := append([]machine(nil), m.Jumps...)
		same := true
		for k, j := range n.Jumps {
			same = same && accepted(&jumps[k], j.HostKey)
		}
		m.Jumps = jumps
		if same && (len(jumps) == 0 || reflect.DeepEqual(jumpsOf(m), n.Jumps)) {
			return m, &held[i]
		}
	}
	return m, nil
}

// accepted reports whether a host key is one that the machine may show, and notes that
// it has shown it.
func accepted(m *machine, hostKey string) bool {
	shown, _, _, _, err := ssh.ParseAuthorizedKey([]byte(hostKey))
	if err != nil {
		return false
	}
	k, err := knownOf(*m)
	if err != nil {
		return false
	}
	key, err := k.check(shown)
	if err != nil {
		return false
	}
	m.HostKey = authorizedForm(key)
	return true
}

// commandHeld is command over a connection that is held.
func (c *contact) commandHeld(ctx context.Context, line string, input []byte) printed {
	said, err := c.held.Run(ctx, line, input)
	p := printed{out: bytes.Clone(said.Out[:min(len(said.Out), hostclaim.AnswerMost)]), complaints: string(said.Err[:min(len(said.Err), hostclaim.AnswerMost)]), err: err}
	switch cause := context.Cause(ctx); {
	case cause != nil:
		p.err = cause
	case err != nil:
	case len(said.Out) > hostclaim.AnswerMost:
		p.err = fmt.Errorf("it said more than %s, and not what it was asked", units.Bytes(hostclaim.AnswerMost))
	case said.Code == 127:
		p.err = errors.New("there is no /bin/sh")
	case said.Code != 0:
		p.err = &endedError{said.Code}
	}
	return p
}

// endedBadly reports whether an error is the end of a command that has run.
func endedBadly(err error) bool {
	return errors.As(err, new(*ssh.ExitError)) || errors.As(err, new(*endedError))
}

// endedError is the end of a command that did not end well.
type endedError struct{ code int }

// Error says how it ended.
func (e *endedError) Error() string { return fmt.Sprintf("the command ended with code %d", e.code) }
