//go:build linux

package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// mostMemory is what a lying agent may cost its caller, and calls how many are
// open to it.
const (
	mostMemory = raceCosts * 50 << 20
	calls      = 64
)

// The kinds and flags of yamux's frames: an agent that lies speaks below what the
// library would say.
const (
	frameData, frameWindow, framePing = 0, 1, 2
	flagSYN, flagACK                  = 1, 2
)

func frame(kind, flags uint16, stream, length uint32, body ...byte) []byte {
	head := binary.BigEndian.AppendUint16([]byte{0, byte(kind)}, flags)
	head = binary.BigEndian.AppendUint32(head, stream)
	return append(binary.BigEndian.AppendUint32(head, length), body...)
}

// streamOf is the number of a caller's call.
func streamOf(call int) uint32 { return uint32(2*call + 1) }

// liar is an agent that keeps to the windows that it is given, so that it is
// heard, and to nothing else.
type liar struct {
	writing sync.Mutex
	out     io.Writer

	mu     sync.Mutex
	credit map[uint32]int
	moved  chan struct{}
}

// listen follows what the caller grants. Pings are answered late: the windows
// of a slow link are larger.
func (l *liar) listen(in io.Reader) {
	var head [12]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		id, length := binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint32(head[8:])
		switch head[1] {
		case frameData:
			_, _ = io.CopyN(io.Discard, in, int64(length))
		case framePing:
			time.AfterFunc(time.Second, func() { l.say(frame(framePing, flagACK, 0, length)) })
		case frameWindow:
			l.mu.Lock()
			if head[3]&flagSYN != 0 {
				length += 256 << 10
			}
			l.credit[id] += int(length)
			l.mu.Unlock()
			select {
			case l.moved <- struct{}{}:
			default:
			}
		}
	}
}

func (l *liar) say(p []byte) bool {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.out.Write(p)
	return err == nil
}

// take takes from what a call may be sent.
func (l *liar) take(id uint32, n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.credit[id] < n {
		return false
	}
	l.credit[id] -= n
	return true
}

// fill sends the same piece on so many calls until so much is sent, or nothing
// more is granted for a while.
func (l *liar) fill(calls int, piece []byte, most int) {
	for sent := 0; sent < most; {
		before := sent
		for call := range calls {
			var burst []byte
			for len(burst) < 256<<10 && sent < most && l.take(streamOf(call), len(piece)) {
				burst = append(burst, frame(frameData, 0, streamOf(call), uint32(len(piece)), piece...)...)
				sent += len(piece)
			}
			if len(burst) > 0 && !l.say(burst) {
				return
			}
		}
		if sent > before {
			continue
		}
		if !l.waited() {
			return
		}
	}
}

// waited waits for more to be granted. It reports false where that takes long.
func (l *liar) waited() bool {
	select {
	case <-l.moved:
		return true
	case <-time.After(time.Second):
		return false
	}
}

// send sends the same bytes on each call.
func (l *liar) send(body []byte) {
	for len(body) > 0 {
		p := body[:min(len(body), 32<<10)]
		for call := range calls {
			for !l.take(streamOf(call), len(p)) {
				if !l.waited() {
					return
				}
			}
			l.say(frame(frameData, 0, streamOf(call), uint32(len(p)), p...))
		}
		body = body[len(p):]
	}
}

// messageOf is a message of bytes as long as one may be.
func messageOf(kind byte, content []byte) []byte {
	return append(append(binary.AppendUvarint(nil, uint64(len(content)+1)), kind), content...)
}

// lies are what an agent says, and how its caller behaves meanwhile.
var lies = map[string]struct {
	say  func(l *liar)
	hear func(s *Session)
}{
	"beginnings of long messages": {func(l *liar) { l.send(binary.AppendUvarint(nil, MessageMost)) }, receive},
	"messages of the greatest length": {func(l *liar) {
		content := append([]byte{0xa1, 0x61, 'b', 0x5a, 0, 0x0f, 0xff, 0xf0}, make([]byte, 0x0ffff0)...)
		for range 5 {
			l.send(messageOf(kindMessage, content))
		}
	}, receive},
	"a list of empty things": {func(l *liar) {
		l.send(messageOf(kindMessage, append([]byte{0xa1, 0x61, 'l', 0x9a, 0, 1, 0xff, 0xff}, bytes.Repeat([]byte{0xa0}, 0x1ffff)...)))
	}, receive},
	"streams without number": {func(l *liar) {
		for id := range uint32(300_000) {
			l.say(frame(frameWindow, flagSYN, 2*id+2, 0))
		}
	}, receive},
	"a gigabyte for calls that are none": {func(l *liar) {
		l.say(frame(frameData, 0, 1001, 1<<30))
		for range 300 { // more than it may cost, also with -race
			l.say(make([]byte, 1<<20))
		}
	}, receive},
	"pings, and answers to none": {func(l *liar) {
		for n := range uint32(300_000) {
			l.say(append(append(frame(framePing, flagSYN, 0, n), frame(framePing, flagACK, 0, n)...), frame(frameWindow, flagACK, 1, 1<<31)...))
		}
	}, receive},
	"as much as nobody takes":  {func(l *liar) { l.fill(calls, make([]byte, 33<<10), 64<<20) }, stop},
	"crumbs that nobody takes": {func(l *liar) { l.fill(calls, make([]byte, 1), 64<<20) }, stop},
	"crumbs after a feast": {func(l *liar) {
		l.fill(4, make([]byte, 32<<10), 128<<20)
		l.fill(4, make([]byte, 1), 16<<20)
	}, readThenStop},
	"one feast after another": {func(l *liar) {
		l.fill(calls, make([]byte, 32<<10), 256<<20)
		l.fill(calls, make([]byte, 33<<10), 128<<20)
	}, readThenStop},
}

// receive receives messages on all calls, for as long as they come.
func receive(s *Session) { each(s, func(_ int, st *Stream) { _ = drain(st) }) }

// stop makes calls and takes nothing of what comes.
func stop(s *Session) {
	each(s, func(_ int, st *Stream) { <-s.Done() })
}

// readThenStop takes as much as most calls are sent before, and then nothing.
func readThenStop(s *Session) {
	each(s, func(_ int, st *Stream) {
		_, _ = io.CopyN(io.Discard, st.Raw(), 3<<20)
		<-s.Done()
	})
}

func drain(st *Stream) error {
	for {
		var m struct {
			B []byte       `cbor:"b"`
			L []ExecOutput `cbor:"l"`
		}
		if err := st.Recv(&m); err != nil {
			return err
		}
	}
}

// each makes all calls and does something with each of them at the same time.
func each(s *Session, do func(call int, st *Stream)) {
	var group sync.WaitGroup
	for call := range calls {
		st, err := s.Call(context.Background(), "any", call)
		if err != nil {
			break
		}
		group.Go(func() { do(call, st) })
	}
	group.Wait()
}

// TestCaller is the caller, in a process of its own: its standard streams lead
// to the liar.
func TestCaller(t *testing.T) {
	lie, ok := lies[os.Getenv("DLWB_TEST_LIE")]
	if !ok {
		t.Skip("it is started by another test")
	}
	before := peakMemory(t)
	s, err := Dial(ends2{os.Stdin, os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		lie.hear(s)
	}()
	<-s.Done()
	<-over
	fmt.Fprintf(os.Stderr, "cost %d\n", peakMemory(t)-before)
	os.Exit(0)
}

type ends2 struct{ in, out *os.File }

func (e ends2) Read(p []byte) (int, error)  { return e.in.Read(p) }
func (e ends2) Write(p []byte) (int, error) { return e.out.Write(p) }
func (e ends2) Close() error                { return errors.Join(e.in.Close(), e.out.Close()) }

// peakMemory is the most memory that this process ever had.
func peakMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kb int
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

func TestALyingAgentCostsItsCallerLittleMemoryAndNoTime(t *testing.T) {
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(os.Args[0], "-test.run=^TestCaller$")
			c.Env = append(os.Environ(), "DLWB_TEST_LIE="+name)
			in, out, errs := pipeOf(t, c.StdinPipe), pipeOf(t, c.StdoutPipe), &strings.Builder{}
			c.Stderr = errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			l := &liar{out: in, credit: map[uint32]int{}, moved: make(chan struct{}, 1)}
			heard := make(chan struct{})
			go func() {
				defer close(heard)
				l.listen(out)
			}()
			late := time.AfterFunc(3*time.Minute, func() { _ = c.Process.Kill() })
			began := time.Now()
			lie.say(l)
			_ = in.Close()
			<-heard
			err := c.Wait()
			if !late.Stop() || err != nil {
				t.Fatalf("the caller ended with %v: %s", err, errs)
			}
			var cost int
			if _, err := fmt.Sscanf(errs.String(), "cost %d", &cost); err != nil {
				t.Fatalf("the caller said %q", errs)
			}
			t.Logf("%d MB, %v", cost>>20, time.Since(began).Round(time.Millisecond))
			if cost > mostMemory {
				t.Errorf("it cost %d MB", cost>>20)
			}
		})
	}
}

func pipeOf[T any](t *testing.T, make func() (T, error)) T {
	t.Helper()
	p, err := make()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
