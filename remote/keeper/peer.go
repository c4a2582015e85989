//go:build linux || darwin

package keeper

import (
	"fmt"
	"net"
	"os"
)

// sameUser checks that the other end of a socket is a process of the same user.
func sameUser(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var uid uint32
	var asked error
	if err := raw.Control(func(fd uintptr) { uid, asked = peerOf(int(fd)) }); err != nil {
		return err
	}
	if asked == nil && int(uid) != os.Geteuid() {
		return fmt.Errorf("the other end is a process of user %d", uid)
	}
	return asked
}
