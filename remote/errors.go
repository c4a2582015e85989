package remote

import (
	"errors"
	"fmt"
)

// ErrClosed is the error of a node that was closed here.
var ErrClosed = errors.New("the connection was closed here")

// HostKeyError says that a host did not prove to be the one that is known.
// Nothing was sent to it, and dialing again can't help.
type HostKeyError struct {
	Name, Addr string
	Want       string // "ssh-ed25519 SHA256:…"; empty when no key is known
	Got        string // likewise; or what the host offered instead
}

func (e *HostKeyError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("connect to %s (%s): no valid host key is known for it (%s). "+
			"Nothing was sent. Read the key on the machine itself (/etc/ssh/ssh_host_ed25519_key.pub) and give it with the node's address",
			e.Name, e.Addr, e.Got)
	}
	return fmt.Sprintf("connect to %s (%s): the host key is not the known one: expected %s, got %s. "+
		"Nothing was sent. Either the machine was replaced, or somebody stands between. "+
		"If it was replaced, read its key on the machine itself (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub) and forget the old one",
		e.Name, e.Addr, e.Want, e.Got)
}

// AuthError says that the host was reached and is the right one, but we could
// not log in.
type AuthError struct {
	Name, Addr, User, KeyFile string
	Err                       error
}

func (e *AuthError) Error() string {
	return fmt.Sprintf("log in to %s (%s) as %q with %s: %v. "+
		"Check the user name, and that the key's public half is in ~/.ssh/authorized_keys there",
		e.Name, e.Addr, e.User, e.KeyFile, e.Err)
}

func (e *AuthError) Unwrap() error { return e.Err }

// UnreachableError says that no ssh connection could be made; a later try may
// succeed.
type UnreachableError struct {
	Name, Addr string
	Err        error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("connect to %s (%s): %v", e.Name, e.Addr, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// LostError says that the connection went away while something was under way:
// whether that was done on the node, and how far, is unknown.
type LostError struct {
	Name, What string
	Err        error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%s on %s: the connection was lost (%v); how far it got is unknown", e.What, e.Name, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }
