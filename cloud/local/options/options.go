// Package options describes the provider of nodes on this machine.
package options

import "github.com/dlwb/dlwb/cloud/about"

// Provider is the description.
var Provider = about.Provider{
	Name:   "local",
	Also:   []string{"localhost"},
	Doc:    "nodes on this machine: costs nothing, and tries everything out",
	Traits: about.Traits{SharedHost: true, SharedUplink: true},
	Keys:   []string{"machines.simulate_gpus"},
}
