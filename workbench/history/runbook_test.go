package history

import (
	"strings"
	"testing"
)

// A character that is not shown may not stand between the backticks that end a
// block: without it they do.
func TestNothingInABlockOfCodeEndsIt(t *testing.T) {
	for _, text := range []string{"a\n```\nb", "a\n`\u200b``\nb", "a\n`\x1b[31m``\nb", "a\n````\nb\n`\u202e``"} {
		b := &book{}
		b.code("", text)
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		fence := lines[0]
		if lines[len(lines)-1] != fence || strings.Count(b.String(), fence) != 2 {
			t.Errorf("%q became %q", text, b.String())
		}
	}
}

func TestAFactIsOneLineOfText(t *testing.T) {
	b := &book{}
	b.fact("Branch", "a|b\n# forged\x1b]0;x\x07 <b> \u202e`c`")
	if got, want := b.String(), "- **Branch**: a\\|b # forged &lt;b> 'c'\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
