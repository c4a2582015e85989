package hosts

import (
	"context"

	"github.com/dlwb/dlwb/cloud"
)

// One reaches one machine that is to be no part of a cluster, such as a login
// node, and says how: nothing is taken or changed there. entry is as in
// machines.hosts. A person is asked what there is to ask.
func (p *Provider) One(ctx context.Context, entry string) (cloud.Node, error) {
	r, err := p.resolver()
	if err != nil {
		return cloud.Node{}, err
	}
	m, err := r.host(entry)
	if err == nil {
		err = m.noCommand()
	}
	if err != nil {
		return cloud.Node{}, err
	}
	calls := p.newCaller()
	defer calls.close()
	c, err := p.reach(ctx, calls, m)
	if err != nil {
		return cloud.Node{}, err
	}
	n := describe(cloud.Life{}, []machine{c.machine}).Nodes[0]
	n.Name = m.Alias
	return n, nil
}
