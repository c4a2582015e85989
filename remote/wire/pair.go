package wire

// Pair lets the other nodes of a cluster reach this one, and this one them. It
// may be asked again.
const Pair = "pair"

// PairRequest is what a node needs for that.
type PairRequest struct {
	Key        string `cbor:"k"` // the private key that all nodes share
	KnownHosts string `cbor:"h"` // the nodes' host keys
	Peers      string `cbor:"p"` // the nodes, one a line
	Authorized string `cbor:"a"` // the line that lets the key in
	// Life is that of a cluster that is not the first in its home directory: what it has
	// for this is apart from what the others have.
	Life string `cbor:"l,omitempty"`
}

// Uninstall removes what dlwb has put on the node.
const Uninstall = "uninstall"

// UninstallRequest names what is removed besides ~/.dlwb.
type UninstallRequest struct {
	Dirs []string `cbor:"d"` // below the home directory
}

// Done is the answer of a service that tells nothing.
type Done struct{}
