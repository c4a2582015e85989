//go:build linux

// Package agent is what runs on a node: one small program that dlwb puts there.
// It needs no root, listens nowhere, and stays only while a connection or a run
// lasts. What it can do over a connection is in services; what it can be
// started as is in modes.
package agent

import (
	"cmp"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Main is the program: its arguments without its name, and its exit code.
func Main(args []string) int {
	if runtime.GOMAXPROCS(0) > processorsMost {
		runtime.GOMAXPROCS(processorsMost)
	}
	completePath()
	if len(args) > 0 {
		if mode, ok := modes[args[0]]; ok {
			return mode(args[1:])
		}
	}
	fmt.Fprintf(os.Stderr, "dlwb's agent is started by dlwb itself; it knows %q\n", modeNames())
	return exitUsage
}

// completePath adds the system's programs behind the PATH of a login that has none of
// them: without mkdir and cat neither dlwb's own lines nor most training work. What a
// login has set stays in front.
func completePath() {
	path := os.Getenv("PATH")
	dirs := filepath.SplitList(path)
	if slices.Contains(dirs, "/bin") || slices.Contains(dirs, "/usr/bin") {
		return
	}
	_ = os.Setenv("PATH", strings.TrimPrefix(path+":/usr/local/bin:/usr/bin:/bin", ":")) // it fails for names that are none
}

// processorsMost is how many processors the agent uses at a time: the machine is
// the training's.
const processorsMost = 8

// The exit codes, as in sysexits.h.
const (
	exitUsage  = 64
	exitAbsent = 66
	exitFailed = 74
)

// home is the user's home directory: what the login says, else what the system
// knows.
func home() string {
	if dir := os.Getenv("HOME"); dir != "" {
		return dir
	}
	dir := "/"
	if u, err := user.Current(); err == nil {
		dir = u.HomeDir
	}
	_ = os.Setenv("HOME", dir) // what is started needs it too
	return dir
}

// self is the path of this program.
func self() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(path, " (deleted)")
}

// shell is the sh that runs command lines.
func shell() string {
	for _, path := range append(filepath.SplitList(os.Getenv("PATH")), "/bin", "/usr/bin") {
		if sh := filepath.Join(path, "sh"); filepath.IsAbs(sh) && isProgram(sh) {
			return sh
		}
	}
	return cmp.Or(os.Getenv("SHELL"), "/bin/sh")
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
