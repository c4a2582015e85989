// Package local is the provider of nodes on this machine: each node is a
// process of its own with an ssh server on the loopback interface, its own host
// key and its own home directory. It needs no root and no installed software,
// and what runs on it runs for real.
//
// A cluster is one directory. Nothing of it lives in memory: whoever opens the
// directory, now or after a crash, has all there is to know.
package local

import (
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/local/options"
)

// The hidden subcommands with which the dlwb binary plays a node, the ssh
// client of a node and its simulated nvidia-smi. main hands what follows them
// to NodeMain, PeerSSHMain and SimulatedSMIMain.
const (
	NodeCommand    = "__node"
	PeerSSHCommand = "__peer-ssh"
	SMICommand     = "__nvidia-smi"
)

// kind is the name of this provider in profiles and receipts.
var kind = options.Provider.Name

// grace is how long what runs on a node has between TERM and KILL.
const grace = 2 * time.Second

// Provider makes clusters of nodes on this machine. It implements
// cloud.Provider. Several of them, in several processes, may use one directory.
type Provider struct {
	dir string
	exe string
}

// New returns the provider that keeps its clusters in dir, each in a directory
// of its own. exe is the dlwb binary, which the nodes run as.
func New(dir, exe string) *Provider { return &Provider{dir: dir, exe: exe} }

// simulated is how many simulated GPUs a spec wants of each node.
func simulated(spec cloud.Spec) int { return about.Own[options.Machines](spec.Own).SimulateGPUs }

// Kind is "local".
func (p *Provider) Kind() string { return kind }
