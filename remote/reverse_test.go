//go:build unix

package remote

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
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
	limit := time.After(30 * time.Second)
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
	limit := time.Now().Add(20 * time.Second)
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

func TestReverseForwardThatOthersCouldReachIsRefused(t *testing.T) {
	for setting, why := range map[string]string{
		"GatewayPorts yes": "would let others reach it", "AllowTcpForwarding local": "its ssh server refuses",
	} {
		s := sshdtest.Start(t, sshdtest.Config(setting))
		_, err := Reverse(t.Context(), openTest(t, s), 0, "127.0.0.1:9")
		var refused *ReverseRefusedError
		if !errors.As(err, &refused) || !strings.Contains(refused.Why, why) || refused.Advice() == "" {
			t.Errorf("%s: %v", setting, err)
		}
	}
	// Asked to choose, we ask for loopback.
	tunnel, err := Reverse(t.Context(), openTest(t, sshdtest.Start(t, sshdtest.Config("GatewayPorts clientspecified"))), 0, "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	_ = tunnel.Close()
}

func TestReverseForwardOfATakenPortSaysSo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Reverse(t.Context(), openTest(t, sshdtest.Start(t)), l.Addr().(*net.TCPAddr).Port, "127.0.0.1:9")
	if err == nil || !strings.Contains(err.Error(), "the port is in use there") {
		t.Errorf("got %v", err)
	}
}

func TestListenersBeyondLoopbackAreSeen(t *testing.T) {
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
	for _, c := range []struct{ line, want string }{
		{"   0: 0100007F:1770 00000000:0000 0A 0", ""},
		{"   0: 00000000:1770 00000000:0000 0A 0", "00000000"},
		{"   0: 0500000A:1770 00000000:0000 0A 0", "0500000A"},
		{"   0: 0500000A:1770 0500000A:9999 01 0", ""}, // no listener
		{"   0: 00000000:1771 00000000:0000 0A 0", ""}, // another port
		{"   0: 00000000000000000000000001000000:1770 0:0 0A 0", ""},
		{"   0: 0000000000000000FFFF00000100007F:1770 0:0 0A 0", ""},
		{"   0: 00000000000000000000000000000000:1770 0:0 0A 0", "00000000000000000000000000000000"},
		{"   0: B80D0120000000000000000000000A7F:1770 0:0 0A 0", "B80D0120000000000000000000000A7F"},
		{"nonsense", ""}, {"   0: :1770 x 0A 0", ""},
	} {
		if got := listensBeyond(head+c.line+"\n", 6000); got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestTunnelSaysWhenTheNodeIsAwayAndBack(t *testing.T) {
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
