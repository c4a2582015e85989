package remote

import (
	"bytes"
	"testing"
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
