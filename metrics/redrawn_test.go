package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// frames are what is written over and over in three epochs: four frames of each.
func frames(form, between string, value func(epoch, i int) []any) string {
	var b strings.Builder
	for epoch := 1; epoch <= 3; epoch++ {
		for i := range 4 {
			b.WriteString("\r" + fmt.Sprintf(form, value(epoch, i)...))
		}
		b.WriteString(between)
	}
	return b.String()
}

// Of what is written over, the last of each epoch is shown, whatever follows it.
func TestTheLastFrameOfEachEpochIsKept(t *testing.T) {
	one := func(epoch, i int) []any { return []any{epoch, float64(5-epoch) - 0.1*float64(i)} }
	const want = "[[1 3.7] [2 2.7] [3 1.7]]"
	for name, log := range map[string]string{
		"the next epoch in the same line":    frames("Epoch %d | loss: %.2f", "", one) + "\n",
		"a line for each epoch":              frames("Epoch %d | loss: %.2f", "\n", one),
		"another message in the same line":   frames("Epoch %d | loss: %.2f", "\rvalidated, val_acc: 0.5\n", one),
		"a percentage":                       frames("Epoch %d/3 [ 40%%] loss=%.2f", "", one) + "\n",
		"Keras whose data ran out":           strings.ReplaceAll(frames("EPOCH %d/3\n\r 7/10 [====>...] - ETA: 1s - loss: %.4f", "\n", one), "EPOCH", "Epoch"),
		"Keras without a line for the epoch": frames("Epoch %d/3\n\r 7/10 [====>...] - ETA: 1s - loss: %.4f", "", one),
	} {
		if got := curve(t, log, "loss"); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A training and its validation that are written over are told apart, also where
// only a word in brackets says which is which.
func TestTrainingAndValidationThatAreRedrawnAreToldApart(t *testing.T) {
	for _, form := range []string{"Epoch %d (%s) loss: %.2f", "Epoch %d %s loss: %.2f", "Epoch %d/3 (%s): loss=%.2f"} {
		for _, end := range []string{"", "\n"} {
			var b strings.Builder
			for epoch := 1; epoch <= 3; epoch++ {
				for at, split := range []string{"train", "val"} {
					for i := range 4 {
						fmt.Fprintf(&b, "\r"+form, epoch, split, float64(5-epoch+at)-0.1*float64(i))
					}
					b.WriteString(end)
				}
			}
			log := b.String() + "\n"
			if got := curve(t, log, "val/loss"); got != "[[1 4.7] [2 3.7] [3 2.7]]" {
				t.Errorf("%q: val/loss %s", form+end, got)
			}
			if got := curve(t, log, "train/loss"); got != "[[1 3.7] [2 2.7] [3 1.7]]" {
				t.Errorf("%q: train/loss %s", form+end, got)
			}
		}
	}
}

// Of ranks that write over the same line, the lowest counts.
func TestOfRanksThatAreRedrawnTheLowestCounts(t *testing.T) {
	log := frames("[rank0] Epoch %d loss=%.2f\r[rank1] Epoch %d loss=%.2f", "", func(epoch, i int) []any {
		return []any{epoch, float64(5-epoch) - 0.1*float64(i), epoch, 9.5}
	}) + "\n"
	if got := curve(t, log, "loss"); got != "[[1 3.7] [2 2.7] [3 1.7]]" {
		t.Error(got)
	}
}
