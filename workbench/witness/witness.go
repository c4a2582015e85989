// Package witness finds out whether machines that are not heard of are away, or this
// machine is cut off from all: something else on the same way has to answer.
package witness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/sshconn"
)

// Other is a machine that may answer: a node of another cluster.
type Other struct {
	Name string // "gpu7 of cluster x"
	Node cloud.Node
}

// Of are the nodes of a cluster as they may answer.
func Of(c cloud.Cluster) (all []Other) {
	for _, n := range c.Nodes {
		all = append(all, Other{cmp.Or(n.Called, n.Name) + " of cluster " + c.Name, n})
	}
	return all
}

const (
	// limit bounds one try, and most is how many others are asked.
	limit = 4 * time.Second
	most  = 8
)

// Ask asks what lies on the way to nodes that are not heard of: their jump host, and
// others that are reached from the same address of this machine. proof
// says what answered, so that it is not this machine that is cut off; where nothing
// did, doubt says why that can't be told.
func Ask(ctx context.Context, nodes []cloud.Node, others []Other) (proof, doubt string) {
	ctx, cancel := context.WithTimeout(ctx, 2*limit)
	defer cancel()
	answers, asked := make(chan string), 0
	for _, n := range nodes {
		asked++
		go func() { answers <- onTheWay(ctx, n) }()
	}
	from, routeErr := sourceTo(ctx, firstHop(nodes))
	for _, o := range others {
		// What a port of this machine leads to says nothing of a network.
		if at, err := sourceTo(ctx, hop(o.Node)); routeErr != nil || here(from) || err != nil || at != from || asked >= most+len(nodes) {
			continue
		}
		asked++
		go func() {
			if greets(ctx, hop(o.Node)) {
				answers <- o.Name + " answers"
				return
			}
			answers <- ""
		}()
	}
	for range asked {
		if said := <-answers; said != "" && proof == "" {
			proof = said
		}
	}
	switch {
	case proof != "":
		return proof, ""
	case firstHop(nodes) == "":
		return "", "your own ssh leads to them, of whose way nothing is known"
	case routeErr != nil:
		return "", "this machine has no way to them: " + routeErr.Error()
	case asked > len(nodes):
		return "", fmt.Sprintf("%d other machines on the same way (from %s) do not answer either", asked-len(nodes), from)
	}
	return "", fmt.Sprintf("this machine has a way to them (from %s), and knows no other machine there that it could ask", from)
}

// onTheWay says what answers on the way to one node; empty: nothing does. That the
// node's own address refuses is no answer: a firewall on the way does the same.
func onTheWay(ctx context.Context, n cloud.Node) string {
	at := hop(n)
	if len(n.Jumps) > 0 {
		if greets(ctx, at) {
			return "the jump host " + n.Jumps[0].Name + " answers"
		}
		return ""
	}
	return ""
}

// hop is the first address on the way to a node; empty: it is not known.
func hop(n cloud.Node) string {
	if n.Way == cloud.ByOwnSSH {
		return ""
	}
	if len(n.Jumps) > 0 {
		return n.Jumps[0].Addr
	}
	return n.Addr
}

// here reports whether an address is one of this machine alone.
func here(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func firstHop(nodes []cloud.Node) string {
	for _, n := range nodes {
		if at := hop(n); at != "" {
			return at
		}
	}
	return ""
}

// greets reports whether a server of ssh says who it is.
func greets(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := sshconn.Reach(ctx, addr)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(limit))
	word := make([]byte, 4)
	_, err = io.ReadFull(conn, word)
	return err == nil && strings.EqualFold(string(word), "SSH-")
}

// sourceTo is the address of this machine from which another one is reached. Nothing
// is sent for that.
func sourceTo(ctx context.Context, addr string) (string, error) {
	if addr == "" {
		return "", errors.New("they have no address")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
