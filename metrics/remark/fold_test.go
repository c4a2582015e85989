package remark

import "testing"

// Only a number of folds, and which one it is, makes a line one of a fold.
func TestALineSaysOfWhichFoldItIs(t *testing.T) {
	for line, want := range map[string]bool{
		"Fold 2/5 - accuracy: 0.91":              true,
		"[CV 1/3] END max_depth=1;, score=0.660": true,
		"[CV 2/3; 1/9] START C=1":                true,
		"fold: 1 of 10, val_loss 0.3":            true,
		"score 0.4 (fold #3 / 5)":                true,
		"5-fold accuracy 0.91":                   false,
		"fold 2: loss 0.5":                       false,
		"twofold 1/2 loss 0.5":                   false,
		"Epoch 1/3 folded 2 of 3":                false,
		"cv_loss 1/3":                            false,
		"Fold":                                   false,
	} {
		if got := OfFold(line); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}
