//go:build linux

package printed

import (
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a program has printed may be brought until it is taken; what it has left running
// is not waited for, however much it prints.
func TestWhatAProgramHasPrintedMayBeBroughtUntilItIsTaken(t *testing.T) {
	for _, way := range []struct {
		name  string
		reads func(read *os.File) *os.File
		sees  bool // whether anything waits there
	}{
		{"a pipe of ours", func(read *os.File) *os.File { return read }, true},
		{"a pipe that can only be waited for in a read", blocking(t), false},
	} {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r := From(way.reads(read), 100, 10)
		if _, err := io.WriteString(write, "last words"); err != nil {
			t.Fatal(err)
		}
		r.Ended()
		if !r.MayBring() {
			t.Errorf("%s: nothing is said to come, and it lies in the pipe", way.name)
		}
		piece := make([]byte, 10)
		if n, err := r.Read(piece); err != nil || string(piece[:n]) != "last words" {
			t.Errorf("%s: read %q, %v", way.name, piece[:n], err)
		}
		if !r.MayBring() {
			t.Errorf("%s: it is not taken yet, as far as is known", way.name)
		}
		go func() { // somebody takes it, and reads on
			for err := error(nil); err == nil; {
				_, err = r.Read(piece)
			}
		}()
		if way.sees {
			await(t, way.name+": all is taken", func() bool { return !r.MayBring() })
		}
		if _, err := io.WriteString(write, strings.Repeat("from the background ", 10)); err != nil {
			t.Fatal(err)
		}
		await(t, way.name+": what is left running is not waited for", func() bool { return !r.MayBring() })
		_ = write.Close()
		await(t, way.name+": the end", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.over })
	}
}

// The end of a pipe is told as any reader tells it, and brings nothing.
func TestTheEndBringsNothing(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r := From(read, 100, 10)
	_ = write.Close()
	r.Ended()
	if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, io.EOF) || r.MayBring() {
		t.Errorf("%d, %v, may bring %v", n, err, r.MayBring())
	}
	_ = read.Close()
	if _, err := r.Read(make([]byte, 10)); err == nil {
		t.Error("a closed file is read")
	}
}

// blocking gives a pipe as a program of other languages opens it.
func blocking(t *testing.T) func(read *os.File) *os.File {
	return func(read *os.File) *os.File {
		fd, err := syscall.Dup(int(read.Fd()))
		if err == nil {
			err = syscall.SetNonblock(fd, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fd), "blocking")
	}
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}
