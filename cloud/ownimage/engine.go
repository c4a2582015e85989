package ownimage

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/apart"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/waits"
)

const (
	docker = "docker"
	podman = "podman"
)

// engine is the program that builds and pushes.
type engine struct {
	name string // docker or podman
	path string
}

// How long a question to an engine whether it answers may take: what only looks has not
// long, and does not take one that is slow, as any is on a busy machine, for one that is
// not there.
const (
	askLimit  = time.Minute
	lookLimit = 8 * time.Second
)

// answering is the first of docker and podman that answers here. One that is there and
// does not is told.
func answering(ctx context.Context, limit time.Duration) (engine, error) {
	var mute []string
	late := false
	for _, name := range []string{docker, podman} {
		at, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		e := engine{name, at}
		said, err := e.ask(ctx, limit, "version", "--format", "{{.Client.Version}}")
		if err == nil {
			said, err = e.ask(ctx, limit, "info")
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return engine{}, ctx.Err()
		}
		if err != nil {
			mute, late = append(mute, name+": "+said), late || errors.Is(err, context.DeadlineExceeded)
			continue
		}
		// What is called docker may be podman.
		if said, _ := e.ask(ctx, limit, "--version"); strings.Contains(strings.ToLower(said), podman) {
			e.name = podman
		}
		return e, nil
	}
	if len(mute) > 0 {
		return engine{}, &Error{Why: "neither docker nor podman answers on this machine: " + strings.Join(mute, "; "), late: late,
			Next: "start its service, or let your user use it (sudo usermod -aG docker USER, then a new login)"}
	}
	return engine{}, &Error{Why: "the image of a Dockerfile is built here, and there is neither docker nor podman on this machine",
		Next: "install one of them, or name an image that exists (machines.image)"}
}

// ask gives the last line of what an engine says.
func (e engine) ask(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	out, errs, err := waits.Output(ctx, waits.Wait{On: e.name, What: "to answer", Limit: limit}, nil, e.path, args...)
	text := strings.TrimSpace(string(out))
	if err != nil {
		if text = strings.TrimSpace(string(errs)); text == "" {
			text = err.Error()
		}
	}
	return readable(text[strings.LastIndexByte(text, '\n')+1:]), err
}

// endGrace is how long an engine has to end what it runs when it is to end.
const endGrace = 10 * time.Second

// call is one program of an engine.
type call struct {
	what  string // "to build the image"
	limit time.Duration
	dir   string
	env   []string // besides this process's
	stdin string
	args  []string
	tell  func(line string)
}

// run runs a program until its end and gives its last lines. It is in a session of its
// own: Ctrl-C is for dlwb, which ends it, and with it what it has started.
func (e engine) run(ctx context.Context, c call) (last []string, err error) {
	ctx, cancel := waits.Within(ctx, waits.Wait{On: e.name, What: c.what, Limit: c.limit})
	defer cancel()
	cmd := exec.CommandContext(ctx, e.path, c.args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, append(os.Environ(), c.env...), strings.NewReader(c.stdin)
	apart.Set(cmd)
	out := &lineWriter{tell: c.tell}
	cmd.Stdout, cmd.Stderr = out, out // the same one: exec writes from one goroutine
	cmd.Cancel = func() error {
		apart.HangUp(cmd)
		return os.ErrProcessDone // what the program itself says of its end counts
	}
	cmd.WaitDelay = endGrace
	err = cmd.Run()
	if out.flush(); ctx.Err() != nil && cmd.Process != nil {
		apart.Kill(cmd) // what it has started and left
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return out.last, err
}

// lineWriter takes the output of a program apart into lines. A line that is written over
// (\r) is one, and no line is longer than mostLine.
type lineWriter struct {
	tell func(string)
	part []byte
	last []string
}

const (
	mostLine  = 4 << 10
	mostLines = 30
)

func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		at := bytes.IndexAny(b, "\r\n")
		piece := b
		if at >= 0 {
			piece = b[:at]
		}
		w.part = append(w.part, piece[:min(len(piece), mostLine-len(w.part))]...)
		if at < 0 {
			break
		}
		w.flush()
		b = b[at+1:]
	}
	return n, nil
}

func (w *lineWriter) flush() {
	line := readable(strings.TrimSpace(string(w.part)))
	w.part = w.part[:0]
	if line == "" {
		return
	}
	if w.last = append(w.last, line); len(w.last) > mostLines {
		w.last = w.last[1:]
	}
	if w.tell != nil {
		w.tell(line)
	}
}

// credentials are what an address may hold in front of its host.
var credentials = pattern.New(`(https?://)[^/@\s]+@`)

// readable is a line without anybody's password.
func readable(line string) string { return credentials.ReplaceAllString(line, "$1****@") }

// code is the exit code of a program; -1: it has none.
func code(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}
