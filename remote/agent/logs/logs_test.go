//go:build linux

package logs

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dlwb/dlwb/remote/agent/runs"
)

// lines is a pipe into which a program writes a line every so often.
type lines struct {
	every time.Duration
	next  time.Time
	left  int
	reads int
}

const line = "a line of a program\n"

// Read gives what lies in the pipe, as soon as there is anything.
func (p *lines) Read(to []byte) (n int, err error) {
	p.reads++
	if p.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(time.Until(p.next))
	for p.left > 0 && n+len(line) <= len(to) && !p.next.After(time.Now()) {
		n += copy(to[n:], line)
		p.left, p.next = p.left-1, p.next.Add(p.every)
	}
	return n, nil
}

// A program that writes each line by itself, as Python does here, costs few reads and
// writes; one that prints now and then is read at once.
func TestAFloodOfLinesIsReadTogether(t *testing.T) {
	for every, want := range map[time.Duration]struct{ least, most int }{
		10 * time.Microsecond: {10, 200}, 100 * time.Microsecond: {100, 700}, 20 * time.Millisecond: {10_000, 10_001},
	} {
		synctest.Test(t, func(t *testing.T) {
			run := runs.At(t.TempDir())
			l, err := Open(run, "rank-0.log")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			from := &lines{every: every, next: time.Now(), left: 10_000}
			l.copyFrom(from)
			info, err := os.Stat(run.Path("rank-0.log"))
			if err != nil || info.Size() != 10_000*int64(len(line)) {
				t.Errorf("every %v: the log has %d bytes, %v", every, info.Size(), err)
			}
			if from.reads < want.least || from.reads > want.most {
				t.Errorf("every %v: %d reads, want %d to %d", every, from.reads, want.least, want.most)
			}
		})
	}
}

// What comes now and then is there at once.
func TestALineOfItsOwnIsNotHeldBack(t *testing.T) {
	run := runs.At(t.TempDir())
	l, err := Open(run, "rank-0.log")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read, write, err := Pipe(run, "rank-0.log")
	if err != nil {
		t.Fatal(err)
	}
	ended := l.Capture(read)
	for i := range 5 {
		if _, err := write.WriteString("line\n"); err != nil {
			t.Fatal(err)
		}
		for limit := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
			if info, err := os.Stat(run.Path("rank-0.log")); err == nil && info.Size() == int64(5*(i+1)) {
				break
			}
			if time.Now().After(limit) {
				t.Fatalf("line %d did not come", i)
			}
		}
	}
	_ = write.Close()
	<-ended.ended
}

// What a rank prints while its output gathers lies in the pipe: with the usual 64 KB a
// million lines from Python waited for the log half of the time.
func TestAPipeHoldsWhatIsPrintedWhileOutputGathers(t *testing.T) {
	read, write, err := Pipe(runs.At(t.TempDir()), "rank-0.log")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = read.Close(), write.Close() }()
	if err := syscall.SetNonblock(int(write.Fd()), true); err != nil {
		t.Fatal(err)
	}
	most, err := os.ReadFile("/proc/sys/fs/pipe-max-size")
	if err != nil {
		t.Fatal(err)
	}
	want := pipeSize
	if limit, _ := strconv.Atoi(strings.TrimSpace(string(most))); limit < want {
		want = limit
	}
	held := 0
	for held < want {
		n, err := syscall.Write(int(write.Fd()), make([]byte, 4096))
		if err != nil {
			break
		}
		held += n
	}
	if held != want {
		t.Errorf("the pipe holds %d bytes", held)
	}
}

// A disk that stands still holds up the record of a process, and its last words are in
// the log before that. What it has left behind is not waited for.
func TestLastWordsAreAwaitedWhileTheDiskStandsStill(t *testing.T) {
	run := runs.At(t.TempDir())
	l, err := Open(run, "rank-0.log")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close() // somebody holds it when the process has ended
	l.mu.Lock()         // the disk stands still
	p := l.Capture(read)
	if _, err := write.WriteString("last words\n"); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() { p.Drained(); close(drained) }()
	select {
	case <-drained:
		t.Error("its last words are not in the log, and nobody waits")
	case <-time.After(2 * drainLimit):
	}
	l.mu.Unlock()
	<-drained
	if text, err := os.ReadFile(run.Path("rank-0.log")); string(text) != "last words\n" {
		t.Errorf("the log has %q, %v", text, err)
	}
}
