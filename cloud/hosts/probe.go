package hosts

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/sshkeys"
)

// Probe reports a host as alive when it shows its host key; nobody logs in on it, but for
// the user's own ssh, which does nothing there. One that can't be reached is unknown:
// machines that one has do not go.
func (p *Provider) Probe(ctx context.Context, c cloud.Cluster) ([]cloud.Status, error) {
	calls := p.newCaller()
	defer calls.close()
	statuses := make([]cloud.Status, len(c.Nodes))
	var all sync.WaitGroup
	for i, n := range c.Nodes {
		all.Go(func() { statuses[i] = p.probe(ctx, calls, n) })
	}
	all.Wait()
	return statuses, nil
}

func (p *Provider) probe(ctx context.Context, calls *caller, n cloud.Node) cloud.Status {
	m, err := p.machineOf(n)
	if err == nil {
		err = calls.knock(ctx, m)
	}
	var problem *Problem
	switch {
	case err == nil:
		return cloud.Status{State: cloud.Alive}
	case errors.As(err, &problem):
		return cloud.Status{State: cloud.Unknown, Why: problem.whole()}
	}
	return cloud.Status{State: cloud.Unknown, Why: err.Error()}
}

// machineOf is a node as this package dials it: with the one host key that the
// node may show.
func (p *Provider) machineOf(n cloud.Node) (machine, error) {
	if n.Way == wayCommand {
		return p.commanded(n)
	}
	if n.Way == cloud.ByOwnSSH {
		return machine{Entry: n.ID, Alias: n.Called, HostName: n.Called, Own: true}, nil
	}
	m, err := machineAt(n.ID, n.Addr, n.User, n.HostKey, n.Keys)
	for _, j := range n.Jumps {
		jump, jumpErr := machineAt(j.Name, j.Addr, j.User, j.HostKey, j.Keys)
		err = errors.Join(err, jumpErr)
		m.Jumps = append(m.Jumps, jump)
	}
	return m, err
}

func machineAt(name, addr, user, hostKey string, keys sshkeys.Keys) (machine, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return machine{}, err
	}
	port, err := strconv.Atoi(text)
	return machine{Entry: name, Alias: name, HostName: host, Port: port, User: user, Keys: keys, Vouched: hostKey}, err
}
