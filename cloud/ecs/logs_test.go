package ecs

import (
	"errors"
	"os"
	"testing"

	"github.com/dlwb/dlwb/internal/job"
)

// The file that holds what came of a log is given back: when the cluster goes, and when
// its next job begins, unless somebody reads it still.
func TestTheFileOfALogIsGivenBack(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := New()
	open := func(name string) *spool {
		t.Helper()
		s, err := p.spool(ref{Region: "us-west-2", Cluster: "c", Name: name, Ranks: [][]int{{0}}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	closed := func(s *spool) bool { _, err := s.file.Stat(); return errors.Is(err, os.ErrClosed) }
	first := open("first")
	if err := first.add([]byte("a line\n")); err != nil {
		t.Fatal(err)
	}
	first.whole = true
	first.reader(1)
	if second := open("second"); closed(first) || open("first") != first {
		t.Error("the file is closed under who reads it")
	} else if second.whole = true; open("second") != second {
		t.Error("a log that is over is not given again")
	}
	first.reader(-1)
	third := open("third")
	if !closed(first) || len(p.logs) != 1 {
		t.Errorf("of jobs that are over %d logs are kept", len(p.logs))
	}
	p.forget("another")
	if closed(third) {
		t.Error("the log of another cluster is closed")
	}
	p.forget("c")
	if !closed(third) || len(p.logs) != 0 {
		t.Error("the log of a cluster that is gone is kept")
	}
	err := (&follower{spool: third, sink: func(job.Chunk) error { return nil }}).err()
	if !errors.Is(err, errClosed) {
		t.Errorf("who follows it still gets %v", err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) != 0 {
		t.Errorf("left is %v", left)
	}
}

func (f *follower) err() error { _, _, err := f.pass(); return err }
