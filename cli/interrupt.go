package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/sanitize"
)

const (
	// endQuietly is how long the end may take after the first signal before
	// something is said about it.
	endQuietly = 300 * time.Millisecond
	// sameSignal is how soon a second signal may be the first one once more: a
	// wrapper passes on what the terminal has sent to it and to us.
	sameSignal = 50 * time.Millisecond
	// closeLimit is how long an interrupted command may take to let go of its
	// connections. What it wrote is safe without.
	closeLimit = 500 * time.Millisecond
)

// interruptible gives a context that the first signal ends, and with it every
// question, also one that is asked later. Whatever is then finished takes its time,
// and says so; the second signal ends the process at once, always: nothing in the
// program is asked.
func (a *app) interruptible() (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	a.interrupted = ctx.Done()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	atStart := stateOf(a.in)
	go func() {
		<-signals
		first := time.Now()
		cancel()
		tell := time.After(endQuietly)
		for {
			select {
			case <-tell:
				go a.tellEnding() // a terminal that takes nothing holds up no signal
			case s := <-signals:
				// Nobody types a hang-up: it comes more than once by itself.
				if s != syscall.SIGHUP && time.Since(first) > sameSignal {
					a.endNow(atStart)
				}
			}
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}

// tellEnding says what an interrupted command still does.
func (a *app) tellEnding() {
	if a.onScreen.Load() {
		return
	}
	what := "finishing what was begun"
	if all := waits.Open(); len(all) > 0 {
		what = all[0].String()
	}
	sanitize.Fprintf(a.err, "dlwb: interrupted; %s; Ctrl-C again ends dlwb at once\n", what)
}

// endNow ends the process. The terminal gets its old self back, if it takes it:
// one that is held by ctrl-s is not waited for.
func (a *app) endNow(atStart *term.State) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if in, ok := a.in.(*os.File); ok && atStart != nil {
			_ = term.Restore(in.Fd(), atStart)
		}
		if a.onScreen.Load() {
			a.leaveScreen()
		}
		fmt.Fprintln(a.err, "dlwb: ended at once; dlwb ls shows what there is, and dlwb down goes on with what was being removed")
	}()
	select {
	case <-done:
	case <-time.After(200 * time.Millisecond):
	}
	os.Exit(ExitInterrupt)
}

// stateOf is the state of the terminal that is read from; nil: it is none.
func stateOf(in io.Reader) *term.State {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(f.Fd()) {
		return nil
	}
	state, err := term.GetState(f.Fd())
	if err != nil {
		return nil
	}
	return state
}

// closeWithin closes the workbench. After an interruption that is waited for no
// longer than closeLimit: a connection may hang.
func closeWithin(ctx context.Context, closing func() error) error {
	closed := make(chan error, 1)
	go func() { closed <- closing() }()
	var late <-chan time.Time
	interrupted := ctx.Done()
	for {
		select {
		case err := <-closed:
			return err
		case <-interrupted:
			late, interrupted = time.After(closeLimit), nil
		case <-late:
			return nil
		}
	}
}
