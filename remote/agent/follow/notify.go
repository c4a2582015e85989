//go:build linux

package follow

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// notifier waits for changes of one file. Where the system has no room for
// another one, or tells nothing (a network disk), only time passes.
type notifier struct {
	fd     int
	events *os.File // nil: there is none
	id     int      // of the file; -1: none
}

func newNotifier() notifier {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return notifier{id: -1}
	}
	return notifier{fd, os.NewFile(uintptr(fd), "inotify"), -1}
}

func (n *notifier) watch(f *os.File) {
	if n.events == nil {
		return
	}
	id, err := unix.InotifyAddWatch(n.fd, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.IN_MODIFY|unix.IN_ATTRIB|unix.IN_MOVE_SELF)
	if err == nil {
		n.id = id
	}
}

func (n *notifier) leave() {
	if n.id >= 0 {
		_, _ = unix.InotifyRmWatch(n.fd, uint32(n.id))
		n.id = -1
	}
}

func (n *notifier) close() {
	if n.events != nil {
		_ = n.events.Close()
	}
}

// wait returns when the file has changed, after a while, or with ctx.
func (n *notifier) wait(ctx context.Context, d time.Duration) {
	if n.id < 0 {
		pass(ctx, d)
		return
	}
	var buf [4 << 10]byte
	_ = n.events.SetReadDeadline(time.Now().Add(pollWatched))
	defer context.AfterFunc(ctx, func() { _ = n.events.SetReadDeadline(time.Now()) })()
	_, _ = n.events.Read(buf[:])
}
