package metrics

import (
	"fmt"
	"strings"
	"testing"
)

// Two values whose names differ in the number that they begin with are two series, in any order and
// any form; without it the second would be lost, and the first be of neither.
func TestNamesThatBeginWithANumberAreToldApart(t *testing.T) {
	for _, names := range [][2]string{{"1-shot acc", "5-shot acc"}, {"1-step loss", "12-step loss"}, {"2D/loss", "3D/loss"}, {"2d_loss", "3d_loss"}} {
		for _, form := range []string{"epoch %d: %s: %s %s: %s", "epoch %d | %s: %s | %s: %s", "epoch %d took 5s, 12it/s, %s: %s, %s: %s", "2024-05-01 12:00:00,123 INFO epoch %d %s: %s, %s: %s", "Epoch: %d, eta: 0:01:10, %s=%s, %s=%s"} {
			for _, swapped := range []bool{false, true} {
				t.Run(fmt.Sprint(names[0], form, swapped), func(t *testing.T) {
					a, b := names[0], names[1]
					if swapped {
						a, b = b, a
					}
					log := ""
					for i, v := range []string{"91", "74", "68", "52"} {
						log += fmt.Sprintf(form+"\n", i+1, a, "0."+v, b, "0.1"+v)
					}
					show := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, " ", "_")) }
					compareLines(t, drawn(&readText(t, log).Set), show(a)+" epoch 1:0.91 2:0.74 3:0.68 4:0.52\n"+show(b)+" epoch 1:0.191 2:0.174 3:0.168 4:0.152\n")
				})
			}
		}
	}
}

// A number before what is a name without it counts: no series is called for each.
func TestACountBeforeANameIsNoPartOfIt(t *testing.T) {
	for _, form := range []string{"Step %d-loss: %s", "Epoch %d-val_loss: %s", "epoch %d-train loss %s", "Epoch:%d-loss:%s", "[%d-acc: %s", "%d-loss: %s", "%d-train_loss=%s"} {
		log := ""
		for i, v := range []string{"0.91", "0.74", "0.68", "0.52"} {
			log += fmt.Sprintf(form+"\n", i+1, v)
		}
		if got := drawn(&readText(t, log).Set); strings.Contains(got, "-") {
			t.Errorf("%s:\n%s", form, got)
		}
	}
}

// The number by which lines of one shape are placed is no series beside their values.
func TestWhatCountsIsNoSeries(t *testing.T) {
	for _, form := range []string{"cycle= %d dE= %s  |g|= %s", "cycle= %d dE= %s  |g|= %s\n  gap = 1.5  up = 0.1", "cycle: %d, dE: %s, |g|: %s\nlow = 0.2  up = 0.1"} {
		t.Run(form, func(t *testing.T) {
			log := ""
			for i, v := range []string{"91", "74", "68", "52", "31"} {
				log += fmt.Sprintf(form+"\n", i+1, "0."+v, "0.1"+v)
			}
			got := drawn(&readText(t, log).Set)
			for line := range strings.Lines(got) {
				if strings.HasPrefix(line, "cycle ") {
					t.Errorf("what counts is a series: %s", got)
				}
			}
			if !strings.Contains(got, "dE step 1:0.91 2:0.74 3:0.68 4:0.52 5:0.31\n") || !strings.Contains(got, "g step 1:0.191 2:0.174 3:0.168 4:0.152 5:0.131\n") {
				t.Errorf("not read at the count:\n%s", got)
			}
		})
	}
}

// A count at the very beginning of a line takes nothing from the dictionary behind it.
func TestADictionaryStandsBehindItsCount(t *testing.T) {
	for _, form := range []string{"%d/4 {'loss': %s, 'acc': 0.5}", "%d/4: {'loss': %s, 'acc': 0.5}", "(%d/4) {'loss': %s, 'acc': 0.5}"} {
		t.Run(form, func(t *testing.T) {
			log := ""
			for i, v := range []string{"0.91", "0.74", "0.68", "0.52"} {
				log += fmt.Sprintf(form+"\n", i+1, v)
			}
			compareLines(t, drawn(&readText(t, log).Set), "loss step 1:0.91 2:0.74 3:0.68 4:0.52\nacc step 1:0.5 2:0.5 3:0.5 4:0.5\n")
		})
	}
}

// Scores of folds are no curve; whatever else counts in a fold is a place as ever.
func TestAFoldIsNoPlace(t *testing.T) {
	for form, want := range map[string]string{
		"[CV %d/3] END depth=2;, score=%s total time=   0.0s": "",
		"Fold %d/3 val_loss: %s":                              "",
		"Fold: %d of 3, accuracy %s":                          "",
		"[Fold 1/3] epoch %d: val_loss: %s":                   "val/loss epoch 1:0.91 2:0.74 3:0.68\n",
		"Fold 1/3 | Epoch %d/3 | val_loss: %s":                "val/loss epoch 1:0.91 2:0.74 3:0.68\n",
		"Epoch %d\n[Fold 1/3] val_loss: %s":                   "val/loss epoch 1:0.91 2:0.74 3:0.68\n",
		"[Fold 1/3] [%d/9] val_loss: %s":                      "val/loss step 1:0.91 2:0.74 3:0.68\n",
		"Fold 1/3 - %d/9 - val_loss: %s":                      "val/loss step 1:0.91 2:0.74 3:0.68\n",
		"Fold 1/3 (%d) val_loss: %s":                          "val/loss step 1:0.91 2:0.74 3:0.68\n",
	} {
		t.Run(form, func(t *testing.T) {
			log := ""
			for i, v := range []string{"0.91", "0.74", "0.68"} {
				log += fmt.Sprintf(form+"\n", i+1, v)
			}
			compareLines(t, drawn(&readText(t, log).Set), want)
		})
	}
}

// "Epochs: 3" may be how many there are to be, and counts where lines of one shape go up by the same
// in it; where it stays, or goes up by anything, it is no place.
func TestAPluralCountsWhereItGoesUpByTheSame(t *testing.T) {
	for word, axis := range map[string]string{"Epochs": "epoch", "Iterations": "step", "updates": "step"} {
		for _, form := range []string{"%s: %d\tCost: %s", "%s: %d, cost: %s", "%s: %d | cost: %s", "%s = %d cost = %s", "2024-05-01 12:00:00,123 INFO %s: %d, cost: %s"} {
			t.Run(word+form, func(t *testing.T) {
				log, still, jumps := "", "", ""
				for i, v := range []string{"0.91", "0.74", "0.68", "0.52"} {
					log += fmt.Sprintf(form+"\n", word, i, v)
					still += fmt.Sprintf(form+"\n", word, 10, v)
					jumps += fmt.Sprintf(form+"\n", word, []int{10, 500, 20, 7}[i], v)
				}
				compareLines(t, drawn(&readText(t, log).Set), "cost "+axis+" 0:0.91 1:0.74 2:0.68 3:0.52\n")
				for _, other := range []string{still, jumps} {
					if got := drawn(&readText(t, other).Set); axis == "epoch" && strings.Contains(got, axis) { // steps count, however far apart
						t.Errorf("what does not count is a place:\n%s%s", other, got)
					}
				}
			})
		}
	}
}
