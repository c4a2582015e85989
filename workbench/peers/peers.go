// Package peers finds out by which addresses the nodes of a cluster reach each
// other, by having them try.
package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
)

// The address by which this machine reaches a node need not be one by which the
// nodes reach each other: it may be a port that somebody forwards, a public address
// before a NAT, a name of ~/.ssh/config. So each node is asked for the addresses that
// it has itself, and others try them: by ssh, with the key that the nodes have for
// each other, and the host key that the node showed to us. What answers to that is
// the node, wherever else such an address may be in use.

// address is where a node may be reached by others.
type address struct {
	host string
	port int
}

func (a address) String() string { return net.JoinHostPort(a.host, strconv.Itoa(a.port)) }

const (
	// addressesMost bounds what is tried of one node.
	addressesMost = 8
	// limit bounds the whole look.
	limit = 45 * time.Second
)

// addressesScript prints where sshd took the connection, and the addresses of the
// interfaces.
const addressesScript = `set -- $SSH_CONNECTION; echo "sshd $3 $4"
all=$(ip -o addr show scope global 2>/dev/null) && echo "$all" | while read -r _ name _ at _; do echo "$name ${at%%/*}"; done
[ -n "$all" ] || for at in $(hostname -I 2>/dev/null); do echo "eth $at"; done`

// Search is what one look finds out, and how it tells what it does.
type Search struct {
	Nodes []cloud.Node
	To    []*remote.Node // the same nodes
	Life  string         // of the cluster, as nodes know it
}

// Unsure reports whether there is anything to find out.
func Unsure(nodes []cloud.Node) bool {
	return len(nodes) > 1 && slices.ContainsFunc(nodes, func(n cloud.Node) bool { return n.PeerUnsure })
}

// Find has the nodes try each other's addresses, which they must have been paired
// for, and puts into each where the others reach it. Those that are not reached stay
// unsure, and are told in words; closed tells of those that are reached and let nobody in.
func (s Search) Find(ctx context.Context) (missing []string, closed string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tried, own := make([][]address, len(s.Nodes)), make([][]address, len(s.Nodes))
	s.each(func(i int, n *remote.Node) {
		own[i] = ownAddresses(ctx, n, s.Nodes[i])
		tried[i] = candidates(s.Nodes[i], own[i])
	})
	var shut []string
	t := s.tryInTurn(ctx, tried, own)
	for j := range s.Nodes {
		best, ok := t.best(j, tried[j], own[j])
		if !ok {
			missing = append(missing, t.missing(j, s.Nodes, tried[j]))
			continue
		}
		if best.host != s.Nodes[j].PeerHost {
			s.Nodes[j].Interface = ""
		}
		s.Nodes[j].PeerHost, s.Nodes[j].PeerPort, s.Nodes[j].PeerUnsure = best.host, best.port, false
		if s.Nodes[j].PeerClosed = t.closedTo(j, best); s.Nodes[j].PeerClosed {
			shut = append(shut, called(s.Nodes[j]))
		}
	}
	if len(shut) > 0 {
		closed = strings.Join(shut, ", ") + ": the other nodes get there, and sshd does not let them in with a key alone: code is sent there from here"
	}
	return missing, closed
}

// closedTo reports whether somebody who tried an address was not let in there.
func (t *tries) closedTo(j int, a address) bool {
	return slices.ContainsFunc(triedBy(j, t.nodes), func(i int) bool { return slices.Contains(t.closed[[2]int{i, j}], a) })
}

// each does something with every node at once.
func (s Search) each(do func(i int, n *remote.Node)) {
	var all sync.WaitGroup
	for i, n := range s.To {
		all.Go(func() { do(i, n) })
	}
	all.Wait()
}

// Interfaces learns which network interface leads from each node to the others: NCCL
// and gloo have to be told where a machine has several. It reports whether it has
// learnt any; without ip the libraries choose by themselves.
func (s Search) Interfaces(ctx context.Context) (learnt bool, err error) {
	errs, found := make([]error, len(s.To)), make([]bool, len(s.To))
	s.each(func(i int, n *remote.Node) {
		if s.Nodes[i].Interface != "" || len(s.Nodes) < 2 {
			return
		}
		peer := s.Nodes[(i+1)%len(s.Nodes)].PeerHost
		r, err := n.Exec(ctx, remote.Cmd{Line: shellword.Join("ip", "-o", "route", "get", peer)})
		if errs[i] = err; err != nil || r.ExitCode != 0 {
			return
		}
		words := strings.Fields(string(r.Stdout))
		if at := slices.Index(words, "dev"); at >= 0 && at+1 < len(words) {
			s.Nodes[i].Interface, found[i] = words[at+1], true
		}
	})
	return slices.Contains(found, true), errors.Join(errs...)
}

// ownAddresses are the addresses that a node has itself, the one where it takes our
// connections first.
func ownAddresses(ctx context.Context, n *remote.Node, of cloud.Node) []address {
	r, err := n.Exec(ctx, remote.Cmd{Line: shellword.Join("sh", "-c", addressesScript)})
	if err != nil || r.ExitCode != 0 {
		return nil
	}
	port, all := 22, []address{}
	for line := range strings.Lines(string(r.Stdout)) {
		w := strings.Fields(line)
		if len(w) == 3 && w[0] == "sshd" {
			if p, err := strconv.Atoi(w[2]); err == nil && p > 0 && p < 65536 {
				port = p
			}
			w = w[:2]
		}
		if len(w) == 2 && worthTrying(w[0], w[1]) {
			all = append(all, address{host: w[1]})
		}
	}
	if of.PeerPort > 0 && port == 22 && len(all) == 0 {
		port = of.PeerPort
	}
	slices.SortStableFunc(all, func(a, b address) int { return cmp.Compare(strings.Count(a.host, ":"), strings.Count(b.host, ":")) })
	for i := range all {
		all[i].port = port
	}
	return unique(all)
}

// worthTrying reports whether others may reach an address of an interface.
func worthTrying(name, text string) bool {
	at, err := netip.ParseAddr(text)
	for _, bridge := range []string{"docker", "br-", "virbr", "veth", "cni", "flannel"} {
		if strings.HasPrefix(name, bridge) {
			return false
		}
	}
	return err == nil && at.IsGlobalUnicast() && !at.IsLoopback() && at.Zone() == ""
}

func unique(all []address) (once []address) {
	for _, a := range all {
		if !slices.Contains(once, a) {
			once = append(once, a)
		}
	}
	return once
}

// candidates are the addresses that are tried of a node: the one that was given, or
// the one by which we reach it and its own.
func candidates(n cloud.Node, own []address) []address {
	first := address{n.PeerHost, n.PeerPort}
	if n.PeerGiven {
		return []address{first}
	}
	all := unique(append([]address{first}, own...))
	return all[:min(len(all), addressesMost)]
}

// tries are what nodes reached of others: by the node that tried and the one that was
// tried. Nil: it did not try.
type tries struct {
	nodes   int
	reached map[[2]int][]address
	closed  map[[2]int][]address // of these, where the login was refused, by the right host
	at      map[[2]int][]string  // where the first address leads, as who tried resolves it
	cant    map[int]string       // who could not try, and why
}

// triedBy are the nodes that try a node: the head, on which all others depend, and
// its neighbour; the head is tried by all.
func triedBy(j, n int) (by []int) {
	for i := range n {
		if i != j && (i == 0 || j == 0 || (i+1)%n == j) {
			by = append(by, i)
		}
	}
	return by
}

// tryInTurn has the nodes try the first address of each, and only of those where that
// is no good the others: an address that leads nowhere takes seconds.
func (s Search) tryInTurn(ctx context.Context, tried, own [][]address) *tries {
	first, rest := make([][]address, len(tried)), make([][]address, len(tried))
	for j, all := range tried {
		first[j] = all[:min(1, len(all))]
	}
	t := s.tryAll(ctx, first)
	more := false
	for j, all := range tried {
		if _, ok := t.best(j, first[j], own[j]); (!ok || !t.leadsTo(j, first[j][0], own[j])) && len(all) > 1 {
			rest[j], more = all[1:], true
		}
	}
	if more {
		t.add(s.tryAll(ctx, rest))
	}
	return t
}

// add takes in further tries.
func (t *tries) add(more *tries) {
	for pair, all := range more.reached {
		t.reached[pair] = append(t.reached[pair], all...)
	}
	for pair, all := range more.closed {
		t.closed[pair] = append(t.closed[pair], all...)
	}
	for pair, all := range more.at {
		t.at[pair] = append(t.at[pair], all...)
	}
	for i, why := range more.cant {
		t.cant[i] = why
	}
}

// tryAll has the nodes try each other's addresses, all at once.
func (s Search) tryAll(ctx context.Context, tried [][]address) *tries {
	t := &tries{len(s.Nodes), map[[2]int][]address{}, map[[2]int][]address{}, map[[2]int][]string{}, map[int]string{}}
	nodes := s.Nodes
	var mu sync.Mutex
	s.each(func(i int, n *remote.Node) {
		script := shellword.Join("life="+s.Life) + "\n" + tryScript
		for j := range nodes {
			if slices.Contains(triedBy(j, len(nodes)), i) {
				for _, a := range tried[j] {
					script += shellword.Join("try", strconv.Itoa(j), a.host, strconv.Itoa(a.port), nodes[j].User, nodes[j].HostKey) + " &\n"
				}
			}
		}
		r, err := n.Exec(ctx, remote.Cmd{Line: shellword.Join("sh", "-c", script+"wait\n")})
		slog.Debug("tried the other nodes", "node", i, "out", string(r.Stdout), "code", r.ExitCode, "error", err)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || r.ExitCode != 0 {
			t.cant[i] = cmp.Or(strings.TrimSpace(string(r.Stderr)), fmt.Sprint(err))
			return
		}
		t.read(i, string(r.Stdout))
	})
	return t
}

// tryScript tries an address: what ssh ends with is 255 where it does not get there. A
// login is refused by a host that has shown the right key: ssh names the ways to log in
// then, in brackets, and not where the kernel denies a connection.
const tryScript = `key=$HOME/.dlwb/peer_key.$life
[ -f "$key" ] || key=$HOME/.dlwb/peer_key
command -v ssh >/dev/null || { echo "there is no ssh to try it with" >&2; exit 3; }
d=$(mktemp -d) || exit 3
trap 'rm -rf "$d"' EXIT
try() {
	known=$d/$1-$3-$(echo "$2" | tr -c 'A-Za-z0-9.\n' _)
	echo "n$1 $5" >"$known"
	ssh -i "$key" -p "$3" -o IdentitiesOnly=yes -o UserKnownHostsFile="$known" -o GlobalKnownHostsFile=/dev/null \
		-o StrictHostKeyChecking=yes -o HostKeyAlias="n$1" -o CheckHostIP=no -o BatchMode=yes -o ConnectTimeout=5 \
		-- "$4@$2" reach </dev/null >/dev/null 2>"$known.said"
	if [ $? -ne 255 ]; then how=reached; elif grep -q "Permission denied (" "$known.said"; then how=closed; else return; fi
	echo "$how $1 $2 $3 $(getent ahosts "$2" 2>/dev/null | sed -n '1s/ .*//p')"
}
`

// read takes in what a node has printed.
func (t *tries) read(i int, out string) {
	for line := range strings.Lines(out) {
		w := strings.Fields(line)
		if len(w) < 4 || w[0] != "reached" && w[0] != "closed" {
			continue
		}
		j, err := strconv.Atoi(w[1])
		port, portErr := strconv.Atoi(w[3])
		if err != nil || portErr != nil {
			continue
		}
		pair := [2]int{i, j}
		t.reached[pair] = append(t.reached[pair], address{w[2], port})
		if w[0] == "closed" {
			t.closed[pair] = append(t.closed[pair], address{w[2], port})
		}
		if len(w) > 4 {
			t.at[pair] = append(t.at[pair], w[2]+" "+w[4])
		}
	}
}

// reach reports whether everybody who tried an address of a node reached it.
func (t *tries) reach(j int, a address) bool {
	some := false
	for _, i := range triedBy(j, t.nodes) {
		if _, cant := t.cant[i]; cant {
			continue
		}
		if !slices.Contains(t.reached[[2]int{i, j}], a) {
			return false
		}
		some = true
	}
	return some
}

// best is the address that all others get to: the one that is known here where it
// leads to an interface of the node, else one of its own: a port that is forwarded to
// its sshd is no way for anything else.
func (t *tries) best(j int, tried, own []address) (address, bool) {
	var reached []address
	for _, a := range tried {
		if t.reach(j, a) {
			reached = append(reached, a)
		}
	}
	if len(reached) == 0 {
		return address{}, false
	}
	if reached[0] == tried[0] && t.leadsTo(j, tried[0], own) {
		return reached[0], true
	}
	for _, a := range reached {
		if slices.Contains(own, a) {
			return a, true
		}
	}
	return reached[0], true
}

// leadsTo reports whether an address leads to an interface of a node, as those
// resolve it that tried it.
func (t *tries) leadsTo(j int, a address, own []address) bool {
	for pair, all := range t.at {
		for _, text := range all {
			host, at, _ := strings.Cut(text, " ")
			if pair[1] == j && host == a.host && slices.ContainsFunc(own, func(o address) bool { return o.host == at && o.port == a.port }) {
				return true
			}
		}
	}
	return false
}

// missing says who does not reach a node, and what was tried.
func (t *tries) missing(j int, nodes []cloud.Node, tried []address) string {
	var who, where []string
	for _, i := range triedBy(j, len(nodes)) {
		if why, cant := t.cant[i]; cant {
			return fmt.Sprintf("whether %s reaches %s is not known: %s", called(nodes[i]), called(nodes[j]), why)
		}
		who = append(who, called(nodes[i]))
	}
	for _, a := range tried {
		where = append(where, a.String())
	}
	return fmt.Sprintf("%s is not reached from %s (tried %s)", called(nodes[j]), strings.Join(who, ", "), strings.Join(where, ", "))
}

// called is a node as its user calls it.
func called(n cloud.Node) string {
	name := n.Called
	if name == "" {
		name = n.ID
	}
	if name == "" || name == n.Name {
		return n.Name
	}
	return n.Name + " (" + name + ")"
}
