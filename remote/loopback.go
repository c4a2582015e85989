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

// listenLoopback listens on 127.0.0.1 and nowhere else.
func listenLoopback(ctx context.Context, listen string) (net.Listener, error) {
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
	l, err := listenPort(ctx, int(port))
	if isTaken(err) {
		return nil, &PortTakenError{Port: int(port), Next: freePort(ctx, int(port)+1)}
	}
	if err != nil {
		return nil, fmt.Errorf("forward from 127.0.0.1:%d: %w", port, err)
	}
	return l, nil
}

func listenPort(ctx context.Context, port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// isTaken knows the error of Unix and that of Windows (WSAEADDRINUSE).
func isTaken(err error) bool {
	const windows = syscall.Errno(10048)
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, windows)
}

// freePort finds a port near the wanted one, else any.
func freePort(ctx context.Context, from int) int {
	for port := from; port < from+100; port++ {
		if port > 65535 {
			break
		}
		if l, err := listenPort(ctx, port); err == nil {
			_ = l.Close()
			return port
		}
	}
	l, err := listenPort(ctx, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
