package ui

import (
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestEveryCellOfATextStaysACellInASCII(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                      "plain",
		"\x1b[1;31mé\x1b[m 中文 ok":    "\x1b[1;31m?\x1b[m ???? ok",
		"e\u0301 👩‍👧 한 end":          "e ?? ?? end",
		" 62%|██████▎   | 372/600 ⠿": " 62%|######-   | 372/600 .",
		"✓ gone  ✗ lost  65°C  a…":   "+ gone  x lost  65 C  a.",
		"\xff\xfe broken":            "?? broken",
		"":                           "",
	} {
		got := inASCII(text)
		if got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if text[:min(1, len(text))] != "\xff" && ansi.StringWidth(got) != ansi.StringWidth(text) {
			t.Errorf("%q has %d cells, %q has %d", text, ansi.StringWidth(text), got, ansi.StringWidth(got))
		}
	}
}
