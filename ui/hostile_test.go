package ui_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/hostile"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/workbench/trust"
)

// walks are keys that lead through what can be seen from a scene.
var walks = map[string]string{
	"train": "l y f t c y enter y esc h y n y f y s y ? y esc : esc / esc ctrl+c esc X esc E esc T J esc p y",
	"home":  "y / x esc enter y esc r y enter y esc : ? y esc ctrl+c esc",
	"plan":  "y ? esc enter", "receipt": "y s y", "runs": "y enter y esc c y enter y s",
	"wizard-machine": "y s o enter y tab y tab y", "compare": "y enter y", "forwards": "y enter d esc", "logs": "/ l enter y w y",
}

// spoil has the workbench say everything again, each text with more behind it:
// what it answers, what it refuses, and the events so far.
func spoil(s *scenes.Stage, text func() string) {
	if u := trust.Of(s.PlanErr); u != nil { // the screen has this one
		*u = hostile.Spoil(*u, text)
		u.Changed, u.TrustedAt = []string{text()}, &scenes.Epoch
	}
	for _, err := range []*error{&s.PlanErr, &s.OffersErr, &s.RunsErr, &s.AskErr, &s.Refuse} {
		if *err != nil && trust.Of(*err) == nil {
			*err = errors.New((*err).Error() + text())
		}
	}
	s.HomeIs, s.PlanIs, s.OffersAre = hostile.Spoil(s.HomeIs, text), hostile.Spoil(s.PlanIs, text), hostile.Spoil(s.OffersAre, text)
	s.RunsAre, s.FactsAre, s.LinesAre = hostile.Spoil(s.RunsAre, text), hostile.Spoil(s.FactsAre, text), hostile.Spoil(s.LinesAre, text)
	s.Listed, s.Past = hostile.Spoil(s.Listed, text), hostile.Spoil(s.Past, text, "Cluster", "Run")
	for rank := range s.Logs {
		s.Logs[rank] += text() + "\n"
	}
	s.Play(hostile.Spoil(s.Played(), text, "Cluster", "Run")...)
}

// Whatever the workbench says on every screen, the terminal is told text and
// colours, the title is one line of text, and so is each line of the clipboard.
func TestNothingHostileLeavesAnyScreen(t *testing.T) {
	drawsOnly(t)
	seen := 0
	for i, sc := range scenes.All() {
		g := hostile.New(uint64(i))
		s := sc.Build(100, 30, "dark")
		spoil(s, func() string { return " evil" + g.Text(6) + "\nforged" })
		look := func(key string) {
			t.Helper()
			v := s.Model.View()
			checkFrame(t, v.Content, 100, 30)
			for what, text := range map[string]string{"frame": v.Content, "title": v.WindowTitle, "clipboard": s.Copied} {
				if fault := hostile.Fault(text, what == "frame"); fault != "" {
					t.Fatalf("%s, after %q, the %s: %s", sc.Name, key, what, fault)
				}
			}
			if strings.ContainsAny(v.WindowTitle, "\n\t") {
				t.Fatalf("%s: the title is %q", sc.Name, v.WindowTitle)
			}
			if strings.Contains(v.Content, "evil") {
				seen++
			}
		}
		look("nothing")
		keys := walks[sc.Name]
		if keys == "" {
			keys = "y"
		}
		for _, key := range strings.Fields(keys) {
			s.Press(key)
			look(key)
		}
		s.Close()
	}
	if seen < 60 {
		t.Errorf("hostile text was seen on %d frames only", seen)
	}
}
