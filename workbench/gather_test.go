package workbench

import (
	"os"
	"testing"
	"time"

	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/reading"
)

// A node that prints fast makes hundreds of pieces a second, and each look at them is
// three questions to the store: they are looked at together.
func TestAFloodIsReadTogetherAndNoneOfItIsLost(t *testing.T) {
	w := newBench(t, t.TempDir())
	begin(t, w, "c", "r")
	sub := w.Subscribe("c")
	defer sub.Close()
	sub.Next(t.Context())
	f, err := os.Create(w.logPath("r", 0))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const pieces, lasts = 300, 600 * time.Millisecond
	looked, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		for i := range pieces {
			if i == pieces/2 {
				<-looked // else a reader that had no processor for so long needs no second look
			}
			_, _ = f.WriteString("line\n")
			w.changed()
			time.Sleep(lasts / pieces)
		}
	}()
	looks, size, began := 0, int64(0), time.Now()
	for size < 5*pieces {
		for _, e := range sub.Next(t.Context()) {
			if b, is := e.Body.(event.LogGrew); is {
				if size, looks = b.Size, looks+1; looks == 1 {
					close(looked)
				}
			}
		}
	}
	<-written
	if most := int(time.Since(began)/reading.GatherFor) + 2; looks > most || looks < 2 {
		t.Errorf("%d pieces were looked at %d times in %v, want %d at most", pieces, looks, time.Since(began), most)
	}
}
