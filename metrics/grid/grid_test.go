package grid

import (
	"slices"
	"testing"
)

// Names and numbers that are only a blank apart are told by the dashes below the header.
func TestARuleTellsWhereColumnsBegin(t *testing.T) {
	ruled := Ruled("---------- ---------- ----------")
	for line, want := range map[string][]string{
		"Generation    Average    Std Dev": {"Generation", "Average", "Std Dev"},
		"         1      16.25 2.48746859": {"1", "16.25", "2.48746859"},
		"12345678901    16.25 2.48746859":  nil, // a number that runs into the next column
	} {
		if got := ruled.Cut(line); !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
	if Ruled("-- title --") != nil || Ruled("----------------") != nil {
		t.Error("a line that rules no columns does")
	}
}

// Bars around a word are of its name, and no walls.
func TestANormIsNoWall(t *testing.T) {
	if got := Cells("  i    f       |g|  "); !slices.Equal(got, []string{"i", "f", "|g|"}) {
		t.Errorf("it is %q", got)
	}
	if got := Cells("| i | f |"); !slices.Equal(got, []string{"i", "f"}) {
		t.Errorf("it is %q", got)
	}
}

func TestAGaugeBeforeARowIsNoPartOfIt(t *testing.T) {
	for line, want := range map[string]string{
		"[ 25%      ]     1      0.8657      0.5":  "1      0.8657      0.5",
		"[------------] Epoch      Train log_loss": "Epoch      Train log_loss",
		"[ 20%] loss 0.5":                          "[ 20%] loss 0.5",
		"[ 10/100]  3  0.5":                        "[ 10/100]  3  0.5",
		"[100]     1      0.5":                     "[100]     1      0.5",
		"[epoch 1]  loss  0.5":                     "[epoch 1]  loss  0.5",
		"[==== 25%]":                               "[==== 25%]",
	} {
		if got := BehindGauge(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
