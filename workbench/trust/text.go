package trust

import (
	"fmt"
	"maps"
	"slices"
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
	said, more := map[string]int{}, map[string]int{}
	for _, e := range s.Effects {
		name := e.label()
		if said[name]++; said[name] > mostNamed {
			more[name]++
			continue
		}
		row(name, e.Text)
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		row(name, fmt.Sprintf("%d more like these; --json has all of them", more[name]))
	}
	return b.String()
}

// label is the kind of an effect, with a mark where it is unusual.
func (e Effect) label() string {
	if e.Unusual {
		return "! " + e.Kind
	}
	return "  " + e.Kind
}
