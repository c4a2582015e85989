//go:build linux

package telemetry

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const diskEvery = 10 * time.Second

// disk is how full the disk of a directory is, as was told last.
type disk struct{ told atomic.Pointer[fullness] }

type fullness struct{ used, total uint64 } // KiB

// asking is held by the one question of this process: one about a dead network
// disk is never answered, and the next one would be another thread that hangs.
var asking atomic.Bool

// watch asks until ctx ends, or for ever where the disk hangs.
func (d *disk) watch(ctx context.Context, dir string) {
	for {
		if asking.CompareAndSwap(false, true) {
			if f, ok := statDisk(dir); ok {
				d.told.Store(&f)
			}
			asking.Store(false)
		}
		select {
		case <-time.After(diskEvery):
		case <-ctx.Done():
			return
		}
	}
}

func (d *disk) last() (used, total uint64, ok bool) {
	if f := d.told.Load(); f != nil {
		return f.used, f.total, true
	}
	return 0, 0, false
}

func statDisk(dir string) (fullness, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fullness{}, false
	}
	block := uint64(s.Frsize)
	return fullness{(s.Blocks - s.Bfree) * block >> 10, s.Blocks * block >> 10}, true
}
