//go:build unix && !linux && !darwin

package keeper

import "net"

// sameUser relies on the directory of the socket, which only its user may enter: the
// system does not say whose the other end is.
func sameUser(net.Conn) error { return nil }
