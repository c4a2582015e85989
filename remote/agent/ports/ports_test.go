package ports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testport"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyAddressesOfTCPAreDialed(t *testing.T) {
	for _, c := range []struct{ network, addr string }{
		{"unix", "/run/docker.sock"}, {"udp", "127.0.0.1:53"}, {"", "127.0.0.1:1"}, {"tcp", "127.0.0.1"}, {"tcp", ":80"}, {"tcp", "127.0.0.1:0"},
		{"tcp", "127.0.0.1:70000"}, {"tcp", "127.0.0.1:-1"}, {"tcp", "127.0.0.1:http"}, {"tcp", strings.Repeat("n", 400) + ":80"}, {"tcp", ""},
	} {
		conn, err := Dial(t.Context(), c.network, c.addr)
		if !errors.Is(err, ErrWrong) {
			t.Errorf("%s %q: %v", c.network, c.addr, err)
		}
		if len(fmt.Sprint(err)) > 2*addrMost {
			t.Errorf("%s: the error has %d bytes", c.network, len(fmt.Sprint(err)))
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
}

func TestAConnectionIsRefusedWhereNobodyListens(t *testing.T) {
	if _, err := Dial(t.Context(), "tcp", testport.Addr(t)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("got %v", err)
	}
}

func TestADialEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, "tcp", "192.0.2.1:9"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyLoopbackIsListenedOn(t *testing.T) {
	l := listen(t)
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.Equal(net.IPv4(127, 0, 0, 1)) {
		t.Errorf("it listens on %v", ip)
	}
	if _, err := Listen(t.Context(), portOf(l)); !errors.Is(err, ErrTaken) {
		t.Errorf("a port that is taken: %v", err)
	}
	for _, port := range []int{-1, 65536, 1 << 40} {
		if _, err := Listen(t.Context(), port); !errors.Is(err, ErrWrong) {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

func listen(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := Listen(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func portOf(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// receiving is a desk that receives from a listener until the test ends.
func receiving(t *testing.T, l *net.TCPListener) (*Desk, <-chan uint64, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d, told, over := NewDesk(), make(chan uint64, 2*waitMost), make(chan struct{})
	go func() {
		defer close(over)
		_ = d.Receive(ctx, l, func(number uint64) error { told <- number; return nil })
	}()
	t.Cleanup(func() { cancel(); <-over })
	return d, told, func() { cancel(); <-over }
}

func dial(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	return conn
}

func TestWhatConnectsIsFetchedOnce(t *testing.T) {
	l := listen(t)
	d, told, _ := receiving(t, l)
	near := dial(t, l)
	number := <-told
	far := d.Fetch(number)
	if far == nil || far.RemoteAddr().String() != near.LocalAddr().String() {
		t.Fatalf("fetched %v", far)
	}
	defer far.Close()
	if d.Fetch(number) != nil || d.Fetch(number+1) != nil {
		t.Error("there is another one")
	}
}

func TestSoManyWaitAndNoMoreUntilOneIsFetched(t *testing.T) {
	l := listen(t)
	d, told, _ := receiving(t, l)
	for range waitMost + 1 {
		dial(t, l)
	}
	first := <-told
	for range waitMost - 1 {
		<-told
	}
	select {
	case number := <-told:
		t.Fatalf("%d was announced while %d wait", number, waitMost)
	default:
	}
	_ = d.Fetch(first).Close()
	<-told // there is room again
}

func TestWhatNobodyFetchedEndsWithTheListener(t *testing.T) {
	l := listen(t)
	d, told, end := receiving(t, l)
	near := dial(t, l)
	number := <-told
	end()
	if n, err := near.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if d.Fetch(number) != nil {
		t.Error("it can still be fetched")
	}
	if conn, err := net.Dial("tcp", l.Addr().String()); err == nil {
		_ = conn.Close()
		t.Error("it still listens")
	}
}
