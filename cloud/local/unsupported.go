//go:build !unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/dlwb/dlwb/cloud"
)

// errPOSIX is the answer to everything: a node needs sh, sessions and signals.
var errPOSIX = errors.New("the local provider needs a POSIX system (Linux or macOS), and this is " +
	runtime.GOOS + ": run dlwb in WSL, or use the provider hosts or ec2")

// Check says that this system can't have local nodes.
func (p *Provider) Check(context.Context, cloud.Spec) cloud.Preflight {
	return cloud.Preflight{Findings: []cloud.Finding{{What: "operating system", Text: errPOSIX.Error(), Next: "wsl dlwb demo"}}}
}

// Up says that this system can't have local nodes.
func (p *Provider) Up(context.Context, cloud.Life, cloud.Spec, cloud.Progress) (cloud.Cluster, error) {
	return cloud.Cluster{}, errPOSIX
}

// Probe answers Unknown for every node.
func (p *Provider) Probe(_ context.Context, c cloud.Cluster) ([]cloud.Status, error) {
	states := make([]cloud.Status, len(c.Nodes))
	for i := range states {
		states[i].State = cloud.Unknown
	}
	return states, errPOSIX
}

// Down says that this system can't have local nodes.
func (p *Provider) Down(_ context.Context, life cloud.Life, _ cloud.Progress) (cloud.Receipt, error) {
	return cloud.Receipt{Cluster: life.Name, Provider: kind}, errPOSIX
}

// Load says that this system can't have local nodes.
func (p *Provider) Load(string) (cloud.Cluster, error) { return cloud.Cluster{}, errPOSIX }

// List finds no cluster: there can't be one.
func (p *Provider) List() ([]cloud.Cluster, error) { return nil, nil }

// NodeMain says that this system can't have local nodes.
func NodeMain([]string) int { return refuse() }

// PeerSSHMain says that this system can't have local nodes.
func PeerSSHMain([]string) int { return refuse() }

// SimulatedSMIMain says that this system can't have local nodes.
func SimulatedSMIMain([]string) int { return refuse() }

func refuse() int {
	fmt.Fprintln(os.Stderr, errPOSIX)
	return 1
}
