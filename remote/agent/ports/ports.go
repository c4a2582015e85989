// Package ports connects to ports as this machine sees them, and listens on its
// loopback for the one who called the agent. It knows no streams.
package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// dialLimit is how long a connection may take to be made. The caller may be
// more impatient.
const dialLimit = 10 * time.Second

// addrMost bounds an address: a name of DNS has 255 bytes.
const addrMost = 300

// Errors that a caller may tell apart.
var (
	// ErrWrong is for what can be no address, and no port.
	ErrWrong = errors.New("it is no address")
	// ErrTaken says that somebody listens on the port.
	ErrTaken = errors.New("the port is in use there")
	// ErrForbidden says that the user may not listen on the port.
	ErrForbidden = errors.New("the user there may not listen on the port")
)

// Dial connects to a TCP address: names are looked up here.
func Dial(ctx context.Context, network, addr string) (*net.TCPConn, error) {
	host, port, err := net.SplitHostPort(addr)
	number, portErr := strconv.ParseUint(port, 10, 16)
	switch {
	case network != "tcp" && network != "tcp4" && network != "tcp6":
		return nil, fmt.Errorf("%w: only tcp is dialed, not %.20q", ErrWrong, network)
	case err != nil || portErr != nil || number == 0 || host == "" || len(addr) > addrMost:
		return nil, fmt.Errorf("%w: %.*q", ErrWrong, addrMost, addr)
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, reason(err)
	}
	return conn.(*net.TCPConn), nil
}

// reason is why a connection was not made, without the address, which the
// caller knows.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		err = call.Err
	}
	return err
}

// Listen listens on a port of 127.0.0.1, 0 for any free one, and nowhere else:
// nobody on the network can reach it.
func Listen(ctx context.Context, port int) (*net.TCPListener, error) {
	if port < 0 || port > 65535 {
		return nil, fmt.Errorf("%w: port %d", ErrWrong, port)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, ErrTaken
	case errors.Is(err, os.ErrPermission):
		return nil, ErrForbidden
	case err != nil:
		return nil, err
	}
	return l.(*net.TCPListener), nil
}
