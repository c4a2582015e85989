//go:build unix

package remote

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
)

// states gives the states of a tunnel as they come.
func states(tunnel *Tunnel) <-chan TunnelState {
	ch := make(chan TunnelState, 100)
	tunnel.OnState(func(s TunnelState) {
		select {
		case ch <- s:
		default:
		}
	})
	return ch
}

func awaitState(t *testing.T, ch <-chan TunnelState, is func(TunnelState) bool) TunnelState {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		select {
		case s := <-ch:
			if is(s) {
				return s
			}
		case <-limit:
			t.Fatal("the tunnel did not come to that state")
		}
	}
}

func TestReverseForwardComesBackOnTheSamePortAfterACut(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	tunnel, err := Reverse(t.Context(), openTest(t, s), 0, webServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tunnel.Close() })
	news := states(tunnel)
	body := bytes.Repeat([]byte("0123456789"), 50_000)
	post(t, tunnel.Port(), body) // the node is this machine: its port is here
	if s.KillConnections() != 1 {
		t.Error("there is not exactly one connection")
	}
	lost := awaitState(t, news, func(st TunnelState) bool { return !st.Connected })
	if !strings.Contains(lost.Why, "lost") {
		t.Errorf("the cut is told as %+v", lost)
	}
	awaitState(t, news, func(st TunnelState) bool { return st.Connected })
	post(t, tunnel.Port(), body)
	if err := tunnel.Close(); err != nil {
		t.Error(err)
	}
	limit := time.Now().Add(60 * time.Second)
	for {
		conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(tunnel.Port()))
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(limit) {
			t.Fatal("the node still listens when the tunnel is closed")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestNobodyElseReachesAReverseForwardWhateverItsServerAllows(t *testing.T) {
	for _, setting := range []string{"GatewayPorts yes", "AllowTcpForwarding no", "AllowTcpForwarding local", "MaxSessions 1", "DisableForwarding yes"} {
		tunnel, err := Reverse(t.Context(), openTest(t, sshdtest.Start(t, sshdtest.Config(setting))), 0, webServer(t))
		if err != nil {
			t.Errorf("%s: %v", setting, err)
			continue
		}
		post(t, tunnel.Port(), []byte("hello"))
		// What listens on all addresses answers on each of loopback's.
		if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.2", strconv.Itoa(tunnel.Port()))); err == nil {
			_ = conn.Close()
			t.Errorf("%s: it listens beyond 127.0.0.1", setting)
		}
		_ = tunnel.Close()
	}
}

func TestManyConnectionsComeThroughAReverseForward(t *testing.T) {
	t.Parallel()
	tunnel, err := Reverse(t.Context(), openTest(t, sshdtest.Start(t)), 0, webServer(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tunnel.Close() })
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { post(t, tunnel.Port(), body) })
	}
	group.Wait()
}

func TestReverseForwardOfATakenPortSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Reverse(t.Context(), openTest(t, sshdtest.Start(t)), l.Addr().(*net.TCPAddr).Port, "127.0.0.1:9")
	var refused *ReverseRefusedError
	if !errors.As(err, &refused) || refused.Why != "the port is in use there" || refused.Advice() == "" {
		t.Errorf("got %v", err)
	}
}

func TestTunnelSaysWhenTheNodeIsAwayAndBack(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	tunnel := forwardTest(t, n, webServer(t))
	news := states(tunnel)
	awaitState(t, news, func(st TunnelState) bool { return st.Connected })
	s.Stop()
	if lost := awaitState(t, news, func(st TunnelState) bool { return !st.Connected }); lost.Why == "" {
		t.Error("why the node is away is not said")
	}
	s.Restart()
	awaitState(t, news, func(st TunnelState) bool { return st.Connected && st.Why == "" })
	post(t, tunnel.Port(), []byte("again"))
}
