//go:build linux

package remote

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/remote/wire"
)

// lyingAgent is a machine whose agent tells what a test likes: lie answers each
// call whose service and request were received.
type lyingAgent struct {
	lie  func(service string, s *wire.Stream)
	once sync.Once
	done chan struct{}
	why  error
}

// openLiar is a node with such an agent.
func openLiar(t *testing.T, lie func(service string, s *wire.Stream)) *Node {
	t.Helper()
	n := OpenOver("liar", func(context.Context) (transport.Machine, error) {
		return &lyingAgent{lie: lie, done: make(chan struct{})}, nil
	})
	t.Cleanup(func() { _ = n.Close() })
	return n
}

func (l *lyingAgent) Start(_ context.Context, line string) (transport.Command, error) {
	_, behind, _ := strings.Cut(line, " serve ")
	words := strings.Fields(strings.NewReplacer(";", " ", "}", " ").Replace(behind))
	here, there := net.Pipe()
	go l.serve(there, words)
	return lyingCommand{here}, nil
}

func (l *lyingAgent) serve(conn net.Conn, words []string) {
	defer conn.Close()
	if _, err := conn.Write([]byte(wire.Hello(words[0], words[1]))); err != nil {
		return
	}
	session, err := wire.Answer(conn)
	if err != nil {
		return
	}
	go func() {
		<-l.done
		_ = session.Close()
	}()
	lieOn(session, l.lie)
}

func (l *lyingAgent) Kill(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.done)
	})
}

func (l *lyingAgent) Done() <-chan struct{} { return l.done }
func (l *lyingAgent) Err() error            { return l.why }

type lyingCommand struct{ net.Conn }

func (lyingCommand) Said() string { return "" }

// heldBack is how much memory is in use beyond what was before.
func heldBack() func() int64 {
	use := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	before := use()
	return func() int64 { return use() - before }
}

// lieMost is the memory that an agent's lies may take.
const lieMost = raceCosts * 50 << 20

func TestAFloodOfALogWaitsForItsReader(t *testing.T) {
	n := openLiar(t, func(_ string, s *wire.Stream) {
		for s.Send(wire.FollowNews{Data: make([]byte, wire.MessageMost-100)}) == nil {
		}
	})
	held, most, count := heldBack(), int64(0), 0
	err := n.Follow(testContext(t), "log", 0, func(off int64, p []byte) error {
		if count++; count%20 == 0 {
			time.Sleep(100 * time.Millisecond) // the flood goes on meanwhile
			most = max(most, held())
		}
		return enough(count == 60)
	})
	if !errors.Is(err, errEnough) || most > lieMost {
		t.Errorf("after %d pieces: %v; %d MB are held", count, err, most>>20)
	}
}

// nonsense is what breaks the protocol, and what is said of it.
var nonsense = map[string]struct {
	tell func(s *wire.Stream)
	says string
}{
	"an unknown kind":   {tellsRaw("\x02\x07\xa0"), "a message of the unknown kind 7"},
	"a giant length":    {tellsRaw("\x80\x80\x80\x80\x04"), "a message of 1073741824 bytes"},
	"an empty message":  {tellsRaw("\x00"), "a message of 0 bytes"},
	"an endless length": {tellsRaw("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "a message of"},
	"broken CBOR":       {tellsRaw("\x04\x00\xff\xff\xff"), "can't be decoded"},
	"a broken fault":    {tellsRaw("\x03\x01\xff\xff"), "can't be decoded"},
	"another message":   {func(s *wire.Stream) { _ = s.Send(1.5) }, "can't be decoded"},
}

func tellsRaw(text string) func(*wire.Stream) {
	return func(s *wire.Stream) {
		_, _ = s.Raw().Write([]byte(text))
		_, _ = io.Copy(io.Discard, s.Raw()) // the call does not end with it
	}
}

func TestAnAgentThatBreaksTheProtocolIsToldOfAtOnce(t *testing.T) {
	all := maps.Clone(observing)
	for _, c := range calls {
		all[c.name] = c.call
	}
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/file", []byte("x"), 0o600))
	for name, call := range Moving {
		all[name] = func(ctx context.Context, n *Node) error {
			_, err := call(ctx, n, dir)
			return err
		}
	}
	for what, lie := range nonsense {
		for name, call := range all {
			t.Run(what+" to "+name, func(t *testing.T) {
				t.Parallel()
				var told sync.Map
				n := openLiar(t, func(service string, s *wire.Stream) {
					if _, again := told.LoadOrStore(service, true); again {
						t.Errorf("%s is called again", service)
					}
					lie.tell(s)
				})
				err := call(testContext(t), n)
				if broken := new(wire.ProtocolError); !errors.As(err, &broken) || !strings.Contains(err.Error(), lie.says) || !strings.Contains(err.Error(), "liar") {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

func TestAReverseTunnelEndsWithAnAgentThatBreaksTheProtocol(t *testing.T) {
	for name, lies := range map[string][]func(*wire.Stream){
		"while it listens":          {nonsense["another message"].tell},
		"when it is to listen anew": {func(*wire.Stream) {}, nonsense["another message"].tell},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			n := openLiar(t, func(_ string, s *wire.Stream) {
				call := int(calls.Add(1))
				if call > len(lies) {
					t.Error("it is called again")
					return
				}
				if call == 1 {
					_ = s.Send(wire.Listening{Port: 4000})
				}
				lies[call-1](s)
			})
			tunnel, err := Reverse(testContext(t), n, 4000, "127.0.0.1:1")
			check(t, err)
			over := make(chan struct{})
			go func() {
				tunnel.tasks.Wait()
				close(over)
			}()
			next(t, over)
			if state := tunnel.State(); state.Connected || !strings.Contains(state.Why, "broke the protocol") {
				t.Errorf("it stands as %+v", state)
			}
			check(t, tunnel.Close())
		})
	}
}

func TestALogThatEndsIsFollowedAgain(t *testing.T) {
	var calls atomic.Int32
	n := openLiar(t, func(_ string, s *wire.Stream) {
		_ = s.Send(wire.FollowNews{Dropped: -1})
		_ = s.Send(wire.FollowNews{})
		if calls.Add(1) > 1 {
			_ = s.Send(wire.FollowNews{Data: []byte("the log")})
			_ = s.Send(wire.FollowNews{Dropped: 3})
		}
		_ = s.End(nil)
	})
	var got []string
	err := n.FollowLog(testContext(t), "r1", "rank-0.log", 0, func(off int64, p []byte) error {
		got = append(got, string(p))
		return enough(len(got) == 2)
	}, func(from, to int64) error {
		t.Errorf("bytes %d to %d are said to be missing", from, to)
		return nil
	})
	if !errors.Is(err, errEnough) || calls.Load() < 3 {
		t.Errorf("got %q in %d calls: %v", got, calls.Load(), err)
	}
}

func TestTelemetryThatIsNoneIsBounded(t *testing.T) {
	n := openLiar(t, func(_ string, s *wire.Stream) {
		for s.Send(make(wire.TelemetryFrame, frameMost)) == nil {
		}
	})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	held, most, count := heldBack(), int64(0), 0
	err := n.Telemetry(ctx, "", nil, func(frame []byte) {
		if count++; count%40 == 0 {
			most = max(most, held())
		}
		if count == 120 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || most > lieMost {
		t.Errorf("after %d frames: %v; %d MB are held", count, err, most>>20)
	}
	n = openLiar(t, func(_ string, s *wire.Stream) { _ = s.Send(make(wire.TelemetryFrame, frameMost+1)) })
	if err := n.Telemetry(testContext(t), "", nil, func([]byte) {}); err == nil || !strings.Contains(err.Error(), "a frame of telemetry has") {
		t.Errorf("a frame that is too long: %v", err)
	}
}

func TestAFloodOfTelemetryIsReadTwiceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, room := time.Now(), allowance{burstMost, time.Now()}
		for range burstMost + 20 {
			room.wait(t.Context())
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("20 frames more than may come at once took %v", took)
		}
		time.Sleep(time.Hour)
		began = time.Now()
		for range burstMost + 1 {
			room.wait(t.Context())
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("one frame more than may come at once took %v after an hour", took)
		}
	})
}

func TestFilesOfMetricsThatCanNotBeAreRefused(t *testing.T) {
	for name, news := range map[string][]wire.FilesNews{
		"bytes of no file":          {{Data: []byte("x")}},
		"more bytes than were said": {{File: &wire.FilePiece{Length: 1}}, {Data: []byte("x")}, {Data: []byte("y")}},
		"a piece without end":       {{File: &wire.FilePiece{Length: 1 << 60}}},
		"a piece before the file":   {{File: &wire.FilePiece{FileAt: wire.FileAt{Next: -1}}}},
	} {
		n := openLiar(t, func(_ string, s *wire.Stream) {
			for _, m := range news {
				_ = s.Send(m)
			}
			_ = s.End(nil)
		})
		err := n.MetricFiles(testContext(t), wire.FilesRequest{}, func(wire.FilesNews) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "what no file is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
