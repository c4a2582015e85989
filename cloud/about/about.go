// Package about is how a provider is described before any of its code runs:
// its name, its traits and the keys of a profile that it knows. It is plain
// data that imports nothing of ours, so that the profile format, the plan, the
// trust gate and the screen read one description.
package about

import "slices"

// Provider is the description of one provider.
type Provider struct {
	// Name stands in profiles, in the ledger and on receipts.
	Name string
	// Also are words that people write instead of the name.
	Also []string
	// Doc is one line for somebody who chooses among providers.
	Doc    string
	Traits Traits
	// Planned names the usable provider that comes nearest to one that has a
	// name in the profile format and no backend yet. It is empty for a provider
	// that can be used.
	Planned string
	// Pays says what is paid for and with whose credentials, as the object of a
	// sentence; empty where nothing is.
	Pays string
	// Regions are those that one usually picks from. Any other can be typed.
	Regions []Region
	// Keys are the keys of a profile that some providers have and others have
	// not, and this one has; Needs are those of them that its profiles can't be
	// without.
	Keys, Needs []string
}

// Has reports whether the provider has a key that not all providers have.
func (p Provider) Has(key string) bool { return slices.Contains(p.Keys, key) }

// InstanceKeys are the keys of providers whose machines have a type.
var InstanceKeys = []string{
	"machines.instance", "machines.instance.gpu", "machines.instance.gpus", "machines.instance.memory", "machines.image", "machines.disk",
}

// PaidKeys are the keys of providers whose machines have a price and stand in a
// region.
var PaidKeys = []string{"machines.region", "machines.instance.max_price"}

// Region is a place where machines stand.
type Region struct{ Name, Place string }

// Traits are what the program asks about a provider, instead of its name.
type Traits struct {
	// Leased: the machines end by themselves, by a lifetime, a budget or
	// idleness that is enforced without dlwb. They cost money, and what is asked
	// about them goes over a network.
	Leased bool
	// Priced: machines are chosen from offers that have prices.
	Priced bool
	// SharedHost: the nodes are processes of this machine. They share its cores,
	// GPUs, ports and Python, and what runs there runs as the user.
	SharedHost bool
	// SharedUplink: the nodes stand behind one line to the internet. A package
	// that one node has fetched is better copied from there than fetched again.
	SharedUplink bool
}
