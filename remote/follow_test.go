//go:build unix

package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote/wire"
)

func TestFollowLosesNothingAndRepeatsNothingWhenTheConnectionIsKilled(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	path := filepath.Join(s.Home, "a log")
	total := 4 << 20
	sum := make(chan hash.Hash, 1)
	// The writer stays near the next cut, so that there is always something left
	// to come after it.
	var cuts atomic.Int64
	nextCut := func() int64 { return (cuts.Load() + 1) * int64(total) / 5 }
	go func() {
		sum <- appendRandom(t, path, total, func(written int) bool { return int64(written) > nextCut()+100_000 })
	}()
	got, err := followAll(t, n, "a log", total, func(off int64) {
		if off >= nextCut() {
			cuts.Add(int64(s.KillConnections()))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if cuts.Load() < 4 {
		t.Errorf("the connection was killed %d times, want 4", cuts.Load())
	}
	if want := (<-sum).Sum(nil); !bytes.Equal(got.Sum(nil), want) {
		t.Error("the bytes that came differ from those that were written")
	}
	waitUntil(t, "nothing follows there", func() bool { return followers(t, s.Home) == 0 })
}

// appendRandom writes in pieces, so that the reader catches up in between, and
// waits while it is too far ahead.
func appendRandom(t *testing.T, path string, total int, ahead func(written int) bool) hash.Hash {
	sum := sha256.New()
	f, err := os.Create(path)
	if err != nil {
		t.Error(err)
		return sum
	}
	defer f.Close()
	random := rand.NewChaCha8([32]byte{1})
	for written := 0; written < total; {
		piece := make([]byte, min(total-written, 1+rand.IntN(100_000)))
		_, _ = random.Read(piece)
		sum.Write(piece)
		if _, err := f.Write(piece); err != nil {
			t.Error(err)
		}
		written += len(piece)
		waitUntil(t, "the reader comes near", func() bool { return !ahead(written) })
	}
	return sum
}

var errEnough = errors.New("enough")

// followAll follows until total bytes came, checking that offsets have no gap.
func followAll(t testing.TB, n *Node, path string, total int, each func(off int64)) (hash.Hash, error) {
	t.Helper()
	sum, next := sha256.New(), int64(0)
	err := n.Follow(testContext(t), path, 0, func(off int64, p []byte) error {
		if off != next {
			return fmt.Errorf("got offset %d after %d bytes", off, next)
		}
		each(off)
		sum.Write(p)
		if next += int64(len(p)); next >= int64(total) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return sum, err
}

func TestFollowWaitsForTheFileAndBeginsAtTheOffset(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	path := filepath.Join(s.Home, "-later")
	go func() {
		waitUntil(t, "something may wait for the file", func() bool { return len(agents(t, s.Home)) > 0 })
		writeFile(t, path, "0123456789")
	}()
	var got []byte
	err := n.Follow(testContext(t), "-later", 0, func(_ int64, p []byte) error {
		got = append(got, p...)
		return enough(len(got) >= 10)
	})
	if !errors.Is(err, errEnough) || string(got) != "0123456789" {
		t.Errorf("got %q, %v", got, err)
	}
	err = n.Follow(testContext(t), path, 7, func(off int64, p []byte) error {
		if off != 7 || string(p) != "789" {
			t.Errorf("from 7 on got %q at %d", p, off)
		}
		return errEnough
	})
	if !errors.Is(err, errEnough) {
		t.Error(err)
	}
}

func TestFollowThatIsCancelledWhileItWaitsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	writeFile(t, filepath.Join(s.Home, "silent"), "x")
	for _, name := range []string{"silent", "never"} {
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- n.Follow(ctx, name, 0, func(int64, []byte) error { return nil })
		}()
		waitUntil(t, "it follows", func() bool {
			return len(agents(t, s.Home)) > 0 && (name == "never" || followers(t, s.Home) > 0)
		})
		cancel()
		if err := next(t, ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
		waitUntil(t, "nothing is left of it", func() bool { return followers(t, s.Home) == 0 })
	}
}

func TestNothingFollowsAfterClose(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	writeFile(t, filepath.Join(s.Home, "log"), "x")
	ended := make(chan error, 1)
	go func() {
		ended <- n.Follow(testContext(t), "log", 0, func(int64, []byte) error { return nil })
	}()
	waitUntil(t, "it is followed", func() bool { return followers(t, s.Home) > 0 })
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := next(t, ended); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	waitUntil(t, "nothing is left", func() bool { return len(processes(t, s.Home, "")) == 0 })
}

func TestFollowReportsAFileThatBecameShorter(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	path := filepath.Join(s.Home, "log")
	writeFile(t, path, "0123456789")
	var truncated *TruncatedError
	err := n.Follow(testContext(t), path, 0, func(off int64, p []byte) error {
		return os.Truncate(path, 5)
	})
	if !errors.As(err, &truncated) || truncated.Offset != 10 {
		t.Errorf("truncated while it was followed: got %v", err)
	}
	err = n.Follow(testContext(t), path, 10, func(int64, []byte) error { return nil })
	if !errors.As(err, &truncated) {
		t.Errorf("shorter from the start: got %v", err)
	}
}

func TestFollowOfWhatCanNotBeReadIsAnError(t *testing.T) {
	s := sshdtest.Start(t)
	n := openTest(t, s)
	if err := os.Mkdir(filepath.Join(s.Home, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"dir", ""} {
		err := n.Follow(testContext(t), path, 0, func(int64, []byte) error { return nil })
		var fault *wire.Fault
		if !errors.As(err, &fault) {
			t.Errorf("%q: got %v, want what the agent says", path, err)
		}
	}
}

func TestFollowGoesOnWhenTheAgentIsKilled(t *testing.T) {
	t.Parallel()
	s := sshdtest.Start(t)
	n := openTest(t, s)
	path := filepath.Join(s.Home, "log")
	writeFile(t, path, "one")
	var got []byte
	killed := atomic.Bool{}
	err := n.Follow(testContext(t), "log", 0, func(_ int64, p []byte) error {
		got = append(got, p...)
		if killed.CompareAndSwap(false, true) {
			for _, pid := range agents(t, s.Home) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			writeFile(t, path, "onetwo")
		}
		return enough(len(got) >= 6)
	})
	if !errors.Is(err, errEnough) || string(got) != "onetwo" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Whatever an agent tells, each byte that is handed over has its own offset, and
// what is no news ends nothing.
func FuzzFollowedNewsKeepTheirOffsets(f *testing.F) {
	f.Add([]byte("abc"), int64(0), []byte{}, int64(7))
	f.Add([]byte{}, int64(-1), []byte("x"), int64(1)<<62)
	f.Fuzz(func(t *testing.T, a []byte, x int64, b []byte, y int64) {
		next := int64(5)
		move := func(from, to int64) error {
			if from != next || to < from {
				t.Errorf("from %d to %d, after %d", from, to, next)
			}
			next = to
			return nil
		}
		take := following(&wire.FollowRequest{From: next}, func(off int64, p []byte) error { return move(off, off+int64(len(p))) }, move)
		for _, m := range []wire.FollowNews{{Data: a, Dropped: x}, {Data: b}, {Dropped: y}, {Data: b, Dropped: y}, {}} {
			if err := take(m); err != nil {
				t.Error(err)
			}
		}
	})
}

func enough(is bool) error {
	if is {
		return errEnough
	}
	return nil
}

func writeFile(t testing.TB, path, text string) {
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}

func fileSays(path, text string) bool {
	got, err := os.ReadFile(path)
	return err == nil && string(got) == text
}

// waitUntil looks again and again, for at most 10 s.
func waitUntil(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("waited 60 s in vain until %s", what)
			return
		}
	}
}

// followers is how many files in a home directory agents have open.
func followers(t testing.TB, home string) (count int) {
	t.Helper()
	for _, pid := range agents(t, home) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, file := range files {
			if to, _ := os.Readlink(file); strings.HasPrefix(to, home+"/") {
				count++
			}
		}
	}
	return count
}

// agents are the agents of connections to a home directory.
func agents(t testing.TB, home string) []int { return processes(t, home, "\x00serve\x00") }

// processes finds processes by the home directory that they run in.
func processes(t testing.TB, home, program string) (pids []int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		t.Skip("this test looks at processes in /proc, which is not here")
	}
	for _, dir := range dirs {
		wd, err := os.Readlink(filepath.Join(dir, "cwd"))
		cmd, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || wd != home || !strings.Contains(string(cmd), program) {
			continue
		}
		var pid int
		_, _ = fmt.Sscan(filepath.Base(dir), &pid)
		pids = append(pids, pid)
	}
	return pids
}

// alive reports whether the process of a pid in text still runs.
func alive(t testing.TB, text string) bool {
	t.Helper()
	var pid int
	if _, err := fmt.Sscan(text, &pid); err != nil {
		t.Fatalf("%q is no pid", text)
	}
	return syscall.Kill(pid, 0) == nil
}

// firstLine keeps what was written first.
type firstLine struct {
	text string
	then func()
}

func (f *firstLine) Write(p []byte) (int, error) {
	if f.text == "" {
		f.text = string(p)
		f.then()
	}
	return len(p), nil
}

func BenchmarkFollow(b *testing.B) {
	s := sshdtest.Start(b)
	n := openTest(b, s)
	const size = 64 << 20
	path := filepath.Join(s.Home, "log")
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := followAll(b, n, path, size, func(int64) {}); err != nil {
			b.Fatal(err)
		}
	}
}
