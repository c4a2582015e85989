//go:build linux

package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const segment = 1000

// following is a Reader under way.
type following struct {
	t     *testing.T
	stop  context.CancelFunc
	ended chan error

	mu  sync.Mutex
	got []byte // dropped bytes are "?"
	err error
}

func follow(t *testing.T, path string, from, segment int64) *following {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &following{t: t, stop: stop, ended: make(chan error, 1), got: bytes.Repeat([]byte{'-'}, int(from))}
	r := &Reader{Path: path, Offset: from, Segment: segment}
	r.Data = func(p []byte) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if int(r.Offset) != len(f.got) {
			return fmt.Errorf("bytes of offset %d come after %d", r.Offset, len(f.got))
		}
		f.got = append(f.got, p...)
		return f.err
	}
	r.Dropped = func(to int64) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.got = append(f.got, bytes.Repeat([]byte{'?'}, int(to)-len(f.got))...)
		return nil
	}
	go func() { f.ended <- r.Follow(ctx) }()
	t.Cleanup(stop)
	return f
}

// has waits until so much has come.
func (f *following) has(want string) {
	f.t.Helper()
	text := func() string {
		f.mu.Lock()
		defer f.mu.Unlock()
		return string(f.got)
	}
	for limit := time.Now().Add(time.Minute); text() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(limit) || len(text()) > len(want) {
			f.t.Fatalf("got %.300q, want %.300q", text(), want)
		}
		select {
		case err := <-f.ended:
			f.t.Fatalf("it ended: %v", err)
		default:
		}
	}
}

// ends waits for its end.
func (f *following) ends() error {
	f.t.Helper()
	select {
	case err := <-f.ended:
		return err
	case <-time.After(time.Minute):
		f.t.Fatal("it did not end")
		return nil
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// writeLog appends a text to a log as its writer does.
func writeLog(t *testing.T, path string, off int, text string) {
	t.Helper()
	for len(text) > 0 {
		name := path
		if k := off / segment; k > 0 {
			name += "." + strconv.Itoa(k)
		}
		piece := text[:min(segment-off%segment, len(text))]
		write(t, name, piece)
		text, off = text[len(piece):], off+len(piece)
	}
}

func counted(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%9d\n", i)
	}
	return b.String()
}

func TestAFileIsWaitedForAndFollowedFromAnOffset(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a log")
	all, rest := follow(t, path, 0, 0), follow(t, path, 7, 0)
	time.Sleep(2 * pollLeast)
	write(t, path, "0123456789")
	all.has("0123456789")
	rest.has("-------789")
	write(t, path, "ten")
	all.has("0123456789ten")
	rest.has("-------789ten")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	all.stop()
	if err := all.ends(); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestAFileThatBecameShorterOrWasReplacedIsAnError(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"truncated": func(path string) error { return os.Truncate(path, 5) },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", make([]byte, 100), 0o600), os.Rename(path+".new", path))
		},
	} {
		path := filepath.Join(t.TempDir(), "log")
		write(t, path, "0123456789")
		f := follow(t, path, 0, 0)
		f.has("0123456789")
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		if err := f.ends(); !errors.Is(err, ErrTruncated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, "0123456789")
	if err := follow(t, path, 11, 0).ends(); !errors.Is(err, ErrTruncated) {
		t.Errorf("shorter from the start: %v", err)
	}
}

func TestWhatIsNoFileIsAnErrorAndNoWait(t *testing.T) {
	if err := follow(t, t.TempDir(), 0, 0).ends(); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("a directory: %v", err)
	}
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "x")
	if err := follow(t, filepath.Join(path, "below"), 0, 0).ends(); err == nil {
		t.Error("below a file is something")
	}
	f := &following{err: errors.New("enough")}
	r := Reader{Path: path, Data: func([]byte) error { return f.err }}
	if err := r.Follow(t.Context()); !errors.Is(err, f.err) {
		t.Errorf("it ended with %v", err)
	}
}

func TestALogIsFollowedFromSegmentToSegmentByManyReaders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rank-0.log")
	text := counted(3000)
	readers := []*following{}
	for off := 0; off < len(text); {
		if len(readers) < 8 {
			readers = append(readers, follow(t, path, int64(min(off, rand.IntN(off+1))), segment))
		}
		piece := text[off:min(off+1+rand.IntN(2*segment), len(text))]
		writeLog(t, path, off, piece)
		off += len(piece)
	}
	for _, r := range readers {
		r.mu.Lock()
		from := bytes.Count(r.got, []byte{'-'})
		r.mu.Unlock()
		r.has(strings.Repeat("-", from) + text[from:])
	}
}

func TestBytesThatAreNotThereAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rank-0.log")
	text := counted(500) // five segments
	writeLog(t, path, 0, text)
	gone := func(n int) string { return strings.Repeat("?", n) }
	early := follow(t, path, 0, segment)
	early.has(text)
	for _, name := range []string{path, path + ".1"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	follow(t, path, 300, segment).has(strings.Repeat("-", 300) + gone(1700) + text[2000:])
	// A full disk has left a segment shorter than it should be.
	write(t, path+".5", "short")
	writeLog(t, path, 6*segment, "long")
	early.has(text + "short" + gone(995) + "long")
	// While one is read, it and the next ones go.
	for _, name := range []string{path + ".6", path + ".5", path + ".4"} {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	writeLog(t, path, 9*segment, "last")
	early.has(text + "short" + gone(995) + "long" + gone(2996) + "last")
}

func TestAFloodIsNotLostAndNotTwice(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	f := follow(t, path, 0, 0)
	text := counted(200_000)
	for off := 0; off < len(text); {
		piece := text[off:min(off+1+rand.IntN(100_000), len(text))]
		write(t, path, piece)
		off += len(piece)
	}
	f.has(text)
}

func BenchmarkFollow(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log")
	const size = 64 << 20
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		b.Fatal(err)
	}
	enough := errors.New("enough")
	b.SetBytes(size)
	for b.Loop() {
		r := Reader{Path: path}
		r.Data = func(p []byte) error {
			if r.Offset+int64(len(p)) == size {
				return enough
			}
			return nil
		}
		if err := r.Follow(b.Context()); !errors.Is(err, enough) {
			b.Fatal(err)
		}
	}
}
