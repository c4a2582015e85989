package plan

import (
	"fmt"

	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/trust"
)

// Effects is what a profile would do, and what it is that would be trusted.
func Effects(look text.Look, s *trust.Subject, w int) []string {
	st := look.Styles
	var out []string
	row := func(label string, on text.Ink, txt string) {
		for i, l := range text.Wrap(text.Word(txt), max(w-14, 1)) {
			if i > 0 {
				label = ""
			}
			out = append(out, text.Cut(on.Of(text.Fit(label, 14))+l, w))
		}
	}
	row("profile", st.Dim, s.Path)
	if s.TrustedAt != nil {
		row("not trusted", st.Warn, s.Since())
	} else {
		row("not trusted", st.Warn, "nobody has trusted it yet")
	}
	row("cluster", st.Dim, fmt.Sprintf("%s: %s of %s", s.Name, text.Plural(s.Nodes, "node"), s.Provider))
	row("command", st.Dim, s.Command)
	for _, e := range s.Effects {
		if e.Unusual {
			row("! "+e.Kind, st.Warn, e.Text)
		} else {
			row("  "+e.Kind, st.Dim, e.Text)
		}
	}
	row("hash", st.Dim, s.Hash())
	return out
}

// drawUntrusted is a plan screen whose profile may only be shown.
func (v *View) drawUntrusted(l text.Look, w int) []string {
	s := l.Styles
	out := text.WrapIn(s.Warn, "! This profile is not trusted. It was read, and nothing else: this is what it would do.", w)
	out = append(append(out, ""), Effects(l, v.Untrusted, w)...)
	return append(out, "", s.Key.Of("R")+" asks whether it may.")
}
