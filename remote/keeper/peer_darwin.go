package keeper

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// sameUser checks that the other end of a socket is a process of the same user.
func sameUser(conn net.Conn) error {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Xucred
	var asked error
	if err := raw.Control(func(fd uintptr) { cred, asked = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED) }); err != nil {
		return err
	}
	if asked == nil && int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("the other end is a process of user %d", cred.Uid)
	}
	return asked
}
