//go:build linux

package intake

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// futimens sets a file's time of modification; that of access is left as it is.
func futimens(fd int, mtime int64) error {
	times := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(mtime)}
	_, _, code := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	if code != 0 {
		return code
	}
	return nil
}
