package text

import (
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// OnlyASCII is whether a terminal, by its environment, shows little more than
// ASCII: Linux's own console and what calls itself a VT or dumb, whose fonts have
// none of the signs that we draw with, and a locale (the first of LC_ALL, LC_CTYPE
// and LANG that is set, as in POSIX) of another encoding than UTF-8. The locale C
// is what a machine has on which nobody set one, and says nothing of the terminal;
// Python takes it so too (PEP 538).
func OnlyASCII(env tea.EnvMsg) bool {
	term := env.Getenv("TERM")
	if term == "linux" || term == "dumb" || term == "ansi" || strings.HasPrefix(term, "vt") {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		switch locale := env.Getenv(name); locale {
		case "":
		case "C", "POSIX":
			return false
		default:
			word := strings.ToLower(strings.ReplaceAll(locale, "-", ""))
			return !strings.Contains(word, "utf8")
		}
	}
	return false
}

// standIns are the signs we draw with, and what each is in ASCII.
var standIns = func() map[rune]byte {
	all := map[rune]byte{}
	for _, pair := range []struct {
		signs string
		plain byte
	}{
		{"━═", '='}, {"─┄╌╸╺–—−▏▎▍", '-'}, {"│┃┆▐", '|'}, {"╭╮╰╯└┘┌┐┬┴┤├┼✓", '+'}, {"█▌▋▊▉■", '#'}, {"▓", '%'}, {"░", ':'},
		{"·…", '.'}, {"▒", '+'}, {"•●★", '*'}, {"◆", 'B'}, // best, as in a chart
		{"○◐◌", 'o'}, {"×✗", 'x'}, {"›→▶", '>'}, {"‹←", '<'}, {"↑▲", '^'}, {"↓▼", 'v'},
		{"╱⠙⠴⠏", '/'}, {"╲⠸⠧", '\\'}, {"⠋⠼⠇", '|'}, {"⠹⠦", '-'}, // a spinner turns
		{"“”", '"'}, {"‘’", '\''}, {"°\u00a0", ' '},
	} {
		for _, r := range pair.signs {
			all[r] = pair.plain
		}
	}
	return all
}()

// InASCII is a frame with nothing but ASCII in it, and everything in its place:
// our own signs by what is like them, any other character by a question mark for
// each cell of it.
func InASCII(frame string) string {
	var b strings.Builder
	b.Grow(len(frame))
	for i := 0; i < len(frame); {
		if frame[i] < utf8.RuneSelf {
			b.WriteByte(frame[i])
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(frame[i:])
		switch plain, ours := standIns[r]; {
		case ours:
			b.WriteByte(plain)
		case oneCell(r):
			b.WriteByte('.')
		default:
			cluster, cells := ansi.FirstGraphemeCluster(frame[i:], ansi.GraphemeWidth)
			size = len(cluster)
			b.WriteString(strings.Repeat("?", cells))
		}
		i += size
	}
	return b.String()
}
