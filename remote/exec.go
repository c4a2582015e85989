package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/waits"
)

const (
	// captureMost is how much of an output is kept when no writer is given.
	captureMost = 1 << 20
	// How long a cancelled command has after TERM, and after KILL.
	termGrace = 3 * time.Second
	killGrace = time.Second
	// cancelWait is how long Exec stays to see a cancelled command end.
	cancelWait = 300 * time.Millisecond
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

const (
	// transferLimit is for files on their way: some of them always come.
	transferLimit = 10 * time.Minute
	// hashLimit is for what reads files there and tells of them afterwards: one
	// of a terabyte takes long.
	hashLimit = 60 * time.Minute
)

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
// When ctx ends, the command gets TERM, later KILL, and its session is closed.
// A Stdin that blocks in Read is left behind, as nothing can interrupt it.
func (n *Node) Exec(ctx context.Context, c Cmd) (Result, error) {
	defer n.waitAgain()
	if w := n.takeWaiting(c); w != nil {
		if res, ran, err := n.execWaiting(ctx, w, c); ran {
			return res, err
		}
	}
	what := fmt.Sprintf("run %q", brief(c.Line))
	s, err := n.session(ctx, false)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	outs := outputsOf(c)
	lead := &leader{to: outs.stdout}
	s.Streams(outs.hearing(c.Stdin), lead, outs.stderr)
	ended := make(chan struct{})
	var started bool
	go func() {
		defer close(ended)
		if err = s.Start(ctx, led(c.Line)); err == nil {
			started = true
			err = s.Wait(context.Background()) // ends with the connection
		}
		lead.flush()
		s.free()
	}()
	if why := n.await(ctx, c, s, lead, outs, ended); why != nil {
		outs.shut()
		return Result{ExitCode: -1}, n.wrap(what, why)
	}
	return n.outcome(what, s.link, outs, started, err)
}

// await waits for the end of a command, within its bounds: the shell has to
// begin it, and it has to end. One that does not is wound down, and why says so.
func (n *Node) await(ctx context.Context, c Cmd, s *session, lead *leader, outs outputs, ended <-chan struct{}) (why error) {
	defer waits.Begin(waits.Wait{On: n.target.Name, What: "to end " + brief(c.Line)})()
	began := time.Now()
	look := time.NewTicker(min(time.Second, n.timing.shellLimit/4))
	defer look.Stop()
	for why == nil {
		select {
		case <-ended:
			return nil
		case <-look.C:
			why = n.silence(c, time.Since(began), lead, outs)
		case <-ctx.Done():
			why = context.Cause(ctx)
		}
	}
	go n.windDown(s, lead, ended)
	select {
	case <-ended:
	case <-time.After(cancelWait):
	}
	return why
}

// silence says why a command is waited for no longer; nil: it still is.
func (n *Node) silence(c Cmd, after time.Duration, lead *leader, outs outputs) error {
	switch limit := c.quiet(n.timing.bounds.Quiet); {
	case !lead.begun() && after > n.timing.shellLimit:
		return fmt.Errorf("the shell there did not begin the command within %v: what it does first hangs; is the home directory there?", n.timing.shellLimit)
	case limit > 0 && after > limit && outs.quiet() > limit:
		return fmt.Errorf("it was silent for %v", limit)
	}
	return nil
}

// outcome makes the result of an ended session.
func (n *Node) outcome(what string, l *link, outs outputs, started bool, err error) (Result, error) {
	res := outs.result()
	var exit *ssh.ExitError
	switch {
	case isRefused(err):
		res.ExitCode = -1
		return res, n.wrap(what, err)
	case !started && err != nil, isLost(err):
		res.ExitCode = -1
		return res, &LostError{n.target.Name, what, l.cause(err)}
	case errors.As(err, &exit):
		res.ExitCode, res.Signal = exitOf(exit)
	case err != nil && !errors.Is(err, io.EOF):
		// EOF is a command that ended before it read all of its input.
		return res, n.wrap(what, err)
	}
	return res, nil
}

// isLost reports whether a session ended without telling how.
func isLost(err error) bool {
	var missing *ssh.ExitMissingError
	return errors.As(err, &missing)
}

// isRefused reports whether the server answered that it does not start the
// command; x/crypto has no type for that.
func isRefused(err error) bool {
	return err != nil && slices.ContainsFunc(refusals, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

var refusals = []string{"ssh: command ", "ssh: pty-req failed", "ssh: could not start shell"}

// exitOf gives a shell's exit code, and the signal's name.
func exitOf(e *ssh.ExitError) (code int, signal string) {
	if e.Signal() == "" {
		return e.ExitStatus(), ""
	}
	if number, ok := signalNumbers[e.Signal()]; ok {
		return 128 + number, e.Signal()
	}
	return 128, e.Signal()
}

// signalNumbers are those that are the same on every system.
var signalNumbers = map[string]int{
	"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "FPE": 8,
	"KILL": 9, "SEGV": 11, "PIPE": 13, "ALRM": 14, "TERM": 15,
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
	return outputs{gateTo(c.Stdout, heard), gateTo(c.Stderr, heard), heard}
}

// quiet is for how long nothing has come.
func (o outputs) quiet() time.Duration {
	return time.Duration(time.Now().UnixNano() - o.heard.Load())
}

// hearing notes what is taken of an input; nil stays nil.
func (o outputs) hearing(r io.Reader) io.Reader {
	if r == nil {
		return nil
	}
	return readFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		o.heard.Store(time.Now().UnixNano())
		return n, err
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

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
