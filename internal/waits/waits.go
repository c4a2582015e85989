// Package waits bounds what is waited for, and knows at any moment what that
// is: the other end of a connection, a program, a provider's API. Whoever has
// to tell a person why nothing happens asks it.
package waits

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlwb/dlwb/internal/units"
)

// Wait is one thing that is being waited for.
type Wait struct {
	On    string // who is to answer: "node0", "git"
	What  string // for what: "to open an ssh session"
	Then  string // what usually follows; empty: nothing is known
	Since time.Time
	Limit time.Duration // when the wait is given up; 0: never
}

// String is the wait as a person reads it, now.
func (w Wait) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "waiting for %s %s since %s (%s)", w.On, w.What, w.Since.Local().Format("15:04:05"), units.Clock(time.Since(w.Since)))
	if w.Limit > 0 {
		fmt.Fprintf(&s, "; the limit is %s", units.Duration(w.Limit))
	}
	if w.Then != "" {
		s.WriteString("; " + w.Then)
	}
	return s.String()
}

// LateError says that a wait was given up at its limit.
type LateError struct{ Wait Wait }

func (e *LateError) Error() string {
	return fmt.Sprintf("no answer within %s: waited for %s %s", units.Duration(e.Wait.Limit), e.Wait.On, e.Wait.What)
}

// Is makes a LateError count as a deadline, as net's errors do.
func (e *LateError) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout makes it a timeout for whoever asks as net.Error does.
func (e *LateError) Timeout() bool { return true }

// open are the waits that go on, by the order of their beginning.
var open = struct {
	sync.Mutex
	next int
	all  map[int]Wait
}{all: map[int]Wait{}}

// Begin notes that something is being waited for, until end is called. A wait
// without a time begins now.
func Begin(w Wait) (end func()) {
	if w.Since.IsZero() {
		w.Since = time.Now()
	}
	open.Lock()
	defer open.Unlock()
	open.next++
	id := open.next
	open.all[id] = w
	return func() {
		open.Lock()
		defer open.Unlock()
		delete(open.all, id)
	}
}

// Within is a context for one wait: it ends at the wait's limit, with a
// *LateError as its cause. The wait is noted until cancel.
func Within(ctx context.Context, w Wait) (_ context.Context, cancel context.CancelFunc) {
	w.Since = time.Now()
	end := Begin(w)
	if w.Limit <= 0 {
		ctx, stop := context.WithCancel(ctx)
		return ctx, func() { stop(); end() }
	}
	ctx, stop := context.WithTimeoutCause(ctx, w.Limit, &LateError{w})
	return ctx, func() { stop(); end() }
}

// Open are the waits that go on now, the oldest first.
func Open() []Wait {
	open.Lock()
	defer open.Unlock()
	all := make([]Wait, 0, len(open.all))
	for _, w := range open.all {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.On, b.On), cmp.Compare(a.What, b.What))
	})
	return all
}

// Every is how often a person is told what is waited for while nothing else is
// said.
const Every = 15 * time.Second

// Tell says what is waited for whenever nothing was said for as long as every,
// until ctx ends. said is when something was last said, by anybody; say gets
// the oldest wait, and how many there are besides.
func Tell(ctx context.Context, every time.Duration, said func() time.Time, say func(w Wait, more int)) {
	last := time.Now()
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if at := said(); at.After(last) {
			last = at
		}
		if left := every - time.Since(last); left > 0 {
			timer.Reset(left)
			continue
		}
		if all := Open(); len(all) > 0 {
			say(all[0], len(all)-1)
			last = time.Now()
		}
		timer.Reset(min(every, time.Second))
		if left := every - time.Since(last); left > 0 {
			timer.Reset(left)
		}
	}
}
