// Package reach connects to machines that have no public address: through an
// EC2 Instance Connect endpoint of their VPC, or through Systems Manager, whose
// agent runs on them. What it gives carries ssh like a TCP connection.
package reach

import (
	"fmt"
	"strings"
)

// Endpoint is an EC2 Instance Connect endpoint.
type Endpoint struct {
	ID  string // "eice-…"
	DNS string // where it listens for tunnels
}

// The words with which a way begins.
const (
	endpointWord = "instance-connect"
	// SSM is the way through Systems Manager.
	SSM = "ssm"
)

// Through is the way through an endpoint, as a word that is kept with a node.
func Through(e Endpoint) string { return endpointWord + ":" + e.ID + "@" + e.DNS }

// EndpointOf is the endpoint of such a word.
func EndpointOf(way string) (Endpoint, error) {
	id, dns, ok := strings.Cut(strings.TrimPrefix(way, endpointWord+":"), "@")
	if !strings.HasPrefix(way, endpointWord+":") || !ok || id == "" || dns == "" {
		return Endpoint{}, fmt.Errorf("no way to a machine is called %q", way)
	}
	return Endpoint{id, dns}, nil
}
