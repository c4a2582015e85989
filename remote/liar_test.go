//go:build linux

package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/remote/wire"
)

// An agent that lies speaks the protocol, after a good hello. It runs in the
// test's process and its caller in another one, whose memory is measured.

// lies are what an agent says to each call when it has its request.
var lies = map[string]func(s *wire.Stream){
	"nothing":            func(s *wire.Stream) { _, _ = io.Copy(io.Discard, s.Raw()) },
	"empty answers":      endless(map[string]int{}),
	"long answers":       endless(make([]byte, wire.MessageMost-16)),
	"bytes":              endless([]byte("x")),
	"lists of nothing":   endless(make([]map[string]int, 60_000)),
	"endless connection": endless(map[string]any{"n": 7, "p": 1}),
	"log of elsewhere":   endless(map[string]any{"o": int64(1) << 62, "d": []byte("x"), "t": 1}),
	"negative sizes":     endless(map[string]any{"o": -1, "n": -1, "s": -1, "size": -1, "p": -1, "z": -1}),
	"a list without end": func(s *wire.Stream) {
		for page := 0; s.Send(manyFiles(page)) == nil; page++ {
		}
	},
	"a list of 100,000 files": func(s *wire.Stream) {
		for page := 0; page < 100_000/wire.PageMost && s.Send(manyFiles(page)) == nil; page++ {
		}
		_ = s.End(nil)
	},
	"a list of directories": func(s *wire.Stream) {
		for page := 0; ; page++ {
			var p wire.ListPage
			for i := range wire.PageMost {
				p.Things = append(p.Things, wire.Thing{Name: fmt.Sprintf("out/%x", page*wire.PageMost+i), Mode: 0o040700})
			}
			if s.Send(p) != nil {
				return
			}
		}
	},
	"a long fault": func(s *wire.Stream) {
		_ = s.End(wire.Faultf(strings.Repeat("k", 1<<10), "%s", strings.Repeat("x", wire.MessageMost-4096)))
	},
	"noise": func(s *wire.Stream) {
		p := make([]byte, 64<<10)
		for i := range p {
			p[i] = byte(rand.Uint32())
		}
		for {
			if _, err := s.Raw().Write(p); err != nil {
				return
			}
		}
	},
	"a frame of a gigabyte": func(s *wire.Stream) {
		_, _ = s.Raw().Write([]byte{0x80, 0x80, 0x80, 0x80, 0x04, 0})
		zeros := make([]byte, 64<<10)
		for range 16 << 10 {
			if _, err := s.Raw().Write(zeros); err != nil {
				return
			}
		}
	},
	"half an answer": func(s *wire.Stream) {
		_, _ = s.Raw().Write([]byte{0x80, 0x80, 0x20, 0, 0xa1})
		_, _ = io.Copy(io.Discard, s.Raw())
	},
	"the end": func(s *wire.Stream) { _ = s.End(nil) },
	"a reset": func(s *wire.Stream) { s.Reset() },
}

// manyFiles is a page of a list of files.
func manyFiles(page int) (p wire.ListPage) {
	p.Clock = 100
	for i := range wire.PageMost {
		name := sha256.Sum256(fmt.Append(nil, page, i))
		p.Things = append(p.Things, wire.Thing{Name: fmt.Sprintf("out/%x", name), Mode: 0o100644, Size: 1, MTime: wire.Time{Sec: 1}})
	}
	return p
}

// endless says the same for ever.
func endless(v any) func(s *wire.Stream) {
	return func(s *wire.Stream) {
		for s.Send(v) == nil {
		}
	}
}

// observing are calls that go on until their context ends, whatever happens to
// the node.
var observing = map[string]func(ctx context.Context, n *Node) error{
	"telemetry": func(ctx context.Context, n *Node) error { return n.Telemetry(ctx, "", nil, func([]byte) {}) },
	"follow": func(ctx context.Context, n *Node) error {
		return n.Follow(ctx, "file", 5, func(off int64, _ []byte) error {
			if off < 5 {
				return fmt.Errorf("bytes from offset %d", off)
			}
			return nil
		})
	},
	"watch": func(ctx context.Context, n *Node) error {
		return n.WatchRun(ctx, "run-1", 0, func(int64, Status) error { return nil })
	},
	"metric files": func(ctx context.Context, n *Node) error {
		return n.MetricFiles(ctx, wire.FilesRequest{}, func(wire.FilesNews) error { return nil })
	},
}

// Moving are calls that bring files there or back, in what number; dir is a
// directory here. They stand above this package, whose external test gives them.
var Moving = map[string]func(ctx context.Context, n *Node, dir string) (files int, err error){}

// overPipe is a machine on which a command was started already: what this
// process reads and writes is the agent.
type overPipe struct {
	once sync.Once
	done chan struct{}
	why  error
}

var servedWords = regexp.MustCompile(`serve (\w+) (\w+)`)

func (m *overPipe) Start(_ context.Context, line string) (transport.Command, error) {
	words := servedWords.FindStringSubmatch(line)
	if words == nil {
		return nil, fmt.Errorf("there are no words in %q", line)
	}
	hello := strings.NewReader("Welcome\n" + wire.Hello(words[1], words[2]))
	return pipeCommand{io.MultiReader(hello, os.Stdin), os.Stdout}, nil
}

func (m *overPipe) Kill(why error) {
	m.once.Do(func() {
		m.why = why
		close(m.done)
		_ = os.Stdin.Close()
		_ = os.Stdout.Close()
	})
}

func (m *overPipe) Done() <-chan struct{} { return m.done }
func (m *overPipe) Err() error            { return m.why }

type pipeCommand struct {
	io.Reader
	io.Writer
}

func (pipeCommand) Close() error { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }
func (pipeCommand) Said() string { return "" }

// TestLiarsCaller is the caller of a liar, in a process of its own.
func TestLiarsCaller(t *testing.T) {
	if os.Getenv("DLWB_TEST_LIAR") == "" {
		t.Skip("it is started by another test")
	}
	opened := false
	n := OpenOver("node0", func(context.Context) (transport.Machine, error) {
		if opened {
			return nil, errors.New("it is gone")
		}
		opened = true
		return &overPipe{done: make(chan struct{})}, nil
	})
	n.bounds = shortBounds
	before := mostMemory(t)
	var group sync.WaitGroup
	late := func(name string, limit time.Duration, do func(ctx context.Context)) {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			do(ctx)
			if took := time.Since(began); took > limit+longEnough {
				fmt.Fprintf(os.Stderr, "late: %s took %v\n", name, took)
			}
		})
	}
	patience, err := time.ParseDuration(os.Getenv("DLWB_TEST_LIAR"))
	check(t, err)
	for range 2 {
		for _, c := range calls {
			late(c.name, patience, func(ctx context.Context) { _ = c.call(ctx, n) })
		}
		for name, call := range observing {
			late(name, patience, func(ctx context.Context) { _ = call(ctx, n) })
		}
		late("a connection that nobody reads", patience, func(ctx context.Context) {
			if conn, err := n.DialContext(ctx, "tcp", "127.0.0.1:1"); err == nil {
				<-ctx.Done()
				_ = conn.Close()
			}
		})
	}
	dir := t.TempDir()
	check(t, os.WriteFile(dir+"/file", bytes.Repeat([]byte("x"), 1<<20), 0o600))
	group.Wait()
	if len(Moving) == 0 {
		t.Fatal("there are no calls that move files")
	}
	for name, call := range Moving { // a node is asked for files once at a time
		late(name, patience, func(ctx context.Context) { _, _ = call(ctx, n, dir) })
		group.Wait()
	}
	_ = n.Close()
	fmt.Fprintf(os.Stderr, "cost %d\n", mostMemory(t)-before)
	os.Exit(0)
}

// mostMemory is the most memory that this process ever had.
func mostMemory(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	check(t, err)
	var kb int
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscan(rest, &kb)
	check(t, err)
	return kb << 10
}

func TestALyingAgentHoldsNoCallUpAndCostsLittle(t *testing.T) {
	patience := fmt.Sprintf("%ds", sample.Of(t, 1, 3, "seconds of each lie"))
	for name, lie := range lies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cost := costOf(t, patience, lie)
			t.Logf("%d MB", cost>>20)
			if cost > raceCosts*50<<20 {
				t.Errorf("it cost %d MB", cost>>20)
			}
		})
	}
}

// costOf is the most memory that a lie costs who calls the liar, in bytes.
func costOf(t *testing.T, patience string, lie func(*wire.Stream)) (cost int) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^TestLiarsCaller$")
	// It ends by os.Exit, which removes no directories of its own.
	c.Env = append(os.Environ(), "DLWB_TEST_LIAR="+patience, "TMPDIR="+t.TempDir())
	var said bytes.Buffer
	c.Stderr = &said
	in, err := c.StdinPipe()
	check(t, err)
	out, err := c.StdoutPipe()
	check(t, err)
	check(t, c.Start())
	session, err := wire.Answer(liarsEnd{bufio.NewReader(out), in})
	check(t, err)
	go lieOn(session, func(_ string, s *wire.Stream) { lie(s) })
	late := time.AfterFunc(2*time.Minute, func() { _ = c.Process.Kill() })
	defer late.Stop()
	if err := c.Wait(); err != nil {
		t.Fatalf("the caller ended with %v: %s", err, &said)
	}
	_ = session.Close()
	at := strings.LastIndex(said.String(), "cost ")
	if _, err := fmt.Sscanf(said.String()[max(0, at):], "cost %d", &cost); err != nil || strings.Contains(said.String(), "late:") {
		t.Fatalf("the caller said %q", &said)
	}
	return cost
}

// lieOn answers each call whose service and request were received.
func lieOn(session *wire.Session, lie func(service string, s *wire.Stream)) {
	for {
		s, err := session.Accept()
		if err != nil {
			return
		}
		go func() {
			defer s.Close()
			var service string
			var request any
			if s.Recv(&service) == nil && s.Recv(&request) == nil {
				lie(service, s)
			}
		}()
	}
}

type liarsEnd struct {
	io.Reader
	io.WriteCloser
}
