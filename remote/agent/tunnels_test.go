//go:build linux

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/remote/wire"
)

// served is a session with an agent in this process.
func served(t *testing.T) *wire.Session {
	t.Helper()
	near, far := net.Pipe()
	over := make(chan error)
	go func() { over <- Serve(context.Background(), far) }()
	s, err := wire.Dial(near)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-over; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return s
}

// dialed is a connection through the agent.
func dialed(t *testing.T, s *wire.Session, service string, request any) *wire.Conn {
	t.Helper()
	call, err := s.Call(t.Context(), service, request)
	if err != nil {
		t.Fatal(err)
	}
	var d wire.Dialed
	if err := call.Recv(&d); err != nil {
		t.Fatal(err)
	}
	conn := call.Conn()
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	return conn
}

// listener listens on loopback until the test ends.
func listener(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	_ = l.SetDeadline(time.Now().Add(60 * time.Second))
	return l
}

func to(l net.Listener) wire.DialRequest {
	return wire.DialRequest{Network: "tcp", Addr: l.Addr().String()}
}

// echo answers each connection with what it was sent, at the end of that.
func echo(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			all, _ := io.ReadAll(conn)
			_, _ = conn.Write(all)
		}()
	}
}

func TestManyConnectionsThroughOneSession(t *testing.T) {
	s, l := served(t), listener(t)
	go echo(l)
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			conn := dialed(t, s, wire.DialPort, to(l))
			body := bytes.Repeat([]byte{byte(i)}, 100_000)
			go func() {
				_, _ = conn.Write(body)
				_ = conn.CloseWrite()
			}()
			if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, body) {
				t.Errorf("connection %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	group.Wait()
}

func TestAPortThatRefusesIsAFault(t *testing.T) {
	s, l := served(t), listener(t)
	_ = l.Close()
	for request, kind := range map[wire.DialRequest]string{
		to(l): wire.Refused, {Network: "unix", Addr: "/run/x"}: wire.Wrong, {Network: "tcp", Addr: "no port"}: wire.Wrong,
	} {
		call, err := s.Call(t.Context(), wire.DialPort, request)
		if err != nil {
			t.Fatal(err)
		}
		if err := call.Recv(&wire.Dialed{}); !wire.Is(err, kind) {
			t.Errorf("%v: %v", request, err)
		}
		call.Close()
	}
}

func TestWhatWasSentBeforeACloseArrives(t *testing.T) {
	s, l := served(t), listener(t)
	conn := dialed(t, s, wire.DialPort, to(l))
	far, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	_ = far.SetDeadline(time.Now().Add(60 * time.Second))
	body := bytes.Repeat([]byte("0123456789"), 10_000)
	if _, err := conn.Write(body); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if got, err := io.ReadAll(far); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestAConnectionThatIsClosedHereEndsWhatIsSentWithoutEnd(t *testing.T) {
	s, l := served(t), listener(t)
	conn := dialed(t, s, wire.DialPort, to(l))
	far, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	_ = far.SetDeadline(time.Now().Add(60 * time.Second))
	for err == nil { // as a page of events does
		_, err = far.Write(make([]byte, 64<<10))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the other end is still open")
	}
}

func TestAReaderEndsWithClose(t *testing.T) {
	s, l := served(t), listener(t)
	conn := dialed(t, s, wire.DialPort, to(l))
	read := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	_ = conn.Close()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestACutConnectionIsNoCleanEnd(t *testing.T) {
	s, l := served(t), listener(t)
	conn := dialed(t, s, wire.DialPort, to(l))
	far, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	_ = far.SetLinger(0)
	_ = far.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestWhatConnectsToAPortIsFetched(t *testing.T) {
	s := served(t)
	call, err := s.Call(t.Context(), wire.ListenPort, wire.ListenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var listening wire.Listening
	if err := call.Recv(&listening); err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", listening.Port)
	near, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	var c wire.Connected
	if err := call.Recv(&c); err != nil {
		t.Fatal(err)
	}
	conn := dialed(t, s, wire.FetchPort, c)
	if _, err := near.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("%q, %v", got, err)
	}
	again, err := s.Call(t.Context(), wire.FetchPort, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Recv(&wire.Dialed{}); !wire.Is(err, wire.Absent) {
		t.Errorf("fetched twice: %v", err)
	}
	call.Reset()
	for limit := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			break
		}
		_ = conn.Close()
		if time.Now().After(limit) {
			t.Fatal("it still listens when the call is given up")
		}
	}
}
