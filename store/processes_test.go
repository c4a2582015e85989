package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The events each process of the tests writes: enough for hundreds of changes
// of the writer, few enough for a slow disk.
const (
	batches   = 30
	batchSize = 4
)

// playPart is what the test binary does when a test has started it again as
// another process.
func playPart(part string) int {
	s, err := Open(os.Getenv("DLWB_STORE_TEST_PATH"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	if err := writeBatches(s, part); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func writeBatches(s *Store, part string) error {
	if _, err := s.PutCluster(Cluster{Name: "shared"}); err != nil {
		return err
	}
	run := "run-" + part
	if err := s.PutRun(Run{ID: run, Cluster: "shared"}); err != nil {
		return err
	}
	for i := range batches {
		var events []Event
		for j := range batchSize {
			events = append(events, Event{Cluster: "shared", Name: part, Body: []byte(strconv.Itoa(i*batchSize + j))})
		}
		if _, err := s.AppendAll(events); err != nil {
			return err
		}
		if err := s.AddPoints(run, []Point{{Name: "loss", Ordinal: int64(i), Value: 1}}); err != nil {
			return err
		}
	}
	return nil
}

// again starts this test binary as another process that plays a part.
func again(t *testing.T, path, part string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), "DLWB_STORE_TEST_PART="+part, "DLWB_STORE_TEST_PATH="+path)
	cmd.Stderr = &bytes.Buffer{}
	check(t, cmd.Start())
	return cmd
}

func TestProcessesThatWriteAtOnceLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "dlwb.db") // all of them make the file and its schema
	parts := []string{"p0", "p1", "p2"}
	var cmds []*exec.Cmd
	for _, part := range parts {
		cmds = append(cmds, again(t, path, part))
	}
	s := openAt(t, path)
	ended := make(chan error)
	go func() {
		var failed error
		for i, cmd := range cmds {
			if err := cmd.Wait(); err != nil {
				failed = fmt.Errorf("%s: %w: %s", parts[i], err, cmd.Stderr)
			}
		}
		ended <- failed
	}()
	seen := follow(t, s, ended)
	if !slices.IsSortedFunc(seen, func(a, b Event) int { return int(a.Seq - b.Seq) }) {
		t.Error("a follower saw events out of order")
	}
	all := must[[]Event](t)(s.Since("shared", 0, 0))
	if len(seen) != len(all) || len(all) != len(parts)*batches*batchSize {
		t.Errorf("%d events stored, %d seen by a follower, want %d", len(all), len(seen), len(parts)*batches*batchSize)
	}
	checkOrder(t, all)
	for _, part := range parts {
		if points := must[[]Point](t)(s.Points("run-" + part)); len(points) != batches {
			t.Errorf("%s: %d points, want %d", part, len(points), batches)
		}
	}
	if lives := must[[]Cluster](t)(s.Clusters()); len(lives) != 1 {
		t.Errorf("%d lives of one cluster", len(lives))
	}
}

// follow reads new events as they come, always from the last one it has, until
// all writers have ended.
func follow(t *testing.T, s *Store, ended <-chan error) (seen []Event) {
	t.Helper()
	var last int64
	for done := false; ; {
		batch := must[[]Event](t)(s.Since("shared", last, 50))
		seen = append(seen, batch...)
		if len(batch) > 0 {
			last = batch[len(batch)-1].Seq
			continue
		}
		if done {
			return seen
		}
		select {
		case err := <-ended:
			check(t, err)
			done = true // what came between the last look and the end is still to be read
		case <-time.After(time.Millisecond):
		}
	}
}

// checkOrder checks that the events of each process are all there in the order
// in which it wrote them, and that no batch was torn apart.
func checkOrder(t *testing.T, all []Event) {
	t.Helper()
	next := map[string]int{}
	for i, e := range all {
		if got := string(e.Body); got != strconv.Itoa(next[e.Name]) {
			t.Fatalf("%s: event %s, want %d", e.Name, got, next[e.Name])
		}
		if next[e.Name]%batchSize > 0 && (all[i-1].Name != e.Name || all[i-1].Seq != e.Seq-1) {
			t.Fatalf("a batch of %s was torn apart at %s", e.Name, e.Body)
		}
		next[e.Name]++
	}
}

func TestWhatAKilledProcessCommittedIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dlwb.db")
	s := openAt(t, path)
	cmd := again(t, path, "victim")
	var before []Event
	for deadline := time.Now().Add(60 * time.Second); len(before) < batchSize; {
		if time.Now().After(deadline) {
			t.Fatalf("the process wrote nothing: %s", cmd.Stderr)
		}
		before = must[[]Event](t)(s.Since("shared", 0, 0))
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, or just done
	after := must[[]Event](t)(s.Since("shared", 0, 0))
	if len(after) < len(before) || len(after)%batchSize != 0 {
		t.Fatalf("%d events before the kill, %d after", len(before), len(after))
	}
	checkOrder(t, after)
	if _, err := s.Append(Event{Cluster: "shared"}); err != nil {
		t.Fatalf("the store can't be written after a kill: %v", err)
	}
	var verdict string
	check(t, s.r.QueryRow("PRAGMA integrity_check").Scan(&verdict))
	if !strings.EqualFold(verdict, "ok") {
		t.Fatal(verdict)
	}
}
