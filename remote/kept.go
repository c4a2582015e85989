package remote

import (
	"context"
	"sync"
	"time"
)

// TunnelWish is a tunnel that a lender is to hold, so that it outlives the process
// that asks for it.
type TunnelWish struct {
	Cluster string `json:"cluster"`
	Life    int64  `json:"life"`
	Name    string `json:"name"` // what it leads to, as a person asked for it
	// Port is listened on: here, or for Reverse on the node; 0: any free one. A
	// tunnel that is held already keeps its own, unless Fixed says otherwise.
	Port  int  `json:"port"`
	Fixed bool `json:"fixed,omitempty"`
	// Far is the port that it leads to.
	Far     int   `json:"far"`
	HTTP    *HTTP `json:"http,omitempty"` // nil: raw TCP
	Reverse bool  `json:"reverse,omitempty"`
	// Find asks only for one that is held already.
	Find bool `json:"find,omitempty"`
}

// TunnelHeld is a tunnel as who holds it tells of it.
type TunnelHeld struct {
	Cluster string      `json:"cluster"`
	Life    int64       `json:"life"`
	Name    string      `json:"name"`
	Port    int         `json:"port"`
	Far     int         `json:"far"`
	Host    string      `json:"host"` // with the port, as a browser names it
	HTTP    bool        `json:"http"`
	Reverse bool        `json:"reverse"`
	Since   time.Time   `json:"since"`
	Stands  TunnelState `json:"stands"`
}

// KeptTunnel is a tunnel that another process holds. This one hears how it stands.
type KeptTunnel struct {
	standing
	held   TunnelHeld
	holder TunnelHolder

	once sync.Once
	done chan struct{}
	why  string // valid after done
}

// TunnelHolder is what the process that holds a tunnel does for it.
type TunnelHolder struct {
	Ticket func() string // a fresh one
	End    func() error  // closes the tunnel
	Leave  func()        // no more news are wanted
}

// NewKeptTunnel makes one of what its holder told.
func NewKeptTunnel(held TunnelHeld, by TunnelHolder) *KeptTunnel {
	k := &KeptTunnel{held: held, holder: by, done: make(chan struct{})}
	k.Tell(held.Stands)
	return k
}

// Tell takes news of how it stands.
func (k *KeptTunnel) Tell(now TunnelState) { k.become(func(s *TunnelState) { *s = now }) }

// Ended takes the news that it is no more; why is empty where its holder went.
func (k *KeptTunnel) Ended(why string) {
	k.once.Do(func() {
		k.why = why
		close(k.done)
	})
}

// Done is closed when nothing more is heard of it.
func (k *KeptTunnel) Done() <-chan struct{} { return k.done }

// Why says why it ended; empty: who held it is gone. It waits for the end.
func (k *KeptTunnel) Why() string {
	<-k.done
	return k.why
}

// Held is what its holder told when it was asked for.
func (k *KeptTunnel) Held() TunnelHeld { return k.held }

// Ticket is that of Tunnel.
func (k *KeptTunnel) Ticket() string {
	if !k.held.HTTP {
		return ""
	}
	return k.holder.Ticket()
}

// Host is that of Tunnel.
func (k *KeptTunnel) Host() string { return k.held.Host }

// Port is that of Tunnel.
func (k *KeptTunnel) Port() int { return k.held.Port }

// Close ends the tunnel, wherever it is watched.
func (k *KeptTunnel) Close() error {
	err := k.holder.End()
	k.Leave()
	return err
}

// Leave hears no more of the tunnel, which goes on.
func (k *KeptTunnel) Leave() {
	k.holder.Leave()
	k.Ended("")
}

// Hold has the lender hold a tunnel to the node. It gives neither a tunnel nor an
// error where there is no lender, or where it does not reach the node by itself.
func (n *Node) Hold(ctx context.Context, w TunnelWish) (*KeptTunnel, error) {
	if n.lender == nil || n.lender.Hold == nil || n.target.Reach != nil {
		return nil, nil
	}
	return n.lender.Hold(ctx, n.target, w)
}

// HasHolder reports whether there is a lender that holds tunnels.
func HasHolder() bool { return lender != nil && lender.Hold != nil }

// EndHeld has the lender of this process close the tunnels that are like one: of
// its cluster and, where they are given, its name, its port and its direction.
func EndHeld(like TunnelHeld) {
	if lender != nil && lender.End != nil {
		lender.End(like)
	}
}

// Like reports whether a tunnel is one that EndHeld means.
func (h TunnelHeld) Like(like TunnelHeld) bool {
	return h.Cluster == like.Cluster && (like.Name == "" || h.Name == like.Name) &&
		(like.Port == 0 || h.Port == like.Port && h.Reverse == like.Reverse)
}
