// Package about is how a provider is described before any of its code runs:
// its name, its traits and the keys of a profile that it knows. It is plain
// data that imports nothing of ours, so that the profile format, the plan, the
// trust gate and the screen read one description.
package about

import (
	"slices"
	"strings"
)

// Provider is the description of one provider.
type Provider struct {
	// Name stands in profiles, in the ledger and on receipts.
	Name string
	// Also are words that people write instead of the name.
	Also []string
	// Doc is one line for somebody who chooses among providers.
	Doc    string
	Traits Traits
	// Carries are the engines that a provider of ranks alone starts all the same, by
	// objects of its own: with parameter servers, by mpirun.
	Carries []string
	// Clusters are those of them for which the service starts the engine's own cluster
	// first. Where that has several nodes, its head is one more, without GPUs.
	Clusters []string
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
	// Options are the keys that only this provider has. New makes the struct
	// that they are read into, a pointer; nil where there are none.
	Options []Option
	New     func() any
	// Named is how many machines the options name; such a profile needs no
	// count, and can't have a greater one. nil: options name none.
	Named func(own any) int
	// Head is the type of one machine more that the options ask for: a node before
	// the others, on which no rank trains; empty: none. nil: its clusters have none.
	Head func(own any) string
	// Check tells what only several options together show to be wrong.
	Check func(own any) []Fault
	// Effects are what its options would do, for the question whether a profile
	// is trusted; PaysAlso is what they add to the sentence about spare capacity.
	Effects  func(own any) []Effect
	PaysAlso func(own any) string
}

// Fault is what is wrong with the value of a key.
type Fault struct{ Key, Why, Next string }

// Effect is one thing that a profile would do.
type Effect struct {
	Kind string `json:"kind"` // see the constants
	Text string `json:"text"`
	// Unusual marks what few profiles need, and a stranger's would.
	Unusual bool `json:"unusual"`
}

// The kinds of effects.
const (
	Connects = "connects" // to machines, and who vouches for their keys
	Pays     = "pays"     // machines that cost money
	Runs     = "runs"     // programs
	Sends    = "sends"    // files of this machine
	Reads    = "reads"    // variables and files of this machine
	Opens    = "opens"    // ports of this machine
	Brings   = "brings"   // files to this machine
)

// Has reports whether the provider has a key that not all providers have.
func (p Provider) Has(key string) bool {
	return slices.Contains(p.Keys, key) || slices.ContainsFunc(p.Options, func(o Option) bool { return o.Key == key })
}

// Option is a key of a profile that only one provider has: how it is written,
// what it means, and where its value goes. The provider reads the value from its
// own struct, and nobody else knows that struct.
type Option struct {
	Key     string // "machines.subnet"
	Kind    Kind
	Default string   // as it would be written; empty: none
	Also    []string // what people write instead of the last word of the key
	Doc     string   // one sentence
	Example string   // a value, as YAML
	// Asked says that the wizard asks for it; it does so for what is needed, too.
	Asked bool
	// Min and Max bound a count.
	Min, Max int64
	// After is the key that it follows in written profiles and on pages; empty:
	// the option of its group before it, else the last key of its group.
	After string
	// Place gives the address of the value in what Provider.New has made.
	Place func(own any) any
}

// Name is the last word of the key.
func (o Option) Name() string { return o.Key[strings.LastIndexByte(o.Key, '.')+1:] }

// Kind is how the value of an option is written, and the Go type of its place.
type Kind int

// The kinds of values.
const (
	Word     Kind = iota // *string: one word without spaces
	Flag                 // *bool
	Count                // *int
	Networks             // *[]string: addresses and networks, each as netip writes it
	Words                // *[]string: a list of words
	Dollars              // *float64: US dollars per hour
	Pairs                // *map[string]string: names and values
	Script               // *string: several lines, written with |
	HostList             // *Machines of the hosts provider: a list of hosts
	HostKeys             // *map[string]string: keys, or fingerprints, of hosts
)

// In makes Option.Place from a function on the provider's own struct.
func In[T, V any](place func(*T) *V) func(any) any {
	return func(own any) any { return place(own.(*T)) }
}

// Own is the struct of a provider's own options in what came from a profile;
// the zero struct where nothing came.
func Own[T any](own any) T {
	if v, is := own.(*T); is && v != nil {
		return *v
	}
	var none T
	return none
}

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
	// Sealed: a run has what it is handed and what its image has. No environment
	// is made for it.
	Sealed bool
	// Kept: what a Sealed run writes is brought home all the same, at its end.
	Kept bool
	// KeptInS3: so is what it writes to its place in results.s3, where the profile names
	// one: its containers write there themselves, at the address in DLWB_OUTPUT.
	KeptInS3 bool
	// RanksOnly: its jobs have ranks, and nothing beside them: no container that dlwb
	// starts, and, unless it Serves, no processes and files that an engine needs besides.
	RanksOnly bool
	// Serves: its jobs have the processes and files that an engine needs beside its ranks.
	Serves bool
	// Deadline: what carries a run ends it when it has gone on for limits.lifetime.
	Deadline bool
	// Budgeted: that time is as short as limits.budget pays for.
	Budgeted bool
	// InTurn: a job has all machines of its cluster, so that the trials of a sweep go on
	// one after the other.
	InTurn bool
}
