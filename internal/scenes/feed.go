package scenes

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/workbench/event"
)

// feed is a stream of events that the stage fills. It also counts what is
// under way, because a reader that waits here is idle, not busy.
type feed struct {
	mu      sync.Mutex
	queue   []event.Event
	wake    chan struct{}
	running int // commands that have not answered
	parked  int // those of them that wait for events
	rest    []chan struct{}
}

// reader is one session's hold on the stream.
type reader struct {
	feed *feed
	once sync.Once
	gone chan struct{}
}

func (f *feed) open() *reader { return &reader{feed: f, gone: make(chan struct{})} }

// Next implements ui.Feed.
func (r *reader) Next(ctx context.Context) []event.Event {
	f := r.feed
	f.mu.Lock()
	f.parked++
	defer func() { f.parked--; f.mu.Unlock() }()
	for len(f.queue) == 0 {
		f.settled()
		f.mu.Unlock()
		select {
		case <-f.wake:
			f.mu.Lock()
		case <-r.gone:
			f.mu.Lock()
			return nil
		case <-ctx.Done():
			f.mu.Lock()
			return nil
		}
	}
	batch := f.queue
	f.queue = nil
	return batch
}

// Close implements ui.Feed.
func (r *reader) Close() { r.once.Do(func() { close(r.gone) }) }

func (f *feed) push(events []event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, events...)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// add counts commands that begin and end.
func (f *feed) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += n
	f.settled()
}

// settled tells those who wait for it that nothing is under way.
func (f *feed) settled() {
	if !f.quiet() {
		return
	}
	for _, c := range f.rest {
		close(c)
	}
	f.rest = nil
}

// quiet holds when every command has answered or waits for events that are
// not there. A waiting reader with events is about to wake up.
func (f *feed) quiet() bool {
	return f.running == f.parked && (len(f.queue) == 0 || f.parked == 0)
}

// idle is closed when nothing is under way.
func (f *feed) idle() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan struct{})
	if f.quiet() {
		close(c)
	} else {
		f.rest = append(f.rest, c)
	}
	return c
}

// clipboard recognises the message that sets the clipboard; its type is not
// exported by Bubble Tea.
func clipboard(msg any) (string, bool) {
	if strings.HasSuffix(fmt.Sprintf("%T", msg), ".setClipboardMsg") {
		return fmt.Sprint(msg), true
	}
	return "", false
}
