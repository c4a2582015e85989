package bulk

import (
	"io/fs"
	"syscall"
	"time"
)

const nofollow = syscall.O_NOFOLLOW

// changedOf is a file's ctime, which nobody can set.
func changedOf(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
