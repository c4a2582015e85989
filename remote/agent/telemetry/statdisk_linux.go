package telemetry

import "golang.org/x/sys/unix"

func statDisk(dir string) (fullness, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return fullness{}, false
	}
	block := uint64(s.Frsize)
	return fullness{(s.Blocks - s.Bfree) * block >> 10, s.Blocks * block >> 10}, true
}
