package ui_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// scene is one of the scenes that pictures are made of.
func scene(t *testing.T, name string, w, h int) *scenes.Stage {
	t.Helper()
	for _, sc := range scenes.All() {
		if sc.Name == name {
			s := sc.Build(w, h, "dark")
			t.Cleanup(s.Close)
			return s
		}
	}
	t.Fatalf("no scene %s", name)
	return nil
}

func TestASlabIsSmoothedUntilAKeyShowsTheValuesAlone(t *testing.T) {
	s := scene(t, "charts-noisy", 120, 36)
	says(t, s, "rollout/reward 8.365 ~27.983", "max 61.633", "u: raw")
	says(t, s.Press("u"), "rollout/reward 8.365", "highest 61.633")
	hides(t, s, "~", "u: raw")
	says(t, s.Press("u"), "~27.983")
	says(t, s.Press("]"), "smoothed 0.3") // a person's factor is for all charts
	hides(t, s, "u: raw")
	hides(t, s.Press("["), "smoothed", "~") // and none is none
	says(t, s.Press("u"), "~27.983", "u: raw")
	for range 12 { // zoomed in until each value can be told from the next
		s.Press("+")
	}
	hides(t, s, "u: raw")
}

func TestTwoScalesHaveAnAxisEach(t *testing.T) {
	s := scene(t, "charts-noisy", 120, 36)
	says(t, s, "Loss/train 0.307 left", "Loss/test 8647.8 right", "├10k")
	hides(t, s.Press("o"), " left", " right", "├") // on a logarithmic axis there is room for both
	hides(t, scene(t, "charts", 120, 36), " left ", " right ", "├")
}

func TestRanksThatDifferAreSaidAndShownSingly(t *testing.T) {
	s := scene(t, "ranks", 120, 36)
	says(t, s, "loss 0.429 median", "4 ranks differ, most rank 2")
	says(t, s.Press("i"), "loss   1 rank 2 1.038", "2 rank 3")
	hides(t, s, "median")
	says(t, s.Press("i"), "median")
	says(t, s.Press("v"), "lowest 0.372 at 2950") // of the series on record, as in every table
	says(t, s.Press("left"), "at step 2990")
	says(t, s.Press("esc", "a", "a"), "by time", "4 ranks differ, most rank 2") // when the others printed is not kept
	hides(t, s, "median", "i: each")
}

// What other ranks print comes while one looks on.
func TestARankThatGoesAstrayIsToldWhileTheRunGoesOn(t *testing.T) {
	s := scene(t, "ranks-singly", 120, 36).Press("i")
	says(t, s, "most rank 2")
	more := scenes.NewStory(1, 4)
	more.Cluster, more.Run = "vision", "vision-0314-0926"
	for r := range 4 {
		var b strings.Builder
		for i := range 60 {
			v := 0.4 + 0.01*float64(r)
			if r == 1 {
				v = math.NaN()
			}
			fmt.Fprintf(&b, "step %d: loss %.4f\n", 3000+10*i, v)
		}
		s.Logs[r] += b.String()
		more.Tell(event.LogGrew{Rank: r, Size: int64(len(s.Logs[r]))})
	}
	says(t, s.Play(more.Events()...), "rank 1 has NaN")
}

// What was not read while something else was looked at is read when one comes back.
func TestRanksAreComparedWhenOneComesBackToTheCharts(t *testing.T) {
	s := scene(t, "ranks", 120, 36).Press("l")
	more := scenes.NewStory(1, 4)
	more.Cluster, more.Run = "vision", "vision-0314-0926"
	for r := range 4 {
		s.Logs[r] += []string{"step 3000: loss 0.4\n", "step 3000: loss 0.4\n", "step 3000: loss 0.4\n", "step 3000: loss nan\n"}[r]
		more.Tell(event.LogGrew{Rank: r, Size: int64(len(s.Logs[r]))})
	}
	s.Play(more.Events()...).Press("esc")
	says(t, s.Advance(time.Second), "rank 3 has NaN")
}

func TestNamesInDoubtAreListedWithTheirReason(t *testing.T) {
	s := scene(t, "ranks", 120, 36).Press("v")
	says(t, s, "1 name in doubt; d: why")
	hides(t, s, "knob")
	says(t, s.Press("d"), "? knob", "it was 0.5 each time", "knob 0.500", "d hides them")
	x, y := cellOf(t, s, "lr 3.33e-06")
	s.Send(tea.MouseClickMsg{X: x + 4, Y: y + 3, Button: tea.MouseLeft}).Send(tea.MouseReleaseMsg{X: x + 4, Y: y + 3, Button: tea.MouseLeft}).Press("enter") // the mouse hits what is drawn, below the list too
	says(t, s, "number 2")
	says(t, s.Press("esc", "d"), "2 charts")
	hides(t, s, "knob")
	hides(t, running(t, ui.Options{}).Press("v"), "in doubt")
}

func TestHowOldTheCheckpointIsStandsBeforeItsName(t *testing.T) {
	says(t, scene(t, "train-checkpoint", 80, 24), "checkpoint 9s old: checkpoint-300")
}
