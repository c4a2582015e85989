//go:build unix

package cli

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// interrupting is a terminal on which somebody types Ctrl-C at the first sight of
// anything; ctx is over when dlwb has heard of it.
type interrupting struct {
	ctx   context.Context
	typed bool
}

func (w *interrupting) Write(p []byte) (int, error) {
	if !w.typed {
		w.typed = true
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGINT)
		<-w.ctx.Done()
	}
	return len(p), nil
}

func TestCtrlCEndsAQuestionHoweverEarlyItComes(t *testing.T) {
	for name, asks := range map[string]func(*app) bool{
		"a word":       func(a *app) bool { _, interrupted := a.askUntil("type yes: "); return interrupted },
		"a passphrase": func(a *app) bool { _, given := a.askPassphrase("id_ed25519", false); return !given },
	} {
		_, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		eyes := &interrupting{}
		a := newApp(tty, io.Discard, eyes)
		ctx, stop := a.interruptible()
		eyes.ctx = ctx
		ended := make(chan bool, 1)
		go func() { ended <- asks(a) }()
		select {
		case good := <-ended:
			if !good {
				t.Errorf("%s: an answer was taken that nobody gave", name)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s: the question goes on after Ctrl-C", name)
		}
		stop()
	}
}
