package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/dlwb/dlwb/cli/console"
	"github.com/dlwb/dlwb/cli/openline"
	"github.com/dlwb/dlwb/sanitize"
)

// door is the one way out to a terminal. What nodes, files and clouds say may
// hold anything; whoever prints writes to out, err or colours and need not think
// of it. The streams behind are named in this file only.
type door struct {
	out, err io.Writer // printable text, newline, tab
	colours  io.Writer // to where out goes, with SGR: what a rank or a node's command printed

	stdout, stderr io.Writer // what is behind
	all            []*sanitize.Writer
}

func newDoor(stdout, stderr io.Writer) door {
	out, err, colours := sanitize.NewWriter(stdout), sanitize.NewWriter(stderr), sanitize.NewColourWriter(stdout)
	return door{out: out, err: err, colours: colours, stdout: stdout, stderr: stderr, all: []*sanitize.Writer{out, err, colours}}
}

// close writes what the last texts owe. The door can be used afterwards.
func (d *door) close() (err error) {
	for _, w := range d.all {
		err = errors.Join(err, w.Close())
	}
	return err
}

// lost is why output is missing where it went; nil: all is there, or nobody reads it.
func (d *door) lost() (err error) {
	for _, w := range d.all {
		if e := w.Lost(); e != nil && w != d.err && !unread(e) {
			err = fmt.Errorf("output is missing: %w", e)
		}
	}
	return err
}

// encode writes a line of JSON.
func (d *door) encode(v any) error { return sanitize.WriteJSON(d.out, v) }

// terminal is the terminal that standard output is; nil when it is none. The
// screen and the shell of a node own it while they run: the screen sanitizes its
// frames, the shell is passed through as ssh does.
func (d *door) terminal() *os.File {
	f, ok := d.stdout.(*os.File)
	if ok && term.IsTerminal(f.Fd()) {
		return f
	}
	return nil
}

// screenOff undoes what a screen may have set in the terminal: mouse, pasting,
// keyboard, synchronized output, cursor, colours, the other screen.
const screenOff = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1004l\x1b[<u\x1b[?2026l\x1b[?25h\x1b[m\x1b[?1049l"

// leaveScreen gives the terminal back from a screen that can't do so itself.
func (d *door) leaveScreen() {
	if to := d.terminal(); to != nil {
		_, _ = io.WriteString(to, screenOff)
	}
}

// openLine is the line of the terminal that is written over; nil: standard output is
// none that can do that, or programs read it.
func (d *door) openLine(json bool) *openline.Line {
	to := d.terminal()
	if to == nil || json || console.Dumb() {
		return nil
	}
	wipe := func() { _, _ = io.WriteString(to, "\r\x1b[K") }
	return &openline.Line{Out: d.out, Wipe: wipe, Width: func() int {
		if columns, _, err := term.GetSize(to.Fd()); err == nil {
			return columns
		}
		return 80
	}}
}

// questions reports whether what is written to err is seen by somebody.
func (d *door) questions() bool {
	f, ok := d.stderr.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}

// exact is standard output for bytes that are wanted as they are, by a file or a
// program. A terminal, which would obey them, gets none.
func (d *door) exact(what, instead string) (io.Writer, error) {
	if d.terminal() != nil {
		return nil, usageError{fmt.Errorf("%s would be obeyed by this terminal; %s", what, instead)}
	}
	return d.stdout, nil
}

// passed are the streams for a command on a node: as they are for a file or a
// program, as safe text with colours where a terminal is.
func (d *door) passed() (out, err io.Writer) {
	return d.passedTo(d.stdout), d.passedTo(d.stderr)
}

func (d *door) passedTo(to io.Writer) io.Writer {
	if f, ok := to.(*os.File); !ok || !term.IsTerminal(f.Fd()) {
		return to
	}
	w := sanitize.NewColourWriter(to)
	d.all = append(d.all, w) // its last line may be left coloured
	return w
}

// lend gives a program that gets the terminal our standard error as it is. It is
// dlwb itself, behind a door of its own, and asks questions there.
func (d *door) lend(c *exec.Cmd) *exec.Cmd {
	if c != nil {
		c.Stderr = d.stderr
	}
	return c
}

// adopt leads what libraries write to os.Stderr by themselves through the door,
// until release is called.
func (d *door) adopt() (release func()) {
	r, w, err := os.Pipe()
	if err != nil {
		return func() {}
	}
	before, done := os.Stderr, make(chan struct{})
	os.Stderr = w
	go func() {
		defer close(done)
		_, _ = io.Copy(d.err, r)
	}()
	return func() {
		os.Stderr = before
		_ = w.Close()
		select {
		case <-done:
		case <-time.After(time.Second): // a child that lives on has the pipe too
		}
	}
}

// guarded turns a panic into an exit code and a report that passes the door:
// what it says may be made of anything. (The Go runtime itself prints those of
// other goroutines; none of dlwb's own says what somebody else wrote.)
func (d *door) guarded(do func() int) (code int) {
	defer func() {
		if what := recover(); what != nil {
			fmt.Fprintf(d.err, "dlwb: panic: %v\n\n%s", what, debug.Stack())
			code = ExitFailed
		}
	}()
	return do()
}
