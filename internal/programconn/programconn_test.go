//go:build unix

package programconn

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func sh(t *testing.T, script string, ended func()) *Conn {
	t.Helper()
	c, err := Start(exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c", script), "the program", ended)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestBytesGoThroughTheProgram(t *testing.T) {
	ended := 0
	c := sh(t, "exec cat", func() { ended++ })
	want := strings.Repeat("some bytes \x00\xff", 10_000)
	go func() { _, _ = io.WriteString(c, want) }()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("%d bytes came back: %v", len(got), err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if ended != 1 {
		t.Errorf("its end was told %d times", ended)
	}
}

func TestAProgramThatEndsTellsWhy(t *testing.T) {
	c := sh(t, "echo there is no instance >&2; echo of this name >&2; exit 3", nil)
	_, err := io.ReadAll(c)
	var told *EndedError
	// It is gone by now, and whoever writes hears why, too: ssh writes first.
	for err2 := error(nil); err2 == nil; {
		if _, err2 = io.WriteString(c, "SSH-2.0-x\r\n"); err2 != nil && err2.Error() != err.Error() {
			t.Errorf("the error of a write is %v", err2)
		}
	}
	if !errors.As(err, &told) || err.Error() != "the program: there is no instance of this name" || !errors.Is(err, io.EOF) {
		t.Errorf("the error is %v", err)
	}
}

// alive reports whether there is a process that is no zombie.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil && !os.IsNotExist(err)
	}
	return !strings.Contains(string(text), ") Z ")
}

func TestNothingIsLeftOfAProgramThatDoesNotWantToEnd(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	c := sh(t, "trap '' HUP; sleep 1000 & echo $! >"+pids+"; echo $$ >>"+pids+"; echo up; while :; do sleep 1000; done", nil)
	if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(30 * time.Second); alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("process %d is still there", pid)
			}
		}
	}
}

// A signal of the terminal goes to the process group that is in the foreground there.
func TestCtrlCDoesNotReachTheProgram(t *testing.T) {
	c := sh(t, "echo $$; exec cat", nil)
	line := make([]byte, 16)
	n, err := c.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatal(err)
	}
	group, err := syscall.Getpgid(pid)
	if err != nil || group != pid || group == syscall.Getpgrp() {
		t.Errorf("the program is in group %d, this test in %d: %v", group, syscall.Getpgrp(), err)
	}
}
