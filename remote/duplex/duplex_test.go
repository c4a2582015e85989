package duplex

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection of TCP, both ends.
func pair(t *testing.T) (*net.TCPConn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		_ = c.SetDeadline(time.Now().Add(60 * time.Second))
		t.Cleanup(func() { _ = c.Close() })
	}
	return a.(*net.TCPConn), b.(*net.TCPConn)
}

// joined are the outer ends of two connections whose inner ends are joined.
func joined(t *testing.T, ctx context.Context) (a, b *net.TCPConn, over <-chan struct{}) {
	t.Helper()
	a, innerA := pair(t)
	innerB, b := pair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Join(ctx, innerA, innerB)
	}()
	return a, b, done
}

func TestEachDirectionHasAnEndOfItsOwn(t *testing.T) {
	a, b, over := joined(t, t.Context())
	request := bytes.Repeat([]byte("0123456789"), 100_000)
	go func() {
		_, _ = a.Write(request)
		_ = a.CloseWrite()
	}()
	if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, request) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if _, err := b.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	_ = b.CloseWrite()
	if got, err := io.ReadAll(a); err != nil || string(got) != "answer" {
		t.Fatalf("%q, %v", got, err)
	}
	<-over
}

func TestAnEndThatFailsIsNoCleanEndAtTheOther(t *testing.T) {
	a, b, over := joined(t, t.Context())
	if _, err := a.Write([]byte("half a file")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(b, make([]byte, len("half a file"))); err != nil {
		t.Fatal(err)
	}
	_ = a.SetLinger(0) // Close resets it
	_ = a.Close()
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the other end sees %v", err)
	}
	<-over
}

func TestBothEndsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a, b, over := joined(t, ctx)
	cancel()
	<-over
	for _, c := range []net.Conn{a, b} {
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an end is open: %v", err)
		}
	}
}
