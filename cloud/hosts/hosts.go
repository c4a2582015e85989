// Package hosts is the provider of machines that one already has: reached by
// ssh as the user's own ssh reaches them, with the names, users, keys and jump
// hosts of ~/.ssh/config and the host keys of known_hosts. It makes and ends no
// machine. What a cluster puts on a host it takes away again, and nothing else.
//
// It reads ssh's own files and never writes them. Host keys that were confirmed
// by a person are kept in a file of dlwb's own.
package hosts

import (
	"sync"

	"github.com/dlwb/dlwb/cloud/hosts/options"
)

// kind is the name of this provider in profiles and receipts.
var kind = options.Provider.Name

// Options are what a Provider is made of.
type Options struct {
	// Dir keeps the host keys that were confirmed. It is made when it is
	// needed.
	Dir string
	// Config is the ssh configuration to read instead of the user's and the
	// system's; empty: $DLWB_SSH_CONFIG, else those.
	Config string
	// Confirm asks a person whether a host really has the key with this
	// fingerprint ("ssh-ed25519 SHA256:…"), of which nobody has told dlwb. It
	// is asked by Up for one host at a time. nil: such a host is refused.
	Confirm func(host, fingerprint string) bool
}

// Provider makes clusters of machines that are there already. It implements
// cloud.Provider.
type Provider struct {
	options Options
	asking  sync.Mutex // one question at a time
}

// New returns the provider. It reads nothing before it is used.
func New(o Options) *Provider { return &Provider{options: o} }

// Kind is "hosts".
func (p *Provider) Kind() string { return kind }
