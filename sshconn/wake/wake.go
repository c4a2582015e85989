// Package wake tells when this machine was asleep, or when its addresses have
// changed: a connection of before may be dead, and nothing else would tell soon.
package wake

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// every is how often this machine is looked at.
	every = time.Second
	// slack is how late a look may be on a busy machine.
	slack = 4 * time.Second
)

// sleepers are those who want to be told. One goroutine looks, while there are
// any.
var sleepers = struct {
	sync.Mutex
	next   int
	wanted map[int]chan struct{}
	stop   chan struct{}
}{wanted: map[int]chan struct{}{}}

// Subscribe gives a channel on which a wake comes, until enough is called. A
// wake that nobody waits for is kept, once.
func Subscribe() (woken <-chan struct{}, enough func()) {
	sleepers.Lock()
	defer sleepers.Unlock()
	ch := make(chan struct{}, 1)
	if len(sleepers.wanted) == 0 {
		sleepers.stop = make(chan struct{})
		go look(sleepers.stop)
	}
	sleepers.next++
	id := sleepers.next
	sleepers.wanted[id] = ch
	return ch, func() {
		sleepers.Lock()
		defer sleepers.Unlock()
		if delete(sleepers.wanted, id); len(sleepers.wanted) == 0 {
			close(sleepers.stop)
		}
	}
}

// All wakes everybody.
func All() {
	sleepers.Lock()
	defer sleepers.Unlock()
	for _, ch := range sleepers.wanted {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// look waits for a sleep or another network. The time goes on in one tick's
// end: what is late because of a sleep is late at once.
func look(stop <-chan struct{}) {
	tick := time.NewTicker(every)
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
			All()
		}
		before, addresses = now, present
	}
}

// asleep reports whether this machine, or this process, stood still in the time
// of one tick: the clock went on without the monotonic one, as in a laptop that
// sleeps, or both went on without us. A clock that is set forward looks the same,
// and a look at the links costs nothing.
func asleep(monotonic, wall time.Duration) bool {
	return wall-monotonic > slack || monotonic > every+slack
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

// Moved reports whether a connection comes from an address that this machine
// does not have any more.
func Moved(conn net.Conn) bool {
	addr, ok := conn.LocalAddr().(*net.TCPAddr)
	if !ok || addr.IP.IsUnspecified() || addr.Zone != "" {
		return false // one that leads through another host
	}
	present := localAddresses()
	return present != nil && !slices.Contains(present, addr.IP.String()) && !addr.IP.IsLoopback()
}
