package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
	"github.com/dlwb/dlwb/workbench/event"
)

// waitingFor is what an app says of a wait of so long.
func waitingFor(t *testing.T, set func(*app), long time.Duration) (out, errs string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stdout, stderr bytes.Buffer
		a := newApp(strings.NewReader(""), &stdout, &stderr)
		set(a)
		a.said.now()
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan struct{})
		go func() { defer close(told); a.tellWaits(ctx) }()
		defer waits.Begin(waits.Wait{On: "no\x1bde0", What: "to open an ssh session", Limit: 10 * time.Second})()
		time.Sleep(long)
		cancel()
		<-told
		if err := a.close(); err != nil {
			t.Error(err)
		}
		out, errs = stdout.String(), stderr.String()
	})
	return out, errs
}

func TestAWaitIsToldEveryFifteenSeconds(t *testing.T) {
	out, errs := waitingFor(t, func(*app) {}, 46*time.Second)
	if out != "" || strings.Count(errs, "to open an ssh session") != 3 || strings.Contains(errs, "\x1b") || !strings.Contains(errs, "the limit is 10s") {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
	out, errs = waitingFor(t, func(a *app) { a.json = true }, 16*time.Second)
	var e waitingEvent
	if err := json.Unmarshal([]byte(out), &e); err != nil || e.Event != "waiting" || e.For != "to open an ssh session" || e.Limit != 10 || errs != "" {
		t.Errorf("stdout %q, stderr %q", out, errs)
	}
	if out, errs = waitingFor(t, func(a *app) { a.onScreen.Store(true) }, time.Minute); out+errs != "" {
		t.Errorf("behind a screen: %q%q", out, errs)
	}
	if out, errs = waitingFor(t, func(*app) {}, 14*time.Second); out+errs != "" {
		t.Errorf("after 14 s: %q%q", out, errs)
	}
}

func TestClosingIsNotWaitedForAfterAnInterruption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		hang := make(chan struct{})
		defer close(hang)
		if err := closeWithin(ctx, func() error { <-hang; return nil }); err != nil || time.Since(began) != closeLimit {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		failed := errors.New("no")
		if err := closeWithin(t.Context(), func() error { time.Sleep(time.Hour); return failed }); err != failed {
			t.Errorf("without an interruption: %v", err)
		}
	})
}

// With --json a wait is told between the answers: they have no event, so that
// a reader can tell them from it.
func TestNoAnswerIsTakenForAnEvent(t *testing.T) {
	for command, out := range outputs {
		if out.answer == nil {
			continue
		}
		for _, f := range event.Fields(out.answer) {
			if f[0] == "event" {
				t.Errorf("the answer of %s has an event", command)
			}
		}
	}
}
