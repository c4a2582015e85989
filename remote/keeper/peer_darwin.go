package keeper

import "golang.org/x/sys/unix"

// peerOf is the user of the process at the other end of a socket.
func peerOf(fd int) (uid uint32, err error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return cred.Uid, nil
}
