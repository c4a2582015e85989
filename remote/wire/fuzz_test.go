package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// told is a connection on which all that comes is known beforehand, and
// everything is taken.
type told struct {
	in   io.Reader
	once sync.Once
	over chan struct{}
}

func tell(p []byte) *told { return &told{in: bytes.NewReader(p), over: make(chan struct{})} }

func (c *told) Read(p []byte) (int, error) { return c.in.Read(p) }

func (c *told) Write(p []byte) (int, error) {
	select {
	case <-c.over:
		return 0, net.ErrClosed
	default:
		return len(p), nil
	}
}

func (c *told) Close() error {
	c.once.Do(func() { close(c.over) })
	return nil
}

// recorded is a connection that keeps what is written to it.
type recorded struct {
	io.ReadWriteCloser
	mu   sync.Mutex
	said bytes.Buffer
}

func (c *recorded) Write(p []byte) (int, error) {
	c.mu.Lock()
	c.said.Write(p)
	c.mu.Unlock()
	return c.ReadWriteCloser.Write(p)
}

func (c *recorded) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.said.Bytes())
}

// anything is a message in which everything can be decoded.
type anything struct {
	A any            `cbor:"a"`
	B []byte         `cbor:"b"`
	L []ExecOutput   `cbor:"l"`
	M map[string]int `cbor:"m"`
}

// conversation is what an honest caller and an honest agent say.
func conversation(t testing.TB) (caller, agent []byte) {
	t.Helper()
	a, b := net.Pipe()
	near, far := &recorded{ReadWriteCloser: a}, &recorded{ReadWriteCloser: b}
	server, err := Answer(far)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 3 {
			s, err := server.Accept()
			if err != nil {
				return
			}
			var name string
			var m anything
			if s.Recv(&name) != nil || s.Recv(&m) != nil {
				return
			}
			_ = s.Send(m)
			switch name {
			case "fault":
				_ = s.End(Faultf(Refused, "no"))
			case "bytes":
				_, _ = io.Copy(s.Raw(), s.Raw())
				_ = s.CloseWrite()
			default:
				_ = s.End(nil)
			}
		}
	}()
	session, err := Dial(near)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fault", "bytes", "end"} {
		s, err := session.Call(context.Background(), name, anything{A: "x", B: []byte("yy"), L: []ExecOutput{{Out: []byte("o")}}, M: map[string]int{"k": 1}})
		if err != nil {
			t.Fatal(err)
		}
		var m anything
		if err := s.Recv(&m); err != nil {
			t.Fatal(err)
		}
		if name == "bytes" {
			_, _ = s.Raw().Write([]byte("some bytes"))
			_ = s.CloseWrite()
			_, _ = io.Copy(io.Discard, s.Raw())
			continue
		}
		_ = s.Recv(&m)
		s.Close()
	}
	<-done
	_ = session.Close()
	_ = server.Close()
	return near.bytes(), far.bytes()
}

// FuzzHostileCaller gives an agent's side bytes that no caller of ours sends.
func FuzzHostileCaller(f *testing.F) {
	caller, _ := conversation(f)
	f.Add(caller)
	f.Fuzz(func(t *testing.T, said []byte) {
		session, err := Answer(tell(said))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		ends(t, session, func() {
			for {
				s, err := session.Accept()
				if err != nil {
					return
				}
				use(t, s)
				_ = s.End(errors.New("no"))
				s.Close()
			}
		})
	})
}

// FuzzHostileAgent gives a caller's side bytes that no agent of ours sends.
func FuzzHostileAgent(f *testing.F) {
	_, agent := conversation(f)
	f.Add(agent)
	f.Fuzz(func(t *testing.T, said []byte) {
		session, err := Dial(tell(said))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		ends(t, session, func() {
			for range 3 {
				s, err := session.Call(t.Context(), "any", "request")
				if err != nil {
					return
				}
				use(t, s)
				s.Close()
			}
		})
	})
}

// use receives whatever comes on a call, in the ways in which calls do.
func use(t *testing.T, s *Stream) {
	t.Helper()
	for range 1000 {
		var m anything
		err := s.Recv(&m)
		if err == nil {
			continue
		}
		var fault *Fault
		if errors.As(err, &fault) && len(fault.Text) > faultText+len("…") {
			t.Errorf("a fault of %d bytes", len(fault.Text))
		}
		if again := s.Recv(&m); again == nil || again.Error() != err.Error() {
			t.Errorf("after %v it goes on with %v", err, again)
		}
		_, _ = io.Copy(io.Discard, s.Raw())
		return
	}
}

// ends fails the test when f does not end, though nothing more can come.
func ends(t *testing.T, session *Session, f func()) {
	t.Helper()
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-time.After(30 * time.Second):
		t.Error("it goes on when the connection is over")
		_ = session.Close()
		<-over
	}
}

// FuzzHello looks for a hello in what a login shell may print.
func FuzzHello(f *testing.F) {
	f.Add([]byte("motd\n"+Hello("ab", "cd")), "abcd")
	f.Fuzz(func(t *testing.T, said []byte, word string) {
		hellos(t, said, word)
	})
}

func hellos(t *testing.T, said []byte, word string) {
	t.Helper()
	mark := Hello(word, "")
	which, err := AwaitHello(bufio.NewReader(bytes.NewReader(said)), mark)
	if found := bytes.Contains(said, []byte(mark)); found != (err == nil) || err == nil && which != 0 {
		t.Errorf("%q in %d bytes: %d, %v", mark, len(said), which, err)
	}
	var none *NoHelloError
	if err != nil && (!errors.As(err, &none) || len(none.Said) > 16<<10) {
		t.Errorf("%T", err)
	}
}
