package waits

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWaitEndsAtItsLimitAndSaysWhatItWasFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := Within(t.Context(), Wait{On: "node0", What: "to open an ssh session", Limit: 10 * time.Second})
		defer cancel()
		began := time.Now()
		<-ctx.Done()
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("it took %v", took)
		}
		err := context.Cause(ctx)
		var late *LateError
		if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) ||
			err.Error() != "no answer within 10s: waited for node0 to open an ssh session" {
			t.Errorf("the cause is %v", err)
		}
	})
}

func TestWhatIsWaitedForIsKnownUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := Begin(Wait{On: "node0", What: "to answer"})
		time.Sleep(70 * time.Second)
		_, second := Within(t.Context(), Wait{On: "node1", What: "to end a command", Limit: 3 * time.Minute, Then: "its output is read"})
		time.Sleep(55 * time.Second)
		all := Open()
		if len(all) != 2 || !strings.HasSuffix(all[0].String(), "(2m05s)") ||
			!strings.HasSuffix(all[1].String(), "(55s); the limit is 3m; its output is read") {
			t.Errorf("open: %v", all)
		}
		first()
		second()
		if all := Open(); len(all) > 0 {
			t.Errorf("still open: %v", all)
		}
	})
}

// heard collects what Tell says, and when.
func heard(ctx context.Context, began time.Time, said func() time.Time) <-chan time.Duration {
	at := make(chan time.Duration, 100)
	go Tell(ctx, Every, said, func(Wait, int) { at <- time.Since(began) })
	return at
}

func TestEveryFifteenSecondsOfSilenceSomethingIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer Begin(Wait{On: "node0", What: "to answer"})()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		at := heard(ctx, time.Now(), func() time.Time { return time.Time{} })
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if len(at) != 4 {
			t.Fatalf("said %d times", len(at))
		}
		for want := range 4 {
			if got := <-at; got != time.Duration(want+1)*15*time.Second {
				t.Errorf("said at %v", got)
			}
		}
	})
}

func TestNothingIsSaidWhileSomethingElseIsSaidOrNothingIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last atomic.Int64
		last.Store(time.Now().UnixNano())
		at := heard(ctx, time.Now(), func() time.Time { return time.Unix(0, last.Load()) })
		time.Sleep(time.Minute) // nothing is waited for
		synctest.Wait()
		end := Begin(Wait{On: "node0", What: "to answer"})
		for range 10 { // others talk
			last.Store(time.Now().UnixNano())
			time.Sleep(10 * time.Second)
		}
		synctest.Wait()
		if len(at) != 0 {
			t.Errorf("said at %v", <-at)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		end()
		if len(at) != 1 {
			t.Errorf("after 16 s of silence: said %d times", len(at))
		}
	})
}

func TestAProgramThatHangsIsGivenUpAndOneThatEndsIsHeard(t *testing.T) {
	w := Wait{On: "sh", What: "to end", Limit: 200 * time.Millisecond}
	began := time.Now()
	// The child keeps the pipes open after its parent was killed.
	_, _, err := Output(t.Context(), w, nil, "sh", "-c", "sleep 60 & sleep 60")
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 40*time.Second {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	w.Limit = time.Minute
	out, errs, err := Output(t.Context(), w, func(c *exec.Cmd) { c.Env = []string{"A=1"} }, "/bin/sh", "-c", `echo "$A"; echo no >&2; exit 3`)
	var exit *exec.ExitError
	if string(out) != "1\n" || string(errs) != "no\n" || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
	if all := Open(); len(all) > 0 {
		t.Errorf("still open: %v", all)
	}
}
