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

// Walls between groups of columns are gaps, those around a table are not.
func TestWallsThatDivideGroupsAreGaps(t *testing.T) {
	for line, want := range map[string]string{
		"ID   Step |  avgR   stdR": "ID   Step    avgR   stdR",
		"| accuracy     0.8852 |":  "| accuracy     0.8852 |",
		"loss | 0.5 | 0.6":         "loss | 0.5 | 0.6",
		"a  b | c  d |":            "a  b | c  d |",
	} {
		if got := Open(line); !slices.Equal(Cells(got), Cells(want)) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// What has a number with a fraction, or begins with one, is no name of a column.
func TestACellWithAValueIsNoName(t *testing.T) {
	for cell, want := range map[string]bool{
		"0, Average loss 0.6695": true, "250/": true, "1,": true, "60.00; ppl:": true, "0.5": true,
		"top 5": false, "Recall @ 10": false, "mAP50": false, "train loss": false, "": false,
	} {
		if HasValue(cell) != want {
			t.Errorf("%q: %v", cell, !want)
		}
	}
}

// Cells that are a blank apart are told by their number; words are none.
func TestCellsABlankApartAreToldByTheirNumber(t *testing.T) {
	if got := Spread("  1  2.51e+02 6.87e-01    -  1.00e+00f", 5); !slices.Equal(got, []string{"1", "2.51e+02", "6.87e-01", "-", "1.00e+00f"}) {
		t.Errorf("it is %q", got)
	}
	if Spread("1 2 3", 4) != nil || Spread("1 more 3", 3) != nil {
		t.Error("a line of other cells is spread")
	}
}
