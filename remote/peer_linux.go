package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
)

// The tables of Linux (/proc/net/tcp and tcp6) have a row for each socket, with
// the number of the user who made it. Of a connection within this machine both
// ends are there, so the row of the other end says whose it is.

// KnowsUsers reports whether the system says whose a connection is.
const KnowsUsers = true

// stateListen is the state of a listener in those tables.
const stateListen = "0A"

// foreignPeer reports whether the other end of a connection to one of our ports
// is another user's. Root's is not: root may do anything anyway. Where the tables
// can't be read, or do not even have our own listener, nothing is known and
// nobody is refused. In WSL a connection may come from Windows, which has no row.
func foreignPeer(conn net.Conn) (uid int, foreign bool) {
	here, ok := addrOf(conn.LocalAddr())
	there, known := addrOf(conn.RemoteAddr())
	if !ok || !known {
		return 0, false
	}
	const tries = 3 // rows may be missed when sockets come and go while they are read
	for range tries {
		row, found, known := findPeer(here, there, os.ReadFile)
		if !known {
			return 0, false
		}
		if found {
			return row.owner(), !row.isOf(os.Geteuid())
		}
	}
	return unknownUser, !inWindows()
}

// findPeer looks for the row of the other end, and knows nothing where our own
// listener has none. Reading a table takes milliseconds, however few sockets there
// are (the kernel walks a hash table that grows with the memory of the machine): the
// second one, which a system without IPv6 does not have, is read for what is not in
// the first.
func findPeer(here, there netip.AddrPort, read func(string) ([]byte, error)) (row socketRow, found, known bool) {
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := read(name)
		if err != nil {
			break
		}
		table := socketTable{string(text)}
		known = known || table.has(here, netip.AddrPort{}, stateListen)
		if !found {
			row, found = table.find(there, here)
		}
		if found && known {
			break
		}
	}
	return row, found, known
}

// inWindows reports whether this is Linux inside Windows.
var inWindows = sync.OnceValue(func() bool {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	return err == nil && bytes.Contains(bytes.ToLower(release), []byte("microsoft"))
})

func addrOf(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := tcp.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port()), ap.IsValid()
}

// socketTable is the text of tables.
type socketTable []string

// socketRow is what a row says of a socket.
type socketRow struct {
	uid   int
	inode string // "0": nobody has it any more
}

// owner is whose the socket is, as far as it is shown.
func (r socketRow) owner() int {
	if r.uid == 0 && r.inode == "0" {
		return unknownUser
	}
	return r.uid
}

// isOf reports whether a socket is a user's own, or root's. One that was closed
// already is shown as root's by older kernels, so there root counts for nothing.
func (r socketRow) isOf(uid int) bool {
	owner := r.owner()
	return owner == uid || owner == 0
}

// find gives the row of the socket that has one end and is connected to the
// other. A program may have an IPv6 socket for an IPv4 address.
func (t socketTable) find(own, other netip.AddrPort) (socketRow, bool) {
	row, found := t.row(own, other, "")
	return row, found
}

func (t socketTable) has(own, other netip.AddrPort, state string) bool {
	_, found := t.row(own, other, state)
	return found
}

func (t socketTable) row(own, other netip.AddrPort, state string) (socketRow, bool) {
	for _, table := range t {
		for line := range strings.Lines(table) {
			if r, ok := matchRow(line, own, other, state); ok {
				return r, true
			}
		}
	}
	return socketRow{}, false
}

// matchRow reads a row when it is that of the ends and the state; the zero end
// and no state are any.
func matchRow(line string, own, other netip.AddrPort, state string) (socketRow, bool) {
	f := strings.Fields(line)
	const uid, inode = 7, 9
	if len(f) <= inode || !isEnd(f[1], own) || other.IsValid() && !isEnd(f[2], other) || state != "" && f[3] != state {
		return socketRow{}, false
	}
	n, err := strconv.Atoi(f[uid])
	return socketRow{n, f[inode]}, err == nil
}

// isEnd compares an end as the tables write it, in words of the machine's own
// byte order, with an address.
func isEnd(text string, end netip.AddrPort) bool {
	addr, port, ok := strings.Cut(text, ":")
	if !ok || port != fmt.Sprintf("%04X", end.Port()) {
		return false
	}
	if end.Addr().Is4() && len(addr) == 8 {
		a := end.Addr().As4()
		return addr == hexWords(a[:])
	}
	a := end.Addr().As16() // an IPv4 address within IPv6
	return addr == hexWords(a[:])
}

func hexWords(b []byte) string {
	var s strings.Builder
	for ; len(b) >= 4; b = b[4:] {
		fmt.Fprintf(&s, "%08X", binary.NativeEndian.Uint32(b))
	}
	return s.String()
}
