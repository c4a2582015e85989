//go:build unix

package outfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func text(s string) func(io.Writer) error {
	return func(to io.Writer) error { _, err := io.WriteString(to, s); return err }
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if size, err := Write(context.Background(), path, text(content)); err != nil || size != int64(len(content)) {
		t.Fatalf("%s: %d bytes, %v", path, size, err)
	}
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

func TestALinkStaysAndItsTargetIsWritten(t *testing.T) {
	for name, there := range map[string]bool{"to a file": true, "to nothing": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target, far, near := filepath.Join(dir, "data", "target"), filepath.Join(dir, "far"), filepath.Join(dir, "near")
			if err := errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o755), os.Symlink("data/target", far), os.Symlink(far, near)); err != nil {
				t.Fatal(err)
			}
			if there {
				if err := os.WriteFile(target, []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write(t, near, "new")
			holds(t, target, "new")
			for _, link := range []string{far, near} {
				if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
					t.Errorf("%s is no link any more: %v, %v", link, info, err)
				}
			}
		})
	}
}

func TestAFileKeepsItsModeAndANewOneGetsWhatTheUmaskLeaves(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	dir := t.TempDir()
	old, fresh := filepath.Join(dir, "old"), filepath.Join(dir, "fresh")
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.Chmod(old, 0o606)); err != nil {
		t.Fatal(err)
	}
	write(t, old, "x")
	write(t, fresh, "x")
	for path, want := range map[string]fs.FileMode{old: 0o606, fresh: 0o640} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if _, err := Private(context.Background(), old, text("secret")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("what is private has the mode %v, %v", info.Mode(), err)
	}
}

func TestAFileIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err := Write(context.Background(), path, func(to io.Writer) error {
		return errors.Join(text("half")(to), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	holds(t, path, "old")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d things are there, %v", len(left), err)
	}
}

// ownDevice makes a device where one can be opened: /dev/shm and other places of files
// are mounted nodev on many systems.
func ownDevice(t *testing.T, number int) string {
	t.Helper()
	err := errors.New("nowhere to make one")
	for _, in := range []string{t.TempDir(), "/dev"} {
		dir, failed := os.MkdirTemp(in, "dlwb-test-")
		if failed != nil {
			continue
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		path := filepath.Join(dir, "full")
		if err = syscall.Mknod(path, syscall.S_IFCHR|0o600, number); err != nil {
			continue
		}
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_ = f.Close()
			return path
		}
	}
	t.Skip("NOT RUN: no device can be made here: ", err)
	return ""
}

// What is no file is written to: it is there afterwards, and is what it was.
func TestADeviceAndAFIFOAreWrittenTo(t *testing.T) {
	dir := t.TempDir()
	t.Run("FIFO", func(t *testing.T) {
		path := filepath.Join(dir, "fifo")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		got := make(chan string)
		go func() {
			b, err := os.ReadFile(path)
			got <- fmt.Sprint(string(b), err)
		}()
		write(t, path, "through it")
		if read := <-got; read != "through it<nil>" {
			t.Errorf("its reader got %q", read)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("it is %v now, %v", info.Mode(), err)
		}
	})
	t.Run("FIFO that nobody reads", func(t *testing.T) {
		path := filepath.Join(dir, "lonely")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := Write(ctx, path, text("x")); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // lets go of who waits
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	})
	t.Run("device", func(t *testing.T) {
		path := "/dev/full"
		info, err := os.Stat(path)
		if err != nil {
			t.Skip("NOT RUN: this system has no such device: ", err)
		}
		if os.Getuid() == 0 { // who could replace the machine's has one of his own
			path = ownDevice(t, int(info.Sys().(*syscall.Stat_t).Rdev))
		}
		if _, err := Write(context.Background(), path, text("x")); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			t.Errorf("it is %v now, %v", info.Mode(), err)
		}
	})
	t.Run("link to a device", func(t *testing.T) {
		path := filepath.Join(dir, "link")
		if err := os.Symlink(os.DevNull, path); err != nil {
			t.Fatal(err)
		}
		real, open, err := follow(path)
		if err != nil || real != os.DevNull || open {
			t.Fatalf("%s, %v, %v", real, open, err)
		}
		if info, err := os.Stat(real); err != nil || info.Mode().IsRegular() {
			t.Fatalf("%v, %v", info, err)
		}
	})
}

// A descriptor's name is a link too, to a file that may have been opened to add to
// it, or that has no name any more.
func TestADescriptorIsWrittenThrough(t *testing.T) {
	if _, err := os.Stat("/dev/fd/1"); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, fmt.Sprintf("/dev/fd/%d", f.Fd()), "one\n")
	if _, err := io.WriteString(f, "two\n"); err != nil {
		t.Fatal(err)
	}
	holds(t, path, "before\none\ntwo\n")
	for path, want := range map[string]bool{"/dev/stdout": true, "/dev/fd/1": true, "/proc/self/fd/1": true, "/dev/stderr": false, path: false, "1": false, "fd/1": false} {
		if strings.HasPrefix(path, "/proc") {
			if _, err := os.Stat(path); err != nil {
				continue
			}
		}
		if got := Stdout(path); got != want {
			t.Errorf("%s is standard output: %v", path, got)
		}
	}
}

func TestWhatCantBeWrittenIsSaid(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                                 "it is a directory",
		filepath.Join(dir, "new") + "/":     "it is a directory",
		filepath.Join(dir, "none", "there"): "no such file or directory",
		loop:                                "too many symbolic links",
	} {
		if _, err := Write(context.Background(), path, text("x")); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}
