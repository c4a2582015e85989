package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
)

// A port on loopback is open to every user of the machine. Where the system says
// whose socket is at the other end of a connection, one of another user goes no
// further, whatever it says or shows. See peer_linux.go; elsewhere nobody is
// refused here, and the door is what holds.

// unknownUser is whoever has closed a socket before it was seen whose it was.
const unknownUser = -1

// stranger returns an error when a connection is another user's.
func (t *Tunnel) stranger(conn net.Conn) error {
	uid, foreign := foreignPeer(conn)
	if !foreign {
		return nil
	}
	if uid == unknownUser {
		return errors.New("whose connection this is can't be seen any more")
	}
	err := fmt.Errorf("a connection of user %d of this machine was refused: the tunnel is for user %d", uid, os.Geteuid())
	t.mu.Lock()
	told := t.strangers[uid]
	if t.strangers == nil {
		t.strangers = map[int]bool{}
	}
	t.strangers[uid] = true
	t.mu.Unlock()
	if !told { // once, or a stranger could fill the store with it
		t.note(err)
	}
	return err
}

// peerKey is the key of what is known of the other end of a connection.
type peerKey struct{}

// withPeer keeps with each connection to an HTTP server the question whose it
// is, which is asked with the first request.
func (t *Tunnel) withPeer(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, peerKey{}, sync.OnceValue(func() error { return t.stranger(conn) }))
}

// ours refuses requests on another user's connections.
func (t *Tunnel) ours(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		look, known := r.Context().Value(peerKey{}).(func() error)
		err := errors.New("nothing is known of its connection")
		if known {
			err = look()
		}
		if err != nil {
			refuse(w, err.Error())
			return
		}
		next.ServeHTTP(w, r)
	})
}
