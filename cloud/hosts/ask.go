package hosts

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/crash"
	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/internal/waits"
)

// hostMode is what the agent is started as.
const hostMode = "host"

// bringLimit is how long the agent may be on its way, over a slow line.
const bringLimit = 5 * time.Minute

// ask asks the agent on a host: the one that is there, or one that is brought for
// this question alone and is gone again before it answers.
func (c *contact) ask(ctx context.Context, r hostclaim.Request, limit time.Duration) (hostclaim.Answer, error) {
	defer waits.Begin(waits.Wait{On: c.Alias, What: "to answer a question about itself", Limit: limit})()
	request, err := hostclaim.Encode(r)
	if err != nil {
		return hostclaim.Answer{}, err
	}
	for names := agentbin.Names(); ; names = nil {
		w := newWords()
		got := c.command(ctx, agentbin.FindLine(names, hostMode, w), limit, answered(w, agentbin.None), request)
		if none, is := reported(got.out, w, agentbin.None); is {
			return c.bring(ctx, r, append(strings.Fields(none), "", ""), limit)
		}
		a, err := got.answer(w)
		if len(names) == 0 || err == nil || a.Failed != "" || got.err != nil && !endedBadly(got.err) {
			return a, err
		}
		// The file of the agent there was cut short or altered: another is brought.
	}
}

// bring asks with an agent that is brought, from the first place where it can be
// executed. machine is what uname says there, and gzip where that is there.
func (c *contact) bring(ctx context.Context, r hostclaim.Request, machine []string, limit time.Duration) (hostclaim.Answer, error) {
	agent, err := agentbin.For(agentbin.Machine(machine[0], machine[1]))
	if err != nil {
		return hostclaim.Answer{}, err
	}
	r.Agent = agent.Name
	request, err := hostclaim.Encode(r)
	if err != nil {
		return hostclaim.Answer{}, err
	}
	zip := machine[2] == "gzip"
	program := agent.Gzip
	if !zip {
		if program, err = agent.Plain(); err != nil {
			return hostclaim.Answer{}, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit+bringLimit, &waits.LateError{Wait: waits.Wait{On: c.Alias, Limit: limit + bringLimit}})
	defer cancel()
	var failed noPlaceError
	for _, place := range agentbin.Moments {
		w := newWords()
		line := agentbin.OnceLine(agent, place, hostMode, agentbin.Source{Size: len(program), Gzip: zip}, w)
		got := c.command(ctx, line, limit, answered(w, agentbin.Cant), program, request)
		why, cant := reported(got.out, w, agentbin.Cant)
		if !cant {
			return got.answer(w)
		}
		if limit, is := crash.Why(got.complaints); is {
			failed.limit = limit
			break // a limit holds in every place
		}
		failed.tried = append(failed.tried, place+" ("+agentbin.Why(why, got.complaints)+")")
	}
	return hostclaim.Answer{}, &failed
}

// noPlaceError says that a host has no place for the agent, or ends it by a limit of
// the login wherever it lies.
type noPlaceError struct {
	tried []string
	limit string
}

// Error names the limit, or the places.
func (e *noPlaceError) Error() string {
	if e.limit != "" {
		return "a program of dlwb's does not run: " + e.limit
	}
	return "a program of dlwb's can be executed in none of its directories: " + strings.Join(e.tried, ", ")
}

func newWords() agentbin.Words {
	text := rand.Text()
	return agentbin.Words{First: text[:10], Second: text[10:20]}
}

// reported finds a report of a command line's, and gives what it says.
func reported(out []byte, w agentbin.Words, kind string) (string, bool) {
	_, rest, found := bytes.Cut(out, []byte(w.Report(kind)))
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	return string(text), found
}

// printed is what a command on a host printed, and why that may not be all.
type printed struct {
	out        []byte
	complaints string
	err        error
}

// answer finds the agent's answer.
func (p printed) answer(w agentbin.Words) (hostclaim.Answer, error) {
	a, err := hostclaim.FindAnswer(p.out, hostclaim.Mark(w.First, w.Second))
	var late *waits.LateError
	switch {
	case err == nil && a.Failed != "":
		return a, errors.New(a.Failed)
	case err == nil, !errors.Is(err, hostclaim.ErrNoAnswer):
		return a, err
	case errors.As(p.err, &late) && late.Wait.What == "":
		err = fmt.Errorf("it did not answer within %v", late.Wait.Limit)
	case errors.As(p.err, &late):
		err = fmt.Errorf("it lets us in and does not answer when it is asked %s within %v", late.Wait.What, late.Wait.Limit)
	case strings.TrimSpace(p.complaints) != "":
		err = errors.New(lastLine(p.complaints))
	case len(bytes.TrimSpace(p.out)) > 0 && p.ended(): // what stands in place of a shell says why
		err = fmt.Errorf("it says %q", lastLine(string(p.out)))
	case p.err != nil:
		err = p.err
	default:
		err = errors.New("the command ended without a word")
	}
	return a, err
}

// ended reports whether the command came to its end by itself.
func (p printed) ended() bool { return p.err == nil || endedBadly(p.err) }

// answered tells an output in which the agent has answered, or a report of a kind says
// that there is none to answer: nothing that is wanted comes after that.
func answered(w agentbin.Words, kind string) func(out []byte) bool {
	return func(out []byte) bool {
		if _, is := reported(out, w, kind); is {
			return true
		}
		_, err := hostclaim.FindAnswer(out, hostclaim.Mark(w.First, w.Second))
		return err == nil
	}
}

// quiet is how long nothing more has to come before an output counts as whole.
const quiet = 500 * time.Millisecond

// errWhole ends the wait for a command that has said all that it was asked.
var errWhole = errors.New("it has said what it was asked")

// command runs a command line on the host and gives it input, of which the parts are
// the same for hundreds of hosts and are not copied for each. limit is how long
// it may take once it has taken all of its input, and between two parts of that:
// how long a program takes on its way is the line's affair. An output that is whole ends
// the wait, too: a session ends when nobody holds its output any more, and what a login
// shell has left in the background (an agent for keys, a daemon) holds it for ever.
func (c *contact) command(ctx context.Context, line string, limit time.Duration, whole func(out []byte) bool, input ...[]byte) (p printed) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		if errors.Is(p.err, errWhole) {
			p.err = nil
		}
	}()
	timer := time.AfterFunc(limit, func() { cancel(&waits.LateError{Wait: waits.Wait{On: c.Alias, Limit: limit}}) })
	defer timer.Stop()
	if c.held != nil {
		return c.commandHeld(ctx, line, slices.Concat(input...))
	}
	out := newCapped(func(text []byte) {
		if whole(text) {
			cancel(errWhole)
		}
	})
	defer out.silence.Stop()
	if c.own.Name != "" {
		return c.commandOwn(ctx, line, func() { timer.Reset(limit) }, input, out)
	}
	session, err := c.client.NextSession(ctx)
	if err != nil {
		return printed{err: fmt.Errorf("open an ssh session: %w", err)}
	}
	defer session.Close()
	over := make(chan struct{})
	out.full = sync.OnceFunc(func() { close(over) })
	errs := capped{full: func() {}}
	parts := make([]io.Reader, len(input))
	for i, part := range input {
		parts[i] = bytes.NewReader(part)
	}
	session.Streams(&taken{io.MultiReader(parts...), func() { timer.Reset(limit) }}, out, &errs)
	if err := session.Start(ctx, line); err != nil {
		return printed{err: fmt.Errorf("start a command: %w", err)}
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait(ctx) }()
	select {
	case err = <-done:
	case <-over: // the answer, which comes last, can't come any more
		err = fmt.Errorf("it said more than %s, and not what it was asked", units.Bytes(hostclaim.AnswerMost))
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var missing *ssh.ExitError
	if errors.As(err, &missing) && missing.ExitStatus() == 127 {
		err = errors.New("there is no /bin/sh")
	}
	return printed{out.bytes(), string(errs.bytes()), err}
}

// taken tells when a part of what it reads is taken.
type taken struct {
	io.Reader
	tell func()
}

// Read takes the next part.
func (t *taken) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if n > 0 {
		t.tell()
	}
	return n, err
}

// capped keeps the first bytes that are written to it, and calls full when there
// are more.
type capped struct {
	full    func()
	silence *time.Timer // runs out when nothing has come for a while; may be nil

	mu   sync.Mutex
	kept []byte
}

// newCapped tells what has been written each time that nothing more came for a while.
func newCapped(look func(text []byte)) *capped {
	c := &capped{}
	c.silence = time.AfterFunc(time.Hour, func() { look(c.bytes()) })
	c.silence.Stop() // nothing has come
	return c
}

// Write takes the next bytes.
func (c *capped) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := hostclaim.AnswerMost - len(c.kept)
	c.kept = append(c.kept, p[:min(len(p), room)]...)
	if len(p) > room {
		c.full()
	}
	if c.silence != nil {
		c.silence.Reset(quiet)
	}
	return len(p), nil
}

// bytes are what was kept.
func (c *capped) bytes() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Clone(c.kept)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	return strings.ToValidUTF8(last[:min(len(last), 300)], "")
}
