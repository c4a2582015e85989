package sshconn

import (
	"net"
	"sync"
	"syscall"
)

// On some ways large packets are dropped and nobody says so: a tunnel or a VPN with a
// smaller MTU, and a firewall that lets no ICMP through. TCP connects there, and even a
// login may pass; then the first full packet is sent again and again until the
// connection is given up, and so is the next one. Small segments pass everywhere. They
// cost 3 % of the bytes, so an address whose connection fell silent once is dialed with
// them from then on.

// safeSegment is the payload of a TCP packet that is sure to pass: that of the smallest
// MTU of IPv6, 1280 bytes.
const safeSegment = 1220

// fragile has the addresses of servers whose connections fell silent.
var fragile sync.Map

// fellSilent notes that nothing came any more from the other end of a connection, and
// reports whether that makes the next one another: behind a jump host it is the same.
func fellSilent(conn net.Conn) (news bool) {
	tcp, direct := conn.(*net.TCPConn)
	if !direct {
		return false
	}
	_, known := fragile.LoadOrStore(tcp.RemoteAddr().String(), true)
	return !known
}

// segments keeps the segments of a connection that is about to be made small, both
// ways, where that is needed. A system that can't do so connects as ever.
func segments(_, addr string, raw syscall.RawConn) error {
	if _, is := fragile.Load(addr); is {
		_ = raw.Control(func(fd uintptr) { _ = setMaxSegment(fd, safeSegment) })
	}
	return nil
}
