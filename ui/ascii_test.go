package ui_test

import (
	"fmt"
	"image/color"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
)

var asciiWord = regexp.MustCompile(`[A-Za-z]{4,}`)

func TestEverySceneCanBeDrawnInASCII(t *testing.T) {
	drawsOnly(t)
	for _, sc := range scenes.All() {
		t.Run(sc.Name, func(t *testing.T) {
			for _, size := range scenes.Sizes {
				s := sc.Build(size[0], size[1], "dark")
				rich := strings.Split(s.Screen(), "\n")
				s.Send(tea.EnvMsg{"TERM=linux"})
				frame := s.Model.Frame()
				checkFrame(t, frame, size[0], size[1])
				for _, r := range frame {
					if r > 0x7f {
						t.Fatalf("%v: %q (%U) is left", size, r, r)
					}
				}
				for y, row := range strings.Split(s.Screen(), "\n") {
					for _, w := range asciiWord.FindAllString(rich[y], -1) {
						if !strings.Contains(row, w) {
							t.Errorf("%v: %q is missing from row %d:\n%s\n%s", size, w, y, rich[y], row)
						}
					}
				}
				if sc.Name == "train" || sc.Name == "heat" {
					compare(t, fmt.Sprintf("%s-ascii-%dx%d.txt", sc.Name, size[0], size[1]), s.Screen()+"\n")
				}
				s.Close()
			}
		})
	}
}

func TestATerminalsEnvironmentSaysWhetherItShowsMoreThanASCII(t *testing.T) {
	for _, c := range []struct {
		env   string
		ascii bool
	}{
		{"TERM=xterm-256color LANG=en_US.UTF-8", false},
		{"TERM=xterm-256color", false},
		{"TERM=xterm LANG=C", false},
		{"TERM=tmux-256color LC_ALL=POSIX", false},
		{"TERM=xterm LC_CTYPE=UTF-8", false}, // macOS
		{"TERM=xterm LANG=de_DE.utf8@euro", false},
		{"TERM=xterm LANG=de_DE@euro", true},
		{"TERM=xterm LANG=ja_JP.eucJP", true},
		{"TERM=xterm LANG=en_US.UTF-8 LC_CTYPE=en_US.ISO-8859-1", true},
		{"TERM=xterm LANG=ja_JP.eucJP LC_ALL=C.UTF-8", false},
		{"TERM=linux LANG=en_US.UTF-8", true},
		{"TERM=vt220", true}, // a serial console
	} {
		for glyphs, want := range map[string]bool{"": c.ascii, "auto": c.ascii, "unicode": false, "ascii": true} {
			s := scenes.NewStage(80, 24, ui.Options{Glyphs: glyphs}, nil)
			s.Send(tea.EnvMsg(strings.Fields(c.env)))
			if got := !strings.ContainsFunc(s.Model.Frame(), func(r rune) bool { return r > 0x7f }); got != want {
				t.Errorf("%s, glyphs %q: ASCII only is %v", c.env, glyphs, got)
			}
			s.Close()
		}
	}
}

// A terminal that answers no question about its background may have said it in the
// environment; what it answers counts for more, and what was asked for most.
func TestALightTerminalThatSaysSoInItsEnvironmentHasDarkInk(t *testing.T) {
	look := func(theme string, msgs ...tea.Msg) string {
		s := scenes.NewStage(80, 24, ui.Options{Theme: theme}, nil)
		defer s.Close()
		for _, msg := range msgs {
			s.Send(msg)
		}
		return s.Model.Frame()
	}
	dark, light := look("dark"), look("light")
	if dark == light {
		t.Fatal("both themes look the same")
	}
	says := func(value string) tea.EnvMsg { return tea.EnvMsg{"TERM=rxvt", "LANG=C.UTF-8", "COLORFGBG=" + value} }
	for name, c := range map[string]struct{ got, want string }{
		"white":                     {look("auto", says("0;15")), light},
		"grey":                      {look("auto", says("0;default;7")), light},
		"black":                     {look("auto", says("15;0")), dark},
		"dark grey":                 {look("auto", says("15;8")), dark},
		"its own":                   {look("auto", says("default;default")), dark},
		"nothing":                   {look("auto", says("")), dark},
		"white, and dark by answer": {look("auto", says("0;15"), tea.BackgroundColorMsg{Color: color.Black}), dark},
		"white, and dark by wish":   {look("dark", says("0;15")), dark},
		"black, and light by wish":  {look("light", says("15;0")), light},
	} {
		if c.got != c.want {
			t.Errorf("%s: not the look that it should have", name)
		}
	}
}
