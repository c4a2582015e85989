package metrics

import (
	"io"
	"testing"
	"time"
)

// A CSV that grows is read row by row, however little of it there is yet.
func TestTheFirstRowOfAGrowingCSVIsReadAtOnce(t *testing.T) {
	for name, text := range map[string]string{"commas": "step,loss\n1,4\n", "semicolons, behind a comment": "# a run\nstep;loss\n1;4\n"} {
		r, w := io.Pipe()
		points, done := make(chan Point, 8), make(chan error, 1)
		go func() {
			done <- ReadCSV(r, func(all ...Point) {
				for _, p := range all {
					points <- p
				}
			})
		}()
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		select {
		case p := <-points:
			if p.Name != "loss" || p.Step == nil || *p.Step != 1 || p.Value != 4 {
				t.Errorf("%s: read %+v", name, p)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the row is not read while the file is open", name)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
