package grid

import (
	"slices"
	"testing"
)

// Each blank behind a label is a gap where there are only numbers and clocks; a sentence, a name
// with its value and a row without a label stay as they are.
func TestALabelIsACellOfItsOwn(t *testing.T) {
	for line, want := range map[string][]string{
		"BFGS:    0 12:30:05        4.0233":  {"BFGS:", "0", "12:30:05", "4.0233"},
		" 0: -4.1109e+00 -1.1304e+01  6e+01": {"0:", "-4.1109e+00", "-1.1304e+01", "6e+01"},
		"12: 0.5 -":                          {"12:", "0.5", "-"},
		"Epoch: 1 loss 0.5":                  {"Epoch: 1 loss 0.5"},
		"2024-01-01 10:00:00    1":           {"2024-01-01 10:00:00", "1"},
		": 0.5 0.7":                          {": 0.5 0.7"},
	} {
		if got := Cells(Apart(line)); !slices.Equal(got, want) {
			t.Errorf("%q has the cells %q, expected %q", line, got, want)
		}
	}
}
