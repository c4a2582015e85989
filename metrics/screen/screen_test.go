package screen

import "testing"

// What is written over text that reaches further replaces only what it covers, as on a terminal.
func TestTextIsWrittenOver(t *testing.T) {
	for out, want := range map[string]string{
		"[====......] loss 0.5\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b 2/9 ": "[=== 2/9 ..] loss 0.5",
		"abc\b\bXY":    "aXY",
		"█░░ 1/3\b\b2": "█░░ 123",
		"ab\rXYZ":      "XYZ",
	} {
		var f Frames
		f.Add([]byte(out), func([]byte) {})
		if got := string(f.End()); got != want {
			t.Errorf("%q shows %q, want %q", out, got, want)
		}
	}
}
