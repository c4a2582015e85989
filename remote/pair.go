package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/remote/wire"
)

// Peer is a node as the other nodes of its cluster reach it.
type Peer struct {
	Name    string
	Host    string
	Port    int
	User    string
	HostKey string // in authorized_keys form
}

func (p Peer) check() error {
	if !plainName.MatchString(p.Name) || !plainHost.MatchString(p.Host) || !plainName.MatchString(p.User) ||
		p.Port < 1 || p.Port > 65535 {
		return fmt.Errorf("peer %q can't be reached at %q as %q: a name, a host, a port and a user are needed",
			p.Name, net.JoinHostPort(p.Host, strconv.Itoa(p.Port)), p.User)
	}
	return nil
}

// Pair lets nodes stop a run on each other, so that a failure on one ends the
// others also when nobody is connected, and pass on the files of a Sync or a
// Share that is under way, so that each is sent to one of them only; and nothing
// else: none gets a shell on another. The key for that is in
// keyFile here, made when it is not there yet. peers are the same nodes as they
// see each other. lives are, by node, that of the cluster where another one came first to
// the home directory there, else empty; nil: nowhere did. Pairing again changes nothing.
func Pair(ctx context.Context, nodes []*Node, lives []string, peers []Peer, keyFile string) error {
	public, err := GenerateKey(keyFile, "dlwb-peer")
	if err != nil {
		return err
	}
	private, err := plainfile.Read(keyFile, keyMost)
	if err != nil {
		return fmt.Errorf("read the node-to-node key: %w", err)
	}
	request, err := pairRequest(public, string(private), peers)
	if err != nil {
		return err
	}
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		own := request
		if lives != nil {
			own.Life = lives[i]
		}
		all.Go(func() { errs[i] = n.Ask(ctx, wire.Pair, own, nil) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func pairRequest(public, private string, peers []Peer) (r wire.PairRequest, err error) {
	var known, list strings.Builder
	for _, p := range peers {
		if p.HostKey == "" && p.Host != "" {
			continue // by the user's own ssh, and nothing is known by which another could know it
		}
		if err := p.check(); err != nil {
			return r, err
		}
		if strings.ContainsAny(p.HostKey, "\n\r") || len(strings.Fields(p.HostKey)) < 2 {
			return r, fmt.Errorf("peer %s has no valid host key", p.Name)
		}
		host := p.Host
		if p.Port != 22 {
			host = fmt.Sprintf("[%s]:%d", p.Host, p.Port)
		}
		fmt.Fprintf(&known, "%s %s\n", host, p.HostKey)
		fmt.Fprintf(&list, "%s %s %d %s\n", p.Name, p.Host, p.Port, p.User)
	}
	return wire.PairRequest{Key: private, KnownHosts: known.String(), Peers: list.String(), Authorized: hostclaim.PeerLine + public}, nil
}
