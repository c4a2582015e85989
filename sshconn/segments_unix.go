//go:build linux || darwin

package sshconn

import "golang.org/x/sys/unix"

func setMaxSegment(fd uintptr, bytes int) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, bytes)
}
