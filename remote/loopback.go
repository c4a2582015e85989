package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// PortTakenError says that the local port of a forward is in use.
type PortTakenError struct {
	Port int
	Next int // a port that was free a moment ago; 0 when none was found
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("forward from 127.0.0.1:%d: something on this machine listens there already; port %d is free", e.Port, e.Next)
}

// listenLoopback listens on 127.0.0.1, on ::1 where there is one, and nowhere
// else. A browser that goes to a name below localhost may try ::1 first: if the
// port there were free, another user could take it and be the one who answers.
func listenLoopback(ctx context.Context, listen string) ([]net.Listener, error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("forward from %q: %w; give 127.0.0.1:PORT, or :0 for any free port", listen, err)
	}
	if host != "" && host != "127.0.0.1" && host != "localhost" {
		return nil, fmt.Errorf("forward from %q: only 127.0.0.1 is listened on, so that nobody else on the network gets in; give 127.0.0.1:%s", listen, text)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("forward from %q: %q is no port; give a number from 0 to 65535", listen, text)
	}
	both, err := listenBoth(ctx, int(port))
	if isTaken(err) {
		return nil, &PortTakenError{Port: int(port), Next: freePort(ctx, int(port)+1)}
	}
	if err != nil {
		return nil, fmt.Errorf("forward from 127.0.0.1:%d: %w", port, err)
	}
	return both, nil
}

// listenBoth listens on a port of each loopback address that there is; port 0
// is any that is free on both.
func listenBoth(ctx context.Context, port int) ([]net.Listener, error) {
	const tries = 20
	for try := 1; ; try++ {
		v4, err := listenPort(ctx, "127.0.0.1", port)
		if err != nil {
			return nil, err
		}
		v6, err := listenPort(ctx, "::1", portOf(v4))
		switch {
		case err == nil:
			return []net.Listener{v4, v6}, nil
		case isAbsent(err):
			return []net.Listener{v4}, nil
		}
		_ = v4.Close()
		if port != 0 || !isTaken(err) || try == tries {
			return nil, err
		}
	}
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func listenPort(ctx context.Context, host string, port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// isTaken knows the error of Unix and that of Windows (WSAEADDRINUSE).
func isTaken(err error) bool {
	const windows = syscall.Errno(10048)
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows)
}

// isAbsent reports whether this machine has no address of that kind; the
// numbers are those of Windows (WSAEAFNOSUPPORT, WSAEADDRNOTAVAIL).
func isAbsent(err error) bool {
	const noFamily, noAddress = syscall.Errno(10047), syscall.Errno(10049)
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) ||
		errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, noAddress) || errors.Is(err, noFamily)
}

// freePort finds a port near the wanted one, else any.
func freePort(ctx context.Context, from int) int {
	for port := from; port < min(from+100, 1<<16); port++ {
		if free, ok := tryPort(ctx, port); ok {
			return free
		}
	}
	free, _ := tryPort(ctx, 0)
	return free
}

func tryPort(ctx context.Context, port int) (int, bool) {
	both, err := listenBoth(ctx, port)
	for _, l := range both {
		port = portOf(l)
		_ = l.Close()
	}
	if err != nil {
		return 0, false
	}
	return port, true
}
