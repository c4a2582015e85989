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
	a, err := b.find(ctx, names)
	if isSpoiled(err) {
		a, err = b.find(ctx, nil)
	}
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

func (b boot) find(ctx context.Context, names []string) (began, error) {
	w := newWords()
	return b.start(ctx, agentbin.FindLine(names, "serve", w), w, agentbin.None, nil)
}

// isSpoiled reports whether a line ended before anything began: an agent's file
// that was cut short or altered does that.
func isSpoiled(err error) bool {
	var none *wire.NoHelloError
	return errors.As(err, &none) && errors.Is(none.Err, io.EOF)
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

// putAt brings an agent to one place. The login runs commands, as is known by then:
// one that ends without a word was ended, and may be tried again.
func (b boot) putAt(ctx context.Context, agent *agentbin.Agent, place string, from agentbin.Source, input []byte) (began, error) {
	w := newWords()
	a, err := b.start(ctx, agentbin.PutLine(agent, place, from, w), w, agentbin.Cant, input)
	var none *wire.NoHelloError
	if isSpoiled(err) && errors.As(err, &none) {
		err = &bootLostError{none}
	}
	return a, err
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
	h := &hearing{c: c}
	h.heard.Store(&transport.Tail{})
	h.moved.now()
	h.took.now()
	go b.mind(ctx, cancel, h)
	go func() { _, _ = io.Copy(&movingWriter{c, h}, bytes.NewReader(input)) }()
	in := bufio.NewReaderSize(h, 4<<10)
	type beginning struct {
		report []string // nil: it is the agent
		err    error
	}
	came := make(chan beginning, 1)
	go func() { // a login that hangs may not let go of its output
		report, err := await(in, w, report)
		came <- beginning{report, err}
	}()
	select {
	case <-ctx.Done():
		_ = c.Close()
		b.settle() // what hangs is told so before the connection goes
		return began{}, b.failed("", context.Cause(ctx))
	case r := <-came:
		if r.err == nil && r.report == nil {
			h.heard.Store(nil)
			session, err := wire.Dial(commandConn{in, c})
			return began{session: session}, err
		}
		if r.report != nil && report == agentbin.Cant { // it ends now, and why it could not it says elsewhere
			over := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, in)
				close(over)
			}()
			select {
			case <-over:
			case <-time.After(time.Second):
			}
		}
		_ = c.Close()
		if r.err != nil {
			b.settle()
		}
		return began{words: r.report, said: c.Said()}, b.failed(c.Said(), r.err)
	}
}

// settle waits a moment for the end of the connection: where a command has ended,
// which of them ended first can't be told.
func (b boot) settle() {
	select {
	case <-b.machine.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// await waits for the hello (nil) or for the words of a report.
func await(in *bufio.Reader, w agentbin.Words, report string) ([]string, error) {
	which, err := wire.AwaitHello(in, wire.Hello(w.First, w.Second), w.Report(report))
	if err != nil || which == 0 {
		return nil, err
	}
	text, err := readLine(in)
	return append([]string{}, strings.Fields(text)...), err
}

// hearing is what a command says, of which the beginning is noted.
type hearing struct {
	c     transport.Command
	moved activity                       // it said or took something
	took  activity                       // it was begun, or took something
	heard atomic.Pointer[transport.Tail] // nil: enough is known
}

func (h *hearing) Read(p []byte) (int, error) {
	n, err := h.c.Read(p)
	h.moved.now()
	if t := h.heard.Load(); t != nil {
		_, _ = t.Write(p[:n])
	}
	return n, err
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

// talkMost is how many times the limit of silence a line may talk without taking
// anything: a login that prints a byte now and then hangs too.
const talkMost = 5

// mind gives up a line that neither says nor takes anything for too long.
func (b boot) mind(ctx context.Context, cancel context.CancelCauseFunc, h *hearing) {
	tick := time.NewTicker(min(time.Second, b.limit/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.moved.quiet() > b.limit || h.took.quiet() > talkMost*b.limit {
			cancel(&silentError{b.limit, h.heard.Load().String() + "\n" + h.c.Said()})
			return
		}
	}
}

// silentError says that a command did not begin.
type silentError struct {
	limit time.Duration
	said  string
}

func (e *silentError) Error() string {
	text := fmt.Sprintf("the shell there did not begin the command within %v: what it does first hangs", e.limit)
	if said := endOf(e.said); said != "" {
		text += fmt.Sprintf("; it said %q", said)
	}
	return text
}

// saidMost is how much of what a shell said is told.
const saidMost = 300

// endOf is the end of what was said, in one line.
func endOf(said string) string {
	words := []rune(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(said, "?"), func(r rune) bool {
		return r <= ' ' || r >= 0x7f && r < 0xa0
	}), " "))
	if len(words) > saidMost {
		return "…" + string(words[len(words)-saidMost:])
	}
	return string(words)
}

// failed is why there is no agent: said is what was on the error output.
func (b boot) failed(said string, err error) error {
	var none *wire.NoHelloError
	var missing *agentbin.MissingError
	var silent *silentError
	switch {
	case errors.As(err, &missing):
		return &NoAgentError{Name: b.name, Why: err.Error(), Err: err}
	case errors.As(err, &silent):
		return &NoAgentError{Name: b.name, Why: err.Error(), Err: err,
			Next: "look there at what its login shell runs first (.bashrc, .zshenv, config.fish, .cshrc): without a terminal it may neither wait nor read; is the home directory there?"}
	case isDone(b.machine), !errors.As(err, &none), !errors.Is(none.Err, io.EOF) && !errors.Is(none.Err, wire.ErrEndless):
		return err
	default:
		if said = endOf(said); said == "" {
			said = endOf(string(none.Said))
		}
		if said == "" && errors.Is(none.Err, io.EOF) {
			return &bootLostError{err}
		}
		return &NoAgentError{Name: b.name, Why: fmt.Sprintf("its login shell ran no command: %v; it said %q", none, said),
			Next: "check that commands run there by ssh: ssh HOST true", Err: err}
	}
}

func isDone(m transport.Machine) bool {
	select {
	case <-m.Done():
		return true
	default:
		return false
	}
}

// bootLostError is an end without a word, as of a connection that was lost.
type bootLostError struct{ error }

func (e *bootLostError) Error() string {
	return "the login shell there, or the connection, ended without a word before dlwb's agent began"
}

func (e *bootLostError) Unwrap() error { return e.error }

// activity is when something last happened.
type activity struct{ at atomic.Int64 }

func (a *activity) now()                 { a.at.Store(time.Now().UnixNano()) }
func (a *activity) quiet() time.Duration { return time.Duration(time.Now().UnixNano() - a.at.Load()) }

// movingWriter notes that bytes are taken.
type movingWriter struct {
	to io.Writer
	h  *hearing
}

func (w *movingWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.h.moved.now()
	w.h.took.now()
	return n, err
}

// commandConn is a command as a connection, of which some bytes were read ahead.
type commandConn struct {
	in *bufio.Reader
	transport.Command
}

func (c commandConn) Read(p []byte) (int, error) { return c.in.Read(p) }
