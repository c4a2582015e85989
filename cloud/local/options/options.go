// Package options describes the provider of nodes on this machine.
package options

import "github.com/dlwb/dlwb/cloud/about"

// Provider is the description.
var Provider = about.Provider{
	Name:   "local",
	Also:   []string{"localhost"},
	Doc:    "nodes on this machine: costs nothing, and tries everything out",
	Traits: about.Traits{SharedHost: true, SharedUplink: true},
	Options: []about.Option{
		{Key: "machines.simulate_gpus", Kind: about.Count, Min: 0, Max: 16, Default: "0",
			Doc: "How many simulated GPUs each node shows; they are marked SIMULATED wherever they are seen.", Example: "2",
			Place: about.In(func(m *Machines) *int { return &m.SimulateGPUs })},
	},
	New: func() any { return new(Machines) },
}

// Machines are the options that only nodes on this machine have.
type Machines struct {
	SimulateGPUs int // simulated GPUs per node
	// User is who logs in; empty: the user of this machine. No key of a profile
	// sets it: tests play machines of other providers with these nodes.
	User string
}
