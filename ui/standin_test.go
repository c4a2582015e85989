package ui

import (
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/ui/text"
)

func TestEveryCellOfATextStaysACellInASCII(t *testing.T) {
	for txt, want := range map[string]string{
		"plain":                      "plain",
		"\x1b[1;31mé\x1b[m 中文 ok":    "\x1b[1;31m?\x1b[m ???? ok",
		"e\u0301 👩‍👧 한 end":          "e ?? ?? end",
		" 62%|██████▎   | 372/600 ⠿": " 62%|######-   | 372/600 .",
		"✓ gone  ✗ lost  65°C  a…":   "+ gone  x lost  65 C  a.",
		"\xff\xfe broken":            "?? broken",
		"":                           "",
	} {
		got := text.InASCII(txt)
		if got != want {
			t.Errorf("%q became %q, want %q", txt, got, want)
		}
		if txt[:min(1, len(txt))] != "\xff" && ansi.StringWidth(got) != ansi.StringWidth(txt) {
			t.Errorf("%q has %d cells, %q has %d", txt, ansi.StringWidth(txt), got, ansi.StringWidth(got))
		}
	}
}
