package remote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/remote/transport"
	"github.com/dlwb/dlwb/remote/wire"
)

// NoAgentError says that the agent can't be started on a node although the node
// is reached.
type NoAgentError struct {
	Name string
	Why  string
	Next string
	Err  error // nil: Why is all
}

func (e *NoAgentError) Error() string {
	return fmt.Sprintf("start dlwb's agent on %s: %s", e.Name, e.Why)
}

// Advice is what to do about it.
func (e *NoAgentError) Advice() string { return e.Next }

func (e *NoAgentError) Unwrap() error { return e.Err }

// boot starts the agent over a machine: the one that is there, or the one that
// this brings there.
type boot struct {
	name    string // the node's
	machine transport.Machine
	// upload puts bytes into the file of a name below ~/.dlwb/bin by another
	// way than a command's input; nil: there is none.
	upload func(ctx context.Context, name string, bytes []byte) error
	limit  time.Duration // how long the login shell may be silent
}

// run gives the session with the agent.
func (b boot) run(ctx context.Context) (*wire.Session, error) {
	defer waits.Begin(waits.Wait{On: b.name, What: "to start dlwb's agent"})()
	names := agentbin.Names()
	if len(names) == 0 {
		_, err := agentbin.For("linux", "amd64")
		return nil, b.failed("", err)
	}
	w := newWords()
	a, err := b.start(ctx, agentbin.FindLine(names, "serve", w), w, agentbin.None, nil)
	if err != nil || a.session != nil {
		return a.session, err
	}
	system, processor, tools := a.word(0), a.word(1), a.words
	agent, err := agentbin.For(agentbin.Machine(system, processor))
	if err != nil {
		return nil, b.failed("", err)
	}
	return b.put(ctx, agent, strings.Contains(strings.Join(tools, " "), "gzip"))
}

func newWords() agentbin.Words {
	text := rand.Text()
	return agentbin.Words{First: text[:10], Second: text[10:20]}
}

// put brings an agent to the first place where it can be executed.
func (b boot) put(ctx context.Context, agent *agentbin.Agent, gzip bool) (*wire.Session, error) {
	bytes := agent.Gzip
	if !gzip {
		var err error
		if bytes, err = agent.Plain(); err != nil {
			return nil, err
		}
	}
	var tried []string
	for i, place := range agentbin.Places {
		from := agentbin.Source{Size: len(bytes), Gzip: gzip}
		input := bytes
		if file := fmt.Sprintf(".%s.%s", agent.Name, newWords().First); i == 0 && b.upload != nil && b.upload(ctx, file, bytes) == nil {
			from.File, input = agentbin.Places[0]+"/"+file, nil
		}
		a, err := b.putAt(ctx, agent, place, from, input)
		if err == nil && a.session == nil && from.File != "" { // it was put where the shell does not see it
			from.File = ""
			a, err = b.putAt(ctx, agent, place, from, bytes)
		}
		if err != nil || a.session != nil {
			return a.session, err
		}
		tried = append(tried, fmt.Sprintf("%s: %s", showPlace(place), agentbin.Why(a.word(0), a.said)))
	}
	return nil, &NoAgentError{Name: b.name, Why: "there is no place where it can be put and executed: " + strings.Join(tried, "; "),
		Next: "dlwb needs a directory there in which the user may write and execute a program of a few megabytes: free some space, or have the home mounted without noexec"}
}

// putAt brings an agent to one place.
func (b boot) putAt(ctx context.Context, agent *agentbin.Agent, place string, from agentbin.Source, input []byte) (began, error) {
	w := newWords()
	return b.start(ctx, agentbin.PutLine(agent, place, from, w), w, agentbin.Cant, input)
}

// showPlace is a place for people.
func showPlace(place string) string {
	return strings.NewReplacer("$HOME", "~", "$(id -u)", "UID").Replace(place)
}

// began is what a command line came to: a session, or a report.
type began struct {
	session *wire.Session
	words   []string // of the report
	said    string   // on the error output
}

func (a began) word(i int) string {
	if i < len(a.words) {
		return a.words[i]
	}
	return ""
}

// start runs a line that becomes an agent or prints a report.
func (b boot) start(ctx context.Context, line string, w agentbin.Words, report string, input []byte) (began, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := b.machine.Start(ctx, line)
	if err != nil {
		return began{}, b.failed("", err)
	}
	moved := &activity{}
	moved.now()
	go b.mind(ctx, cancel, moved)
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	in := bufio.NewReaderSize(readFunc(func(p []byte) (int, error) {
		n, err := c.Read(p)
		moved.now()
		return n, err
	}), 4<<10)
	go func() { _, _ = io.Copy(&movingWriter{c, moved}, bytes.NewReader(input)) }()
	which, err := wire.AwaitHello(in, wire.Hello(w.First, w.Second), w.Report(report))
	if err == nil && which == 1 {
		var text string
		text, err = readLine(in)
		stop()
		_ = c.Close()
		return began{words: strings.Fields(text), said: c.Said()}, err
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = c.Close()
		return began{}, b.failed(c.Said(), err)
	}
	session, err := wire.Dial(commandConn{in, c})
	return began{session: session}, err
}

// reportMost bounds the rest of a report's line.
const reportMost = 1 << 10

func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for range reportMost {
		b, err := r.ReadByte()
		if err != nil || b == '\n' {
			return string(line), err
		}
		line = append(line, b)
	}
	return "", errors.New("the node's answer is too long")
}

// mind gives up a line that neither says nor takes anything for too long.
func (b boot) mind(ctx context.Context, cancel context.CancelCauseFunc, moved *activity) {
	tick := time.NewTicker(min(time.Second, b.limit/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if moved.quiet() > b.limit {
			cancel(fmt.Errorf("the shell there did not begin the command within %v: what it does first hangs; is the home directory there?", b.limit))
			return
		}
	}
}

// failed is why there is no agent: said is what was on the error output.
func (b boot) failed(said string, err error) error {
	var none *wire.NoHelloError
	var missing *agentbin.MissingError
	switch {
	case errors.As(err, &missing):
		return &NoAgentError{Name: b.name, Why: err.Error(), Err: err}
	case errors.As(err, &none) && errors.Is(none.Err, io.EOF):
		if said = lastWords([]byte(said)); said == "" {
			said = lastWords(none.Said)
		}
		if said == "" {
			return &bootLostError{err}
		}
		return &NoAgentError{Name: b.name, Why: "its login shell ran no command: it said " + fmt.Sprintf("%.300q", said),
			Next: "check that commands run there by ssh: ssh HOST true", Err: err}
	}
	return err
}

// bootLostError is an end without a word, as of a connection that was lost.
type bootLostError struct{ error }

func (e *bootLostError) Unwrap() error { return e.error }

// activity is when something last happened.
type activity struct{ at atomic.Int64 }

func (a *activity) now()                 { a.at.Store(time.Now().UnixNano()) }
func (a *activity) quiet() time.Duration { return time.Duration(time.Now().UnixNano() - a.at.Load()) }

// movingWriter notes that bytes are taken.
type movingWriter struct {
	to    io.Writer
	moved *activity
}

func (w *movingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.moved.now()
	return n, err
}

// commandConn is a command as a connection, of which some bytes were read ahead.
type commandConn struct {
	in *bufio.Reader
	transport.Command
}

func (c commandConn) Read(p []byte) (int, error) { return c.in.Read(p) }
