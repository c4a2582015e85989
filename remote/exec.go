package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/remote/wire"
)

const (
	// captureMost is how much of an output is kept when no writer is given.
	captureMost = 1 << 20
)

// Cmd is a command line of POSIX sh. It begins in the user's home, with the
// environment that the user's login shell gives to commands over ssh.
type Cmd struct {
	Line  string
	Stdin io.Reader // nil: empty
	// Stdout and Stderr get the output as it comes; what has no writer is
	// captured in the Result, up to 1 MiB.
	Stdout, Stderr io.Writer
	// Quiet is how long the command may be silent: say nothing, and take
	// nothing of its input. 0: Bounds.Quiet. A command of the user's own, and one
	// that may work for hours without a word, has NoLimit.
	Quiet time.Duration
}

// NoLimit is the Quiet of a command that may be silent for as long as it likes:
// it ends with its context, and with the connection.
const NoLimit time.Duration = -1

// quiet is Quiet as it counts; 0: there is no limit.
func (c Cmd) quiet(standard time.Duration) time.Duration {
	switch {
	case c.Quiet == 0:
		return standard
	case c.Quiet < 0:
		return 0
	}
	return c.Quiet
}

// Result is how a command ended.
type Result struct {
	ExitCode       int    // 128+n after a signal, as a shell says it
	Signal         string // "KILL"; empty when it exited by itself
	Stdout, Stderr []byte
	// Truncated says that captured output was longer than what was kept.
	Truncated bool
}

// Exec runs a command and waits for it. A non-zero exit is no error; an error
// means that the command could not be started, or that its end is unknown.
// When ctx ends, the command and what it started get TERM, and later KILL. A
// Stdin that blocks in Read is left behind, as nothing can interrupt it.
func (n *Node) Exec(ctx context.Context, c Cmd) (Result, error) {
	what := fmt.Sprintf("run %q", brief(c.Line))
	st, l, err := n.callOn(ctx, wire.Exec, wire.ExecRequest{Line: c.Line, Input: c.Stdin != nil})
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	outs := outputsOf(c)
	go feed(st, c.Stdin, outs.heard)
	res, err := n.finish(ctx, c, execution{st, l, what}, outs)
	outs.shut()
	return res, err
}

// execution is a command that was given to the agent.
type execution struct {
	*wire.Stream
	link *link
	what string
}

// finish waits for the end of a command, within its bounds.
func (n *Node) finish(ctx context.Context, c Cmd, e execution, outs outputs) (Result, error) {
	defer waits.Begin(waits.Wait{On: n.target.Name, What: "to end " + brief(c.Line)})()
	defer e.Reset()
	type end struct {
		exit *wire.Exit
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		exit, err := outs.receive(e.Stream)
		ended <- end{exit, err}
	}()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	res := Result{ExitCode: -1}
	for {
		select {
		case over := <-ended:
			if over.err == nil {
				res = outs.result()
				res.ExitCode, res.Signal = over.exit.Code, signalNames[over.exit.Signal]
			}
			return res, n.callError(e.what, e.link, over.err)
		case <-look.C:
			if limit := c.quiet(n.bounds.Quiet); limit > 0 && outs.quiet() > limit {
				return res, n.wrap(e.what, fmt.Errorf("it was silent for %v", limit))
			}
		case <-ctx.Done():
			return res, n.wrap(e.what, context.Cause(ctx))
		}
	}
}

// feed sends a command its input.
func feed(st *wire.Stream, from io.Reader, heard *atomic.Int64) {
	if from == nil {
		return
	}
	buf := make([]byte, wire.ChunkMost)
	for {
		n, err := from.Read(buf)
		if n > 0 && st.Send(wire.ExecInput{Data: buf[:n]}) != nil {
			return // it has ended, or does not want the rest
		}
		heard.Store(time.Now().UnixNano())
		if err != nil {
			_ = st.Send(wire.ExecInput{End: true})
			return
		}
	}
}

// signalNames are those that are the same on every system.
var signalNames = map[int]string{
	1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 8: "FPE",
	9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM",
}

// brief cuts a command line for an error text.
func brief(line string) string {
	line = strings.Join(strings.Fields(line), " ")
	if r := []rune(line); len(r) > 80 {
		return string(r[:79]) + "…"
	}
	return line
}

// outputs are where a command's output goes.
type outputs struct {
	stdout, stderr *gate
	heard          *atomic.Int64 // when something last came or was taken
}

func outputsOf(c Cmd) outputs {
	heard := &atomic.Int64{}
	heard.Store(time.Now().UnixNano())
	return outputs{gateTo(c.Stdout, heard), gateTo(c.Stderr, heard), heard}
}

// quiet is for how long nothing has come.
func (o outputs) quiet() time.Duration {
	return time.Duration(time.Now().UnixNano() - o.heard.Load())
}

// receive takes what a command gives, until its end.
func (o outputs) receive(st *wire.Stream) (*wire.Exit, error) {
	for {
		var m wire.ExecOutput
		if err := st.Recv(&m); err != nil {
			return nil, err
		}
		if m.Exit != nil {
			return m.Exit, nil
		}
		for _, part := range []struct {
			to   *gate
			data []byte
		}{{o.stdout, m.Out}, {o.stderr, m.Err}} {
			if len(part.data) == 0 {
				continue
			}
			if _, err := part.to.Write(part.data); err != nil {
				return nil, &takeError{err}
			}
		}
	}
}

// takeError is one of whoever takes a command's output.
type takeError struct{ error }

func (e *takeError) Unwrap() error { return e.error }

func (o outputs) shut() {
	o.stdout.shut()
	o.stderr.shut()
}

func (o outputs) result() Result {
	return Result{
		Stdout: o.stdout.captured(), Stderr: o.stderr.captured(),
		Truncated: o.stdout.truncated || o.stderr.truncated,
	}
}

// gate passes output on until it is shut: after Exec has returned, nothing
// touches the caller's writers. Without a writer it captures.
type gate struct {
	mu        sync.Mutex
	to        io.Writer
	buf       *bytes.Buffer
	truncated bool
	closed    bool
	heard     *atomic.Int64
}

func gateTo(w io.Writer, heard *atomic.Int64) *gate {
	if w == nil {
		return &gate{buf: new(bytes.Buffer), heard: heard}
	}
	return &gate{to: w, heard: heard}
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard.Store(time.Now().UnixNano())
	switch {
	case g.closed:
		return len(p), nil
	case g.to != nil:
		return g.to.Write(p)
	}
	keep := min(len(p), captureMost-g.buf.Len())
	g.buf.Write(p[:keep])
	g.truncated = g.truncated || keep < len(p)
	return len(p), nil
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) captured() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.buf == nil {
		return nil
	}
	return g.buf.Bytes()
}
