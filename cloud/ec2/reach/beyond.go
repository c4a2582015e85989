package reach

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// beyondDocument is the kind of session that leads to another address than the target's
// own.
const beyondDocument = "AWS-StartPortForwardingSessionToRemoteHost"

// Beyond connects to an address that the target reaches, such as that of a container
// with a network interface of its own, by a session that ends with the connection.
func (t Target) Beyond(ctx context.Context, host, port string) (net.Conn, error) {
	p, err := t.open(ctx, beyondDocument, map[string][]string{"host": {host}, "portNumber": {port}, "localPortNumber": {"0"}})
	if err != nil {
		return nil, err
	}
	conn, err := p.Dial(ctx)
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("reach %s by %s: %w", net.JoinHostPort(host, port), t.ID, err)
	}
	return &onlyConn{Conn: conn, end: sync.OnceFunc(p.Close)}, nil
}

// onlyConn is the one connection of a session.
type onlyConn struct {
	net.Conn
	end func()
}

// Close closes the connection and ends the session.
func (c *onlyConn) Close() error {
	err := c.Conn.Close()
	c.end()
	return err
}
