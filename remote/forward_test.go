//go:build unix

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/internal/testport"
)

// forwardTest opens a tunnel, which is closed with the test.
func forwardTest(t *testing.T, n *Node, remote string) *Tunnel {
	t.Helper()
	tunnel, err := Forward(t.Context(), n, "127.0.0.1:0", remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tunnel.Close() })
	return tunnel
}

func webServer(t *testing.T) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(web.Close)
	return strings.TrimPrefix(web.URL, "http://")
}

func TestForwardCarriesManyConnectionsAndOutlivesALostLink(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	tunnel := forwardTest(t, n, webServer(t))
	body := bytes.Repeat([]byte("0123456789"), 50_000)
	for range 2 {
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() { post(t, tunnel.Port(), body) })
		}
		group.Wait()
		if s.KillConnections() != 1 {
			t.Error("there is not exactly one connection")
		}
	}
	if err := tunnel.Err(); err != nil {
		t.Error(err)
	}
}

func post(t *testing.T, port int, body []byte) {
	client := http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/", port), "text/plain", bytes.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || !bytes.Equal(got, body) {
		t.Errorf("status %d, %d bytes, %v; want 200 and the %d bytes that were sent", res.StatusCode, len(got), err, len(body))
	}
}

func TestForwardNeedsNothingOfItsServerButACommand(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"AllowTcpForwarding no", "DisableForwarding yes", "MaxSessions 1", "PermitOpen none"} {
		tunnel := forwardTest(t, openTest(t, sshdtest.Start(t, sshdtest.Config(setting))), webServer(t))
		post(t, tunnel.Port(), []byte(setting))
		if err := tunnel.Err(); err != nil {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

func TestForwardCarries200ConnectionsAtOnce(t *testing.T) {
	const most = 200
	var here atomic.Int32
	all := make(chan struct{}) // all are there before any is answered
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if here.Add(1) == most {
			close(all)
		}
		select {
		case <-all:
			_, _ = io.Copy(w, r.Body)
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(web.Close)
	tunnel := forwardTest(t, openTest(t, sshdtest.Start(t)), strings.TrimPrefix(web.URL, "http://"))
	body := bytes.Repeat([]byte("0123456789"), 1000)
	var group sync.WaitGroup
	for range most {
		group.Go(func() { post(t, tunnel.Port(), body) })
	}
	group.Wait()
	if err := tunnel.Err(); err != nil || here.Load() != most {
		t.Errorf("%d came through, %v", here.Load(), err)
	}
}

func TestALinkThatIsLostInTheMiddleIsNoCleanEnd(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tunnel := forwardTest(t, openTest(t, s), l.Addr().String())
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", tunnel.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	for _, c := range []net.Conn{conn, far} {
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := c.Write([]byte("half")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []net.Conn{conn, far} {
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
	}
	s.KillConnections()
	for name, c := range map[string]net.Conn{"here": conn, "there": far} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, errTimeout(err)) {
			t.Errorf("%s it ends with %v", name, err)
		}
	}
}

func TestForwardPassesOnAHalfClose(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // answers only when it has read everything
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		_, _ = fmt.Fprintf(conn, "%d bytes", len(all))
	}()
	tunnel := forwardTest(t, openTest(t, sshdtest.Start(t)), l.Addr().String())
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", tunnel.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	if _, err := conn.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "100000 bytes" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestForwardToWhereNobodyListensSaysSo(t *testing.T) {
	t.Parallel()
	nobody := testport.Addr(t)
	tunnel := forwardTest(t, openTest(t, sshdtest.Start(t)), nobody)
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", tunnel.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	if got, _ := io.ReadAll(conn); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	if err := tunnel.Err(); err == nil || !strings.Contains(err.Error(), nobody) {
		t.Errorf("got %v, want an error that names the address", err)
	}
}

func TestTakenPortIsNamedTogetherWithAFreeOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Forward(t.Context(), Open(Target{}), l.Addr().String(), "127.0.0.1:1")
	var taken *PortTakenError
	if !errors.As(err, &taken) || taken.Port != l.Addr().(*net.TCPAddr).Port {
		t.Fatalf("got %v, want a PortTakenError", err)
	}
	tunnel, err := Forward(t.Context(), Open(Target{}), fmt.Sprintf("127.0.0.1:%d", taken.Next), "127.0.0.1:1")
	if err != nil {
		t.Fatalf("the port that was said to be free: %v", err)
	}
	if err := tunnel.Close(); err != nil {
		t.Error(err)
	}
}

func TestForwardListensNowhereButOnLoopback(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "127.0.0.1:99999", "8888", "127.0.0.1:x"} {
		if tunnel, err := Forward(t.Context(), Open(Target{}), listen, "127.0.0.1:1"); err == nil {
			t.Errorf("%s was accepted", listen)
			_ = tunnel.Close()
		}
	}
}

func TestClosedTunnelEndsItsConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tunnel := forwardTest(t, openTest(t, sshdtest.Start(t)), l.Addr().String())
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", tunnel.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := l.Accept() // the connection stands, end to end
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if err := tunnel.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{conn, far} {
		_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, errTimeout(err)) {
			t.Errorf("still open: %v", err)
		}
	}
}

// errTimeout returns err when it is a timeout.
func errTimeout(err error) error {
	var netErr net.Error
	if errors.As(err, &netErr) && netErr.Timeout() {
		return err
	}
	return errEnough
}

func TestTunnelListensOnBothLoopbackAddresses(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("this machine has no ::1: " + err.Error())
	}
	defer l.Close()
	// Whoever has one of the two would answer a browser that tries it first.
	_, err = Forward(t.Context(), Open(Target{}), fmt.Sprintf("127.0.0.1:%d", portOf(l)), "127.0.0.1:1")
	var taken *PortTakenError
	if !errors.As(err, &taken) || taken.Port != portOf(l) || taken.Next == portOf(l) {
		t.Errorf("on a port whose ::1 is taken: %v", err)
	}
	tunnel := forwardTest(t, openTest(t, sshdtest.Start(t)), webServer(t))
	c := http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		res, err := c.Post(fmt.Sprintf("http://%s:%d/", host, tunnel.Port()), "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Error(err)
			continue
		}
		if got, _ := io.ReadAll(res.Body); string(got) != "hello" {
			t.Errorf("%s answers %q", host, got)
		}
		_ = res.Body.Close()
	}
}
