package follow

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/job"
)

// at is a piece of a log that is read by byte offsets.
func at(off int64, p string) job.Chunk {
	return job.Chunk{From: job.Offset(off), Next: job.Offset(off + int64(len(p))), Data: []byte(p)}
}

func TestAStoredLogIsAlwaysAPrefix(t *testing.T) {
	path := t.TempDir() + "/log"
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []string{"one\n", "two\n"} {
		if err := l.append(at(int64(4*i), p)); err != nil {
			t.Fatal(err)
		}
	}
	for _, off := range []int64{0, 4, 9} {
		if err := l.append(at(off, "x")); err == nil {
			t.Errorf("bytes at offset %d were taken", off)
		}
	}
	if got := l.tail(1); !reflect.DeepEqual(got, []string{"two"}) {
		t.Errorf("tail %q", got)
	}
	if err := l.f.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.f.Close()
	var all strings.Builder
	if err := again.replay(func(p []byte) error { all.Write(p); return nil }); err != nil || all.String() != "one\ntwo\n" || again.size() != 8 {
		t.Errorf("%q, size %d, %v", all.String(), again.size(), err)
	}
}

func TestMissingBytesOfALogAreALineAndCountAsRead(t *testing.T) {
	path := t.TempDir() + "/log"
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.append(at(0, "one")); err != nil {
		t.Fatal(err)
	}
	gap := job.Chunk{From: job.Offset(3), Next: job.Offset(1003), Missing: 1000}
	text, err := l.drop(gap)
	if err != nil || !strings.Contains(string(text), "1000 bytes") {
		t.Fatalf("%q, %v", text, err)
	}
	if _, err := l.drop(gap); err == nil {
		t.Error("the same bytes were dropped twice")
	}
	if err := l.append(at(1003, "two\n")); err != nil || l.size() != 1007 {
		t.Errorf("size %d, %v", l.size(), err)
	}
	l.f.Close()
	want := "one" + string(text) + "two\n"
	// A crash may have cut the file anywhere: what is there is gone on from.
	for cut := len(want); cut >= 0; cut-- {
		if err := os.WriteFile(path, []byte(want[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		stored := want[:cut]
		if cut >= 3 && cut < 3+len(text) {
			stored = want[:3+len(text)] // the line is made whole
		}
		size := int64(len(stored))
		if len(stored) > 3 {
			size += 1000 - int64(len(text))
		}
		if got, _ := os.ReadFile(path); string(got) != stored || again.size() != size {
			t.Errorf("cut at %d: the file holds %q, size %d; want %q, %d", cut, got, again.size(), stored, size)
		}
		again.f.Close()
	}
}

// tokens is a log of pieces that only tokens tell apart.
var tokens = []job.Chunk{
	{Next: "t/1", Data: []byte("one\n")}, {From: "t/1", Next: "t/2"}, {From: "t/2", Next: "t/3", Missing: 7},
	{From: "t/3", Next: "t/4", Data: []byte("two\n")}, {From: "t/4", Next: "t/5", Data: []byte("three\n")},
}

func take(l *logFile, c job.Chunk) (err error) {
	if c.Missing > 0 {
		_, err = l.drop(c)
		return err
	}
	return l.append(c)
}

// A crash may come at any moment: the log that goes on from the cursor on record
// is what it would have been without one.
func TestALogReadByTokensIsTheSameAfterACrashAtAnyMoment(t *testing.T) {
	whole, err := openLog(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tokens {
		if err := take(whole, c); err != nil {
			t.Fatal(err)
		}
	}
	whole.close()
	want, err := os.ReadFile(whole.f.Name())
	if err != nil || !strings.HasPrefix(string(want), "one\n") || !strings.HasSuffix(string(want), "two\nthree\n") {
		t.Fatalf("%q, %v", want, err)
	}
	for synced := range len(tokens) + 1 {
		for crash := synced; crash <= len(tokens); crash++ {
			path := t.TempDir() + "/log"
			l, err := openLog(path)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range tokens[:crash] {
				l.synced = time.Now() // only when it is told to
				if i == synced {
					if err := l.sync(); err != nil {
						t.Fatal(err)
					}
				}
				if err := take(l, c); err != nil {
					t.Fatal(err)
				}
			}
			l.f.Close()
			again, err := openLog(path)
			if err != nil {
				t.Fatalf("crash at %d: %v", crash, err)
			}
			next := again.cursor()
			for _, c := range tokens {
				if c.From != next {
					continue
				}
				if err := take(again, c); err != nil {
					t.Fatal(err)
				}
				next = c.Next
			}
			again.close()
			if got, _ := os.ReadFile(path); string(got) != string(want) {
				t.Errorf("synced before %d, crash before %d: %q, want %q", synced, crash, got, want)
			}
		}
	}
}

// A state directory of an older dlwb has no cursors: the size is it.
func TestALogWithoutACursorGoesOnFromItsSize(t *testing.T) {
	path := t.TempDir() + "/log"
	if err := os.WriteFile(path, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := openLog(path)
	if err != nil || l.cursor() != "4" {
		t.Fatalf("%q, %v", l.cursor(), err)
	}
	if err := l.append(at(4, "two\n")); err != nil {
		t.Fatal(err)
	}
	l.close()
	if _, err := os.Stat(l.cursorPath()); !os.IsNotExist(err) {
		t.Errorf("a cursor that the size says is kept in a file: %v", err)
	}
}
