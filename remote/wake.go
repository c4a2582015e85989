package remote

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// wakeTick is how often this machine is looked at.
	wakeTick = time.Second
	// wakeSlack is how late a tick may be on a busy machine.
	wakeSlack = 4 * time.Second
	// wakeLimit is how long a link has to answer after this machine was
	// asleep, or its network has changed.
	wakeLimit = 5 * time.Second
	// movedLimit is that limit for a link from an address that this machine
	// does not have any more.
	movedLimit = 2 * time.Second
)

// wakes tells every link of this process when this machine was asleep, or when
// its addresses have changed. One goroutine looks, while there are links.
var wakes waker

type waker struct {
	mu     sync.Mutex
	next   int
	wanted map[int]chan struct{}
	stop   chan struct{}
}

// subscribe gives a channel on which a wake comes, until enough is called. A
// wake that nobody waits for is kept, once.
func (w *waker) subscribe() (woken <-chan struct{}, enough func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch := make(chan struct{}, 1)
	if len(w.wanted) == 0 {
		w.wanted = map[int]chan struct{}{}
		w.stop = make(chan struct{})
		go w.look(w.stop)
	}
	w.next++
	id := w.next
	w.wanted[id] = ch
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.wanted, id); len(w.wanted) == 0 {
			close(w.stop)
		}
	}
}

func (w *waker) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.wanted {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// look waits for a sleep or another network. The time goes on in one tick's
// end: what is late because of a sleep is late at once.
func (w *waker) look(stop <-chan struct{}) {
	tick := time.NewTicker(wakeTick)
	defer tick.Stop()
	before, addresses := time.Now(), localAddresses()
	for {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
		now, present := time.Now(), localAddresses()
		slept := asleep(now.Sub(before), now.Round(0).Sub(before.Round(0)))
		if slept || present != nil && !slices.Equal(present, addresses) {
			w.wake()
		}
		before, addresses = now, present
	}
}

// asleep reports whether this machine, or this process, stood still in the time
// of one tick: the clock went on without the monotonic one, as in a laptop that
// sleeps, or both went on without us. A clock that is set forward looks the same,
// and a look at the links costs nothing.
func asleep(monotonic, wall time.Duration) bool {
	return wall-monotonic > wakeSlack || monotonic > wakeTick+wakeSlack
}

// localAddresses are those of this machine, in order; nil when they can't be
// told.
func localAddresses() []string {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	texts := make([]string, 0, len(all))
	for _, a := range all {
		ip, _, _ := strings.Cut(a.String(), "/")
		texts = append(texts, ip)
	}
	slices.Sort(texts)
	return texts
}

// moved reports whether a connection comes from an address that this machine
// does not have any more.
func moved(conn net.Conn) bool {
	addr, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok || addr.IP.IsUnspecified() || addr.Zone != "" {
		return false // one that leads through another host
	}
	present := localAddresses()
	return present != nil && !slices.Contains(present, addr.IP.String()) && !addr.IP.IsLoopback()
}
