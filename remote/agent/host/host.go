//go:build linux

// Package host is what dlwb does to a machine around a cluster: it looks at
// what the machine is and has, takes it for one cluster, lets the nodes of the
// cluster reach each other, and gives it back as it was.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/internal/waits"
)

// Host is this machine, as one user has it.
type Host struct {
	// Home is the user's home directory.
	Home string
	// Agents are more places where dlwb's agents may lie; a removal clears them.
	Agents []string

	link func(from, to string) error
	id   string // of this host among those with the same home
}

// New is this machine with a home directory.
func New(home string) *Host { return &Host{Home: home, link: os.Link, id: hostID()} }

// Do answers one request.
func (h *Host) Do(r hostclaim.Request) hostclaim.Answer {
	var a hostclaim.Answer
	var err error
	switch r.Do {
	case hostclaim.Look:
		a = h.look(r)
	case hostclaim.Take:
		a, err = h.take(r)
	case hostclaim.Seek:
		a, err = h.seek(r)
	case hostclaim.Remove:
		a, err = h.remove(r)
	default:
		err = fmt.Errorf("this agent can't %q a host", r.Do)
	}
	if err != nil {
		a.Failed = plain(err)
	}
	return a
}

// plain is an error in words: what the file is, and why.
func plain(err error) string {
	var at *fs.PathError
	if !errors.As(err, &at) {
		return err.Error()
	}
	why := at.Err.Error()
	switch {
	case errors.Is(err, syscall.ENOSPC):
		why = "the disk is full"
	case errors.Is(err, syscall.EDQUOT):
		why = "the user's quota is used up"
	case errors.Is(err, syscall.EROFS):
		why = "the disk is read-only"
	}
	return at.Path + ": " + why
}

// at is a path below the home directory.
func (h *Host) at(name string) string { return filepath.Join(h.Home, name) }

// claimMost is how much of a claim is read.
const claimMost = 64 << 10

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// ask runs a program for a while and gives what it printed. What it started
// ends with it.
func ask(limit time.Duration, name string, args ...string) (string, error) {
	wait := waits.Wait{On: name, What: "to answer", Limit: limit}
	out, _, err := waits.Output(context.Background(), wait, func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	}, name, args...)
	return string(out), err
}

// within gives what a call returns, or the zero value when it does not return in
// its time: a file system on the network may hang for ever.
func within[T any](limit time.Duration, call func() T) (answer T, ok bool) {
	answers := make(chan T, 1)
	go func() { answers <- call() }()
	select {
	case answer = <-answers:
		return answer, true
	case <-time.After(limit):
		return answer, false
	}
}
