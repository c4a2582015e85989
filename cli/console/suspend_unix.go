//go:build unix

package console

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CannotSuspend says why this program can't be put aside with Ctrl-Z; empty
// when it can. Where no shell with job control waits above it (it is what the
// terminal was opened for, say), the kernel does not stop it, and nobody would
// wake it up.
func CannotSuspend() string {
	group := unix.Getpgrp()
	parent := os.Getppid()
	if group != os.Getpid() {
		parent = parentOf(group)
	}
	if parent <= 0 {
		return "" // not known
	}
	const alone = "no shell waits in this terminal that could bring it back"
	mine, err := unix.Getsid(0)
	theirs, parentErr := unix.Getsid(parent)
	parentGroup, groupErr := unix.Getpgid(parent)
	if err != nil || parentErr != nil || groupErr != nil {
		return ""
	}
	if mine != theirs || parentGroup == group {
		return alone
	}
	return ""
}

// Continued has a value whenever this process goes on after it was stopped.
func Continued(ctx context.Context) <-chan os.Signal {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCONT)
	context.AfterFunc(ctx, func() { signal.Stop(c) })
	return c
}

// parentOf is the parent of a process; 0 where that is not told.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}
