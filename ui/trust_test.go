package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/trust"
)

// strangers is a stage of w × h on which the plan of a profile that nobody has
// trusted was asked for.
func strangers(t *testing.T, w, h int, set func(*scenes.Stage)) *scenes.Stage {
	t.Helper()
	u := scenes.Stranger()
	s := scenes.NewStage(w, h, ui.Options{}, func(s *scenes.Stage) {
		s.HomeIs = event.Home{Profiles: []event.ProfileInfo{{Name: u.Name, Path: u.Path, Provider: u.Provider}}}
		s.PlanErr = &trust.Untrusted{Subject: u}
		if set != nil {
			set(s)
		}
	})
	t.Cleanup(s.Close)
	return s.Press("enter")
}

func TestAnUntrustedProfileIsShownAndAskedAboutAtEverySize(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 36}, {200, 60}, {48, 14}} {
		s := strangers(t, size[0], size[1], nil)
		if size[0] >= 80 {
			says(t, s, "This profile is not trusted", "! connects", "ci@gpu.fastlm.example")
		}
		s.Press("R").Advance(time.Second)
		checkFrame(t, s.Model.Frame(), size[0], size[1])
		says(t, s, "Trust this profile?", "› Cancel")
		seen := ""
		for range 40 { // nothing of it is out of reach
			seen += s.Screen()
			s.Press("down")
		}
		if size[0] >= 80 {
			for _, want := range []string{"AWS_SECRET_ACCESS_KEY", "/home/ada to the nodes", "SHA256:pVq3", "brings", "3f2a9c0b1d4e5f60718293a4b5c6d7e8"} {
				if !strings.Contains(seen, want) {
					t.Errorf("%v: %q can't be seen:\n%s", size, want, seen)
				}
			}
		}
		checkFrame(t, s.Model.Frame(), size[0], size[1])
		asked(t, s)
	}
}

func TestOnlyATypedYesTrusts(t *testing.T) {
	for _, no := range [][]string{{"enter"}, {"esc"}, {"y", "enter"}, {"y", "e", "s", "x", "enter"}, {"y", "e", "s", "esc"}, {"Y", "E", "S", "enter"}, {"R", "enter"}} {
		s := strangers(t, 80, 24, nil).Press("R").Advance(time.Second).Press(no...)
		hides(t, s, "Trust this profile?")
		says(t, s, "This profile is not trusted")
		asked(t, s)
	}
	s := strangers(t, 80, 24, nil).Press("R").Type("yes").Press("enter") // typed ahead
	says(t, s, "Trust this profile?")
	asked(t, s)

	u := scenes.Stranger()
	s = strangers(t, 80, 24, nil).Press("R").Advance(time.Second).Type("yes")
	s.PlanIs, s.PlanErr = scenes.PlanEC2(), nil
	s.Press("enter")
	asked(t, s, "trust "+u.Path+" "+u.Key)
	hides(t, s, "not trusted")
	says(t, s, "limits.budget") // the plan, and nothing is started
	s.Press("R")
	asked(t, s, "trust "+u.Path+" "+u.Key, "start "+u.Path)
}

// What is trusted is what was shown: a file that changed meanwhile is shown anew.
func TestAProfileThatChangedWhileItWasReadIsShownAnew(t *testing.T) {
	s := strangers(t, 120, 36, nil).Press("R").Advance(time.Second).Type("yes")
	at := scenes.Epoch
	changed := scenes.Stranger()
	changed.TrustedAt, changed.Changed, changed.Command = &at, []string{changed.Path + " has changed"}, "train.py --evil"
	s.PlanErr = &trust.Untrusted{Subject: changed}
	s.Refuse = s.PlanErr
	s.Press("enter")
	says(t, s, "This profile is not trusted", "since it was trusted on", "has changed", "train.py --evil")
}

// Between the plan and R the file may change: nothing of the new one runs.
func TestAProfileThatChangedAfterItsPlanIsAskedAbout(t *testing.T) {
	u := scenes.Stranger()
	s := strangers(t, 120, 36, func(s *scenes.Stage) { s.PlanIs, s.PlanErr = scenes.PlanEC2(), nil })
	says(t, s, "what each rank runs")
	s.StartErr = &trust.Untrusted{Subject: u}
	s.PlanErr = s.StartErr
	s.Press("R").Advance(time.Second)
	says(t, s, "Trust this profile?", "ci@gpu.fastlm.example")
	s.Press("esc")
	says(t, s, "This profile is not trusted")
}

func TestReadOnlyLooksAtAnUntrustedProfileAndTrustsNothing(t *testing.T) {
	u := scenes.Stranger()
	s := stage(t, ui.Options{ReadOnly: true}, func(s *scenes.Stage) {
		s.HomeIs = event.Home{Profiles: []event.ProfileInfo{{Name: u.Name, Path: u.Path, Provider: u.Provider}}}
		s.PlanErr = &trust.Untrusted{Subject: u}
	})
	says(t, s.Press("enter"), "This profile is not trusted")
	hides(t, s.Press("R"), "Trust this profile?")
	asked(t, s)
}
