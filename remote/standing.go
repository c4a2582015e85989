package remote

import (
	"context"
	"sync"
	"time"
)

// TunnelState is how a tunnel stands.
type TunnelState struct {
	// Connected says that the node is reached; else it is dialed again and
	// again, and the tunnel goes on when it answers. A Reverse ends where the
	// node's agent breaks the protocol.
	Connected bool
	// Why is what failed last: why the node is not reached, or, where it is,
	// why the latest connection through the tunnel was not. Empty: nothing.
	Why string
}

// standing keeps the state of a tunnel and tells of its changes.
type standing struct {
	stateMu sync.Mutex // held while told runs, so that changes are told in order
	state   TunnelState
	known   bool // state was told once
	told    func(TunnelState)
}

// State is how the tunnel stands now.
func (s *standing) State() TunnelState {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	return s.state
}

// OnState calls f with the present state where it is known, and with every
// later one. Calls come in order, one at a time; f must neither block nor call
// the tunnel.
func (s *standing) OnState(f func(TunnelState)) {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	s.told = f
	if s.known {
		f(s.state)
	}
}

func (s *standing) become(change func(*TunnelState)) {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	next := s.state
	change(&next)
	if s.known && next == s.state {
		return
	}
	s.state, s.known = next, true
	if s.told != nil {
		s.told(next)
	}
}

// failed keeps what became of the latest connection through the tunnel. While
// the node is away that says more.
func (s *standing) failed(err error) {
	s.become(func(st *TunnelState) {
		switch {
		case err != nil:
			st.Why = err.Error()
		case st.Connected:
			st.Why = ""
		}
	})
}

// keep dials the node whenever it is lost, so that the tunnel is ready again
// before anybody asks for it.
func (t *Tunnel) keep() {
	lost := make(chan struct{}, 1)
	forget := t.node.OnState(func(connected bool, why string) {
		t.become(func(st *TunnelState) { *st = TunnelState{Connected: connected, Why: why} })
		if !connected {
			select {
			case lost <- struct{}{}:
			default:
			}
		}
	})
	defer forget()
	for {
		if t.reconnect() {
			t.become(func(st *TunnelState) { st.Connected = true })
		}
		select {
		case <-lost:
		case <-t.ctx.Done():
			return
		}
	}
}

// reconnect dials until the node answers. It reports false when the tunnel was
// closed before. The dialer itself pauses between its attempts.
func (t *Tunnel) reconnect() bool {
	for {
		ctx, cancel := context.WithCancel(t.ctx)
		err := t.node.Connect(ctx)
		cancel()
		if err == nil || t.ctx.Err() != nil {
			return err == nil
		}
		t.become(func(st *TunnelState) { *st = TunnelState{Why: err.Error()} })
		select {
		case <-time.After(backoffLeast): // a node that was closed fails at once
		case <-t.ctx.Done():
			return false
		}
	}
}
