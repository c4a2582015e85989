package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/metrics/behind"
)

// Where the line that says where the run is stands among the lines of its values does not matter: the same series
// come of each order, at the same places.
func TestAPlaceMayStandBehindItsValues(t *testing.T) {
	names := [][]string{
		{"Train loss", "Val loss", "Val accuracy"},
		{"train_loss", "train_acc", "grad_norm"},
		{"loss", "accuracy", "val_f1"},
		{"G loss", "D loss", "fid"},
	}
	values := []string{"%s: %.4f", "%s = %.4f", "[INFO] %s: %.4f", "2024-05-01 12:00:00,123 INFO %s: %.4f"}
	places := []string{"Epoch %d done", "epoch %d", "---------------- epoch %d finished in 12.0s ----------------", "Epoch %d/6 completed, saved to ckpt.pt", "step %d", "[INFO] Epoch [%d/6] took 12s", "Epoch %d took 12.1 s, 812.5 samples/s"}
	for _, of := range names {
		for _, value := range values {
			for _, place := range places {
				for count := 1; count <= len(of); count++ {
					for at := 0; at <= count; at++ {
						if at > 0 && at < count && strings.HasPrefix(strings.ToLower(of[0]), "val") {
							continue // validated before the training begins, as often as not
						}
						if at > 0 && behind.Bare(fmt.Sprintf(place, 1)) && !slices.ContainsFunc(of[:at], func(name string) bool { return Split(ShownAs(name)) == "train" }) {
							continue // a bare heading, and what may be of an evaluation before the training: see below
						}
						log, want := periods(of[:count], value, place, at)
						if got := drawn(&readText(t, log).Set); !sameSeries(got, want) {
							t.Errorf("place %d of %d:\n%sread as\n%swant\n%s", at, count, log, got, want)
						}
					}
				}
			}
		}
	}
}

// periods is a training of six periods that tells of its place behind so many values.
func periods(names []string, value, place string, at int) (log, want string) {
	var b strings.Builder
	points := make([]string, len(names))
	for n := 1; n <= 6; n++ {
		for i, name := range names {
			if i == at {
				fmt.Fprintf(&b, place+"\n", n)
			}
			v := fmt.Sprintf("%.4f", 0.1*float64(i+1)+1/float64(n+1))
			fmt.Fprintf(&b, value+"\n", name, 0.1*float64(i+1)+1/float64(n+1))
			points[i] += fmt.Sprintf(" %d:%s", n, strings.TrimRight(v, "0"))
		}
		if at == len(names) {
			fmt.Fprintf(&b, place+"\n", n)
		}
	}
	axis := "epoch"
	if strings.HasPrefix(place, "step") {
		axis = "step"
	}
	for i, name := range names {
		want += fmt.Sprintf("%s %s%s\n", ShownAs(name), axis, points[i])
	}
	return b.String(), want
}

// sameSeries reports whether two drawings have the same lines, and nothing but rates beside them.
func sameSeries(got, want string) bool {
	left := map[string]bool{}
	for line := range strings.Lines(want) {
		left[line] = true
	}
	for line := range strings.Lines(got) {
		if !left[line] && !strings.Contains(line, "_per_sec") {
			return false
		}
		delete(left, line)
	}
	return len(left) == 0
}

// What was measured before the first place stays there, when the places are told before their values.
func TestWhatWasMeasuredBeforeTheTrainingHasNoPlace(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"a validation before the training",
			"val loss: 0.9\nEpoch 1\ntrain loss: 0.8\nval loss: 0.7\nEpoch 2\ntrain loss: 0.6\nval loss: 0.5\n",
			"val/loss epoch 1:0.7 2:0.5\ntrain/loss epoch 1:0.8 2:0.6\n"},
		{"settings",
			"lr: 0.01\ndropout: 0.5\nEpoch 1\nloss: 0.8\nEpoch 2\nloss: 0.6\nEpoch 3\nloss: 0.5\n",
			"loss epoch 1:0.8 2:0.6 3:0.5\n"},
		{"an evaluation before the training, and bare headings",
			"loss: 2.3\naccuracy: 0.1\nEpoch 1\nloss: 1.9\naccuracy: 0.3\nEpoch 2\nloss: 1.2\naccuracy: 0.5\nEpoch 3\nloss: 0.9\naccuracy: 0.6\n",
			"loss epoch 1:1.9 2:1.2 3:0.9\naccuracy epoch 1:0.3 2:0.5 3:0.6\n"},
		{"epochs that begin",
			"loss: 0.9\nStarting epoch 1\nloss: 0.8\nStarting epoch 2\nloss: 0.7\nStarting epoch 3\nloss: 0.6\n",
			"loss epoch 1:0.8 2:0.7 3:0.6\n"},
	} {
		t.Run(c.name, func(t *testing.T) { compareLines(t, drawn(&readText(t, c.log).Set), c.want) })
	}
}

// A place may have values itself: what is told of the training before it is of it, and what may be of a
// validation before the training is not.
func TestAPlaceWithValuesMayStandBehindOthers(t *testing.T) {
	for _, c := range []struct{ name, log, want string }{
		{"the training before",
			"train loss: 0.9\nEpoch 1/3: val loss 0.8\ntrain loss: 0.7\nEpoch 2/3: val loss 0.6\ntrain loss: 0.5\nEpoch 3/3: val loss 0.4\n",
			"train/loss epoch 1:0.9 2:0.7 3:0.5\nval/loss epoch 1:0.8 2:0.6 3:0.4\n"},
		{"a validation first",
			"val loss: 0.9\nEpoch 1: train loss 0.8\nval loss: 0.7\nEpoch 2: train loss 0.6\nval loss: 0.5\n",
			"train/loss epoch 1:0.8 2:0.6\nval/loss epoch 1:0.7 2:0.5\n"},
		{"a box before",
			"-------------\n| loss | 0.9 |\n| acc | 0.1 |\n-------------\nstep 10\n-------------\n| loss | 0.8 |\n| acc | 0.2 |\n-------------\nstep 20\n-------------\n| loss | 0.7 |\n| acc | 0.3 |\n-------------\nstep 30\n",
			"loss step 10:0.9 20:0.8 30:0.7\nacc step 10:0.1 20:0.2 30:0.3\n"},
		{"a score of nobody knows what first",
			"accuracy: 0.1\nEpoch 1: loss 0.8\naccuracy: 0.7\nEpoch 2: loss 0.6\naccuracy: 0.8\n",
			"loss epoch 1:0.8 2:0.6\naccuracy epoch 1:0.7 2:0.8\n"},
	} {
		t.Run(c.name, func(t *testing.T) { compareLines(t, drawn(&readText(t, c.log).Set), c.want) })
	}
}

// A run that was killed has told values of a place that it never came to: it is the next.
func TestValuesWhosePlaceNeverCameAreOfTheNext(t *testing.T) {
	log := "loss: 0.9\nacc: 0.1\nEpoch 10 done\nloss: 0.8\nacc: 0.2\nEpoch 20 done\nloss: 0.7\nacc: 0.3\nEpoch 30 done\nloss: 0.6\n"
	compareLines(t, drawn(&readText(t, log).Set), "loss epoch 10:0.9 20:0.8 30:0.7 40:0.6\nacc epoch 10:0.1 20:0.2 30:0.3\n")
}

// A run that goes on from a checkpoint tells places again, behind its values as before.
func TestAResumedRunTellsItsPlacesAsBefore(t *testing.T) {
	r := NewReader(nil)
	feedLines(r, "loss: 0.9", "Epoch 1 done", "loss: 0.8", "Epoch 2 done", "loss: 0.7", "Epoch 3 done")
	for _, c := range []struct {
		value string
		epoch float64
	}{{"0.75", 2}, {"0.65", 3}, {"0.6", 4}} {
		got := feedLines(r, "loss: "+c.value, fmt.Sprintf("Epoch %v done", c.epoch))
		if len(got) != 1 || *got[0].Epoch != c.epoch || fmt.Sprint(got[0].Value) != c.value {
			t.Errorf("epoch %v of %s: %v", c.epoch, c.value, got)
		}
	}
}

// Once the order is known, values come as soon as their place does: a chart that is looked at while
// the training goes on is one line behind, not more.
func TestOfAKnownOrderValuesComeWithTheirPlace(t *testing.T) {
	r := NewReader(nil)
	feedLines(r, "loss: 0.9", "Epoch 1 done", "loss: 0.8", "Epoch 2 done")
	if got := feedLines(r, "loss: 0.7"); len(got) != 0 {
		t.Errorf("a value came before its place: %v", got)
	}
	if got := feedLines(r, "Epoch 3 done"); len(got) != 1 || *got[0].Epoch != 3 || got[0].Value != 0.7 {
		t.Errorf("with its place came %v", got)
	}
}

// feedLines feeds lines and returns the points that they gave.
func feedLines(r *Reader, lines ...string) (all []Point) {
	for _, line := range lines {
		all = append(all, r.Feed([]byte(line+"\n"), time.Time{})...)
	}
	return all
}
