package lexis

import "testing"

// A name may begin with a number; a rate, a date, a size and an exponent do not.
func TestANameMayBeginWithANumber(t *testing.T) {
	for line, want := range map[string]string{
		"5-shot acc: 0.5":      "5-shot",
		"10-step loss 0.5":     "10-step",
		"2D/loss: 0.5":         "2D/loss",
		"3d_iou = 0.5":         "3d_iou",
		"12it/s loss 0.5":      "",
		"12-Jan-2024 loss 0.5": "",
		"3e-4":                 "",
		"10k":                  "",
		"2024-01-01":           "",
		"5-D":                  "",
		"1.5-step":             "",
	} {
		if got := line[:Numbered(line, 0)]; got != want {
			t.Errorf("%q begins with the name %q, expected %q", line, got, want)
		}
	}
	if at := len("12:00:05,"); Numbered("12:00:05,123-Speed 12", at) != at || Numbered("a,12-shot acc", 2) == 2 {
		t.Error("the end of a clock begins a name, or what stands behind a comma does not")
	}
}
