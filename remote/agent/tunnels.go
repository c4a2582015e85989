//go:build linux

package agent

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/dlwb/dlwb/remote/agent/ports"
	"github.com/dlwb/dlwb/remote/duplex"
	"github.com/dlwb/dlwb/remote/wire"
)

// desk is where connections to ports that are listened on wait.
var desk = ports.NewDesk()

// dialPort connects to a port and carries the connection.
func dialPort(ctx context.Context, s *wire.Stream) error {
	var r wire.DialRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	conn, err := ports.Dial(ctx, r.Network, r.Addr)
	if err != nil {
		return portFault(err)
	}
	return carry(ctx, s, conn)
}

// carry carries a connection over the rest of a call.
func carry(ctx context.Context, s *wire.Stream, conn *net.TCPConn) error {
	if err := s.Send(wire.Dialed{}); err != nil {
		_ = conn.Close()
		return err
	}
	far := s.Conn()
	duplex.Join(ctx, conn, far)
	<-far.Over()
	return nil
}

// listenPort listens on a port and tells of each connection.
func listenPort(ctx context.Context, s *wire.Stream) error {
	var r wire.ListenRequest
	if err := s.Recv(&r); err != nil {
		return err
	}
	l, err := ports.Listen(ctx, r.Port)
	if err != nil {
		return portFault(err)
	}
	defer l.Close()
	if err := s.Send(wire.Listening{Port: l.Addr().(*net.TCPAddr).Port}); err != nil {
		return err
	}
	ctx, cancel := s.Gone(ctx)
	defer cancel()
	return desk.Receive(ctx, l, func(number uint64) error { return s.Send(wire.Connected{Number: number}) })
}

// fetchPort carries a connection that has come to a port.
func fetchPort(ctx context.Context, s *wire.Stream) error {
	var r wire.Connected
	if err := s.Recv(&r); err != nil {
		return err
	}
	conn := desk.Fetch(r.Number)
	if conn == nil {
		return wire.Faultf(wire.Absent, "no connection waits under this number")
	}
	return carry(ctx, s, conn)
}

// portFault tells why a port can't be had.
func portFault(err error) error {
	switch {
	case errors.Is(err, ports.ErrWrong):
		return wire.Faultf(wire.Wrong, "%v", err)
	case errors.Is(err, ports.ErrTaken), errors.Is(err, ports.ErrForbidden), errors.Is(err, syscall.ECONNREFUSED):
		return wire.Faultf(wire.Refused, "%v", err)
	}
	return err
}
