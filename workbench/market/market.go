// Package market tells what an account has and what is left in it: machines that
// can be had, providers that work here, and what was left behind without a record.
package market

import (
	"context"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/workbench/event"
)

// Market asks the providers.
type Market struct{ owner Owner }

// Owner is what a Market needs of whoever has the providers.
type Owner struct {
	// Kinds are the names of the providers that there are.
	Kinds func() []string
	// Provider is one of machines; its error says that there is none of the name.
	Provider func(kind string) (cloud.Provider, error)
	// Jobs is a provider of whole jobs; false: there is none of the name.
	Jobs func(kind string) (cloud.JobProvider, bool)
	// Check asks one what would stand in the way.
	Check func(ctx context.Context, kind string, spec cloud.Spec) cloud.Preflight
	// Lives are the ids under which providers know what is on record here.
	Lives func() ([]string, error)
	// Unresolved is the error of a removal that is not proven.
	Unresolved func(r cloud.Receipt, perHour float64, err error) error
}

// New asks the providers of an owner.
func New(owner Owner) *Market { return &Market{owner} }

// Kinds are the names of the providers that there are.
func (m *Market) Kinds() []string { return m.owner.Kinds() }

// Offers lists the machines that a provider has, the best first.
func (m *Market) Offers(ctx context.Context, provider string, q cloud.Query) (cloud.Offers, error) {
	offerer, ok, err := m.offerer(provider)
	if err != nil {
		return cloud.Offers{}, err
	}
	if !ok {
		return cloud.Offers{}, &event.Fault{What: "list the machines of provider " + provider, Node: -1,
			Why: "there is no choice: its machines are those that are there"}
	}
	return offerer.Offers(ctx, q)
}

// offerer is a provider, of machines or of whole jobs, whose machines can be chosen.
func (m *Market) offerer(kind string) (o cloud.Offerer, ok bool, err error) {
	if j, is := m.owner.Jobs(kind); is {
		o, ok = j.(cloud.Offerer)
		return o, ok, nil
	}
	p, err := m.owner.Provider(kind)
	if err != nil {
		return nil, false, err
	}
	o, ok = p.(cloud.Offerer)
	return o, ok, nil
}

// Markets are the providers whose machines can be chosen.
func (m *Market) Markets() []string {
	var kinds []string
	for _, kind := range m.owner.Kinds() {
		if p, err := m.owner.Provider(kind); err == nil {
			if _, ok := p.(cloud.Offerer); ok {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// Known are values that a key of a provider can have, as far as this machine knows.
func (m *Market) Known(kind, key string) []string {
	var is any
	if j, ok := m.owner.Jobs(kind); ok {
		is = j
	} else if p, err := m.owner.Provider(kind); err == nil {
		is = p
	}
	if k, ok := is.(cloud.Knower); ok {
		return k.Known(key)
	}
	return nil
}

// Orphans looks everywhere for what was left behind without a record here: by a
// dlwb that was killed and whose state directory is gone, or on another
// machine.
func (m *Market) Orphans(ctx context.Context, progress func(text string)) (map[string]cloud.Hunt, error) {
	lives, err := m.owner.Lives()
	if err != nil {
		return nil, err
	}
	known := func(life string) bool { return slices.Contains(lives, life) }
	found := map[string]cloud.Hunt{}
	for _, kind := range m.owner.Kinds() {
		p, err := m.owner.Provider(kind)
		if err != nil {
			continue // it takes whole jobs, and has no machines to leave behind
		}
		c, ok := p.(cloud.Collector)
		if !ok {
			continue
		}
		if found[kind], err = c.Orphans(ctx, known, func(_ int, text string) { progress(text) }); err != nil {
			return found, err
		}
	}
	return found, nil
}

// Collect removes an orphan that Orphans found, and proves it.
func (m *Market) Collect(ctx context.Context, provider string, o cloud.Orphan, progress func(text string)) (cloud.Receipt, error) {
	p, err := m.owner.Provider(provider)
	if err != nil {
		return cloud.Receipt{}, err
	}
	c, ok := p.(cloud.Collector)
	if !ok {
		return cloud.Receipt{}, &event.Fault{What: "remove what was left behind", Node: -1, Why: "provider " + provider + " leaves nothing"}
	}
	receipt, err := c.Collect(ctx, o, func(_ int, text string) { progress(text) })
	if !receipt.Proven() {
		err = m.owner.Unresolved(receipt, o.PerHour, err)
	}
	return receipt, err
}
