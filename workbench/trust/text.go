package trust

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/sanitize"
)

// Text is what a profile would do as a page of plain text.
func (s *Subject) Text() string {
	var b strings.Builder
	row := func(name, text string) { sanitize.Fprintf(&b, "%-12s %s\n", name, text) }
	row("profile", s.Name+" "+s.Path)
	switch {
	case s.Trusted && s.TrustedAt != nil:
		row("trusted", "on "+s.TrustedAt.Local().Format("2006-01-02 15:04"))
	case s.Trusted:
		row("trusted", "now")
	case s.TrustedAt != nil:
		row("not trusted", s.Since())
	default:
		row("not trusted", "nobody has trusted it yet")
	}
	row("hash", s.Hash())
	row("cluster", fmt.Sprintf("%s: %d × %s", s.Name, s.Nodes, s.Provider))
	row("command", s.Command)
	for _, e := range s.Effects {
		mark := "  "
		if e.Unusual {
			mark = "! "
		}
		row(mark+e.Kind, e.Text)
	}
	return b.String()
}
