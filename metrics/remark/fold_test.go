package remark

import (
	"strings"
	"testing"
)

func TestTheOneOfSeveralIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		"Task mnli -- epoch 0": "mnli", "Task sst2 | acc 0.5": "sst2", "Task acc - 0.5": "", "Task: mnli": "", "Task mnli done": "", "Task": "",
	} {
		if name, ok := One(line, len("Task")); ok && name != want || !ok && want != "" {
			t.Errorf("%q is of %q", line, name)
		}
	}
}

// Only a number of folds, and which one it is, makes a line one of a fold.
func TestALineSaysOfWhichFoldItIs(t *testing.T) {
	for line, want := range map[string]string{
		"Fold 2/5 - accuracy: 0.91":              "2/5",
		"[CV 1/3] END max_depth=1;, score=0.660": "1/3]",
		"[CV 2/3; 1/9] START C=1":                "2/3;",
		"fold: 1 of 10, val_loss 0.3":            "1 of",
		"score 0.4 (fold #3 / 5)":                "3 /",
		"5-fold accuracy 0.91":                   "",
		"fold 2: loss 0.5":                       "",
		"twofold 1/2 loss 0.5":                   "",
		"Epoch 1/3 folded 2 of 3":                "",
		"cv_loss 1/3":                            "",
		"Fold":                                   "",
	} {
		if at := Fold(line); (at >= 0) != (want != "") || at >= 0 && !strings.HasPrefix(line[at:], want) {
			t.Errorf("%q is of a fold at %d", line, at)
		}
	}
}
