package wake

import (
	"net"
	"testing"
	"time"
)

func TestASleepIsSeenByTheClocks(t *testing.T) {
	for _, c := range []struct {
		name            string
		monotonic, wall time.Duration
		asleep          bool
	}{
		{"a tick", time.Second, time.Second, false},
		{"a late tick", 4 * time.Second, 4 * time.Second, false},
		{"a laptop that slept", time.Second, time.Hour, true},
		{"one whose monotonic clock went on", time.Hour, time.Hour, true},
		{"a process that was stopped", 20 * time.Second, 20 * time.Second, true},
		{"a clock that was set back", time.Second, -time.Hour, false},
		{"a clock that was corrected", time.Second, 1500 * time.Millisecond, false},
	} {
		if got := asleep(c.monotonic, c.wall); got != c.asleep {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestAConnectionFromAnAddressThatIsGoneHasMoved(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": false, "0.0.0.0": false, "203.0.113.77": true} {
		if got := Moved(connFrom{addr: &net.TCPAddr{IP: net.ParseIP(addr)}}); got != want {
			t.Errorf("%s: %v, want %v", addr, got, want)
		}
	}
}

type connFrom struct {
	net.Conn
	addr net.Addr
}

func (c connFrom) LocalAddr() net.Addr { return c.addr }
