package transfer

import (
	"io/fs"
	"syscall"
	"time"
)

// inodeOf gives what tells a replaced or rewritten file from the same one,
// also when somebody set its mtime back.
func inodeOf(info fs.FileInfo) (inode uint64, changed time.Time) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino, time.Unix(st.Ctimespec.Unix())
	}
	return 0, time.Time{}
}
