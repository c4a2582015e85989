package sanitize

import (
	"strings"
	"testing"
)

func TestOnlyTextNewlineTabAndSGRSurvive(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain text is left alone", "loss 1.25\tlr 0.1\n", "loss 1.25\tlr 0.1\n"},
		{"letters of the world are left alone", "größe 中文 ✓ ─│┌ ▁█ ⣿ é", "größe 中文 ✓ ─│┌ ▁█ ⣿ é"},
		{"control characters go", "a\x00b\x07c\x08d\x7fe\x0bf\x0cg", "abcdefg"},
		{"cursor movement goes", "a\x1b[2Jb\x1b[10;10Hc\x1b[1Ad", "abcd"},
		{"modes go", "\x1b[?1049hx\x1b[?25l\x1b[>4;1my\x1b[!p\x1b[20h", "xy"},
		{"queries go", "\x1b[6n\x1b[c\x1b[>q\x1bZx", "x"},
		{"a title goes with its payload", "a\x1b]0;evil\x07b\x1b]2;evil\x1b\\c", "abc"},
		{"a hyperlink leaves its text", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"device control and the other strings go", "a\x1bPq#0\x1b\\b\x1b_x\x1b\\c\x1b^y\x1b\\d\x1bXz\x1b\\e", "abcde"},
		{"a string that never ends is given up at the newline", "a\x1b]0;evil\nb", "a\nb"},
		{"a cancelled string is over", "\x1b]0;evil\x18b", "b"},
		{"resets and character sets go", "\x1bca\x1b(0b\x1b#8c\x1b7d", "abcd"},
		{"C1 in UTF-8 goes", "a\u009b31mb\u009d0;c\u0085d", "a31mb0;cd"},
		{"C1 as bytes is invalid", "a\x9b31m\x9d", "a\ufffd31m\ufffd"},
		{"invalid UTF-8 is replaced", "a\xffb\xc3(\xe2\x82x\xed\xa0\x80", "a\ufffdb\ufffd(\ufffd\ufffdx\ufffd\ufffd\ufffd"},
		{"overlong forms are invalid", "\xc0\x9b\xe0\x80\x9b", "\ufffd\ufffd\ufffd\ufffd\ufffd"},
		{"noncharacters are replaced", "\ufdd0\uffff\U0001fffe", "\ufffd\ufffd\ufffd"},
		{"bidi overrides and isolates go", "a\u202eb\u2066c\u2069\u200f\u061cd", "abcd"},
		{"zero-width characters go", "a\u200bb\u200d\u2060\ufeffc\u00add\u034f\u3164e", "abcde"},
		{"tag characters go", "a\U000e0041\U000e007fb", "ab"},
		{"emoji of one width only", "👩\u200d💻 👍🏽 ❤\ufe0f 🇩🇪", "👩💻 👍 ❤ DE"},
		{"a character carries few marks", "e" + strings.Repeat("\u0301", 50) + "x", "e" + strings.Repeat("\u0301", maxMarks) + "x"},
		{"a mark needs a character", "\u0301a\t\u0301b\n\u0301", "a\tb\n"},
		{"a mark needs a character on its own line", "a\r\u0301b\r\u0301\nc", "a\nb\nc"},
		{"a mark joins nothing across a colour", "a\x1b[31m\u0301b\x1b[m", "a\x1b[31mb\x1b[m"},
		{"colour stays and is closed at the line's end", "\x1b[1;31mred\nplain", "\x1b[1;31mred\x1b[0m\nplain"},
		{"closed colour is not closed again", "\x1b[38;2;1;2;3mred\x1b[0m\n\x1b[4:3mx\x1b[m", "\x1b[38;2;1;2;3mred\x1b[0m\n\x1b[4:3mx\x1b[m"},
		{"palette entry zero is no reset", "\x1b[38;5;0mx", "\x1b[38;5;0mx\x1b[0m"},
		{"a broken sequence ends where it breaks", "\x1b[31\nm\x1b[3é", "\nmé"},
		{"an overlong SGR goes", "\x1b[" + strings.Repeat("1;", 60) + "mx", "x"},
		{"an overlong number goes", "\x1b[1234567mx", "x"},
		{"carriage returns are line ends", "a\r\nb\rc\r", "a\nb\nc\n"},
		{"line separators are spaces", "a\u2028b\u2029c", "a b c"},
		{"escape at the end goes", "a\x1b", "a"},
		{"escape twice is one", "a\x1b\x1b[31mb\x1b[0m", "a\x1b[31mb\x1b[0m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Text(c.in); got != c.want {
				t.Errorf("Text(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestALineHasNoNewline(t *testing.T) {
	if got, want := Line("a\nb\r\nc\x1b[31m\td"), "a b c\x1b[31m\td\x1b[0m"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := string(Append([]byte(">"), []byte("a\x1b[2Kb"))), ">ab"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPlainHasNoColour(t *testing.T) {
	if got, want := Plain("\x1b[31ma\x1b[0m\n\tb"), "a\n\tb"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnUnendedStringSwallowsABoundedPart(t *testing.T) {
	got := Text("\x1b]0;" + strings.Repeat("x", 100_000))
	if len(got) < 100_000-maxString-10 || len(got) >= 100_000 {
		t.Errorf("%d of 100000 bytes are left", len(got))
	}
}
