// Package options describes the provider of machines that one already has.
package options

import "github.com/dlwb/dlwb/cloud/about"

// Provider is the description.
var Provider = about.Provider{
	Name:    "hosts",
	Also:    []string{"ssh", "remote"},
	Doc:     "machines that one already has, reached by ssh",
	Traits:  about.Traits{SharedUplink: true},
	Needs:   []string{"machines.hosts"},
	Options: table,
	New:     func() any { return new(Machines) },
	Named:   named, Check: check, Effects: effects,
}
