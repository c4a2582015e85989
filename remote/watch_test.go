package remote

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestALineOfTheStatusThatDoesNotEndIsPassedOver(t *testing.T) {
	var got []Status
	w := &watcher{sink: func(_ int64, s Status) error { got = append(got, s); return nil }}
	feed := func(text []byte) {
		if err := w.take(0, text); err != nil {
			t.Fatal(err)
		}
	}
	feed([]byte("1 started 5\n"))
	for range 100 {
		feed(bytes.Repeat([]byte("1"), 32<<10))
		if len(w.part) > 2*statusMost {
			t.Fatalf("%d bytes are held", len(w.part))
		}
	}
	feed([]byte(" rank 0 ended 3 -\n2 stopping x\n"))
	if len(got) != 2 || got[0].Kind != Started || got[1].Kind != Stopping {
		t.Errorf("%+v", got)
	}
	if want := int64(100*32<<10 + len("1 started 5\n") + len(" rank 0 ended 3 -\n2 stopping x\n")); w.off != want {
		t.Errorf("it is at %d of %d", w.off, want)
	}
}

// On a busy machine, or a busy way, lines come late: two looks that show a run as over end
// no watch of which a line is still to come.
func TestAWatchIsOverWhenAllLinesHaveCome(t *testing.T) {
	var got []Status
	w := &watcher{sink: func(_ int64, s Status) error { got = append(got, s); return nil }}
	const first, second = "1 started 5\n", "2 rank 0 ended 3 -\n"
	state := RunState{State: RunEnded, Offset: int64(len(first + second))}
	if err := w.take(0, []byte(first)); err != nil {
		t.Fatal(err)
	}
	if w.over(state, agreeing) || w.over(state, lastLook-1) {
		t.Error("it is over, and a line is still to come")
	}
	if !w.over(state, lastLook) {
		t.Error("a line that never comes is waited for without end")
	}
	if err := w.take(0, []byte(second)); err != nil {
		t.Fatal(err)
	}
	if w.over(state, agreeing-1) || !w.over(state, agreeing) {
		t.Error("two looks in a row have to agree")
	}
	// What a full disk kept out of the status is in the records.
	lost := &LostRunError{State: RunState{Exit: &Exit{Code: 3}, Ranks: map[int]Exit{0: {Code: 3}, 2: {Code: 1, EndUp: time.Hour}, 1: {Code: 4}}}}
	if err := w.close(lost); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, s := range got {
		told = append(told, fmt.Sprint(s.Kind, " ", s.Rank, " ", s.Code, " ", s.Uptime))
	}
	if want := []string{"started -1 0 0s", "rank-ended 0 3 0s", "rank-ended 1 4 0s", "rank-ended 2 1 1h0m0s", "ended -1 3 0s"}; !slices.Equal(told, want) {
		t.Errorf("it told %q", told)
	}
}
