package ui_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
)

// runsStage is the table of thirty runs, opened from home.
func runsStage(t *testing.T, opts ui.Options) *scenes.Stage {
	t.Helper()
	s := scenes.NewStage(120, 36, opts, func(s *scenes.Stage) {
		s.HomeIs, s.RunsAre = scenes.HomeFull(), scenes.ManyRuns()
		_, s.LinesAre = scenes.Compared(9)
	})
	t.Cleanup(s.Close)
	return s.Press("p")
}

func lastWish(s *scenes.Stage) string {
	if len(s.Wishes) == 0 {
		return ""
	}
	return s.Wishes[len(s.Wishes)-1]
}

func TestRunsAreStarredAndNotedByKey(t *testing.T) {
	s := runsStage(t, ui.Options{}).Press("down", "down", "*")
	if !slices.Contains(s.Wishes, "star charlm-0314-0851 true") {
		t.Errorf("no star was asked for: %q", s.Wishes)
	}
	if !strings.HasPrefix(lastWish(s), "runs ") {
		t.Errorf("the table was not read again after the star: %q", s.Wishes)
	}
	s.Press("n").Type("too hot").Press("enter")
	if !slices.Contains(s.Wishes, "note charlm-0314-0851: too hot") {
		t.Errorf("no note was written: %q", s.Wishes)
	}
	n := len(s.Wishes)
	if s.Press("n", "esc"); len(s.Wishes) != n {
		t.Errorf("a note that was left was written: %q", s.Wishes[n:])
	}
}

func TestReadOnlyWritesNoNoteAndNoStar(t *testing.T) {
	s := runsStage(t, ui.Options{ReadOnly: true})
	n := len(s.Wishes)
	s.Press("*")
	says(t, s, "started with --read-only")
	if s.Press("n"); len(s.Wishes) != n {
		t.Errorf("something was written: %q", s.Wishes[n:])
	}
}

func TestConditionsThatCannotBeReadSayWhyAndKeepTheTable(t *testing.T) {
	s := runsStage(t, ui.Options{})
	s.RunsErr = errors.New("a condition should stand at \"loss\"")
	s.Press("/").Type("loss").Press("enter")
	if !slices.Contains(s.Wishes, "runs filter=loss sort=") {
		t.Errorf("the condition was not asked: %q", s.Wishes)
	}
	says(t, s, "/loss", "✗ a condition should stand at \"loss\"", "charlm-0314-0851", "30 runs")
	s.RunsErr = nil
	if s.Press("esc"); strings.Contains(s.Screen(), "condition") || lastWish(s) != "runs filter= sort=" {
		t.Errorf("esc did not show all runs again: %q\n%s", lastWish(s), s.Screen())
	}
	s.Press("esc")
	says(t, s, "› home")
}

func TestRunsAreSortedByEachColumnAndBack(t *testing.T) {
	s := runsStage(t, ui.Options{}).Press("s", "s", "s")
	order := func(ids ...string) {
		t.Helper()
		at := -1
		for _, id := range ids {
			i := strings.Index(s.Screen(), id)
			if i < at || i < 0 {
				t.Fatalf("%s stands wrong:\n%s", id, s.Screen())
			}
			at = i
		}
	}
	order("↑loss", "asr-0312-0915", "imagenet-r50-0313-2210", "charlm-0314-0926")
	s.Press("o")
	order("↓loss", "charlm-0313-1740", "charlm-0314-0926", "imagenet-r50-0313-2210")
	s.Press("end")
	order("asr-0312-0915", "sweep-0312-0702") // no loss: last in either order
	s.Press("home")
	for range 7 { // the other six columns, and the order of the answer
		s.Press("s")
	}
	says(t, s, "newest first")
	order("charlm-0314-0926", "imagenet-r50-0313-2210", "charlm-0314-0851")
	s.Press("a").Type("best.val/acc").Press("enter")
	if lastWish(s) != "runs filter= sort=best.val/acc" {
		t.Errorf("the series was not asked for: %q", lastWish(s))
	}
}

func TestMarkedRunsAreComparedAndTheRestOfTheTableStays(t *testing.T) {
	s := runsStage(t, ui.Options{}).Press("v")
	says(t, s, "mark two or more runs with space first")
	for range 6 {
		s.Press("down")
	}
	s.Press("space", "space", "v")
	if !slices.Contains(s.Wishes, "compare [resnet-0311-2126 resnet-0311-1426]") {
		t.Errorf("wishes %q", s.Wishes)
	}
	says(t, s, "› compare", "2 runs  3 charts", "1 resnet-0311-2126", "2 resnet-0311-1426", "train/loss", "--lr")
	s.Press("d")
	says(t, s, "uncommitted", "highest  val/acc", "✓")
	s.Press("y")
	if !strings.Contains(s.Copied, "argument --resume\t-\t/data/checkpoints/resnet-50/2026-03-10/last.pt") {
		t.Errorf("a value was not copied whole:\n%s", s.Copied)
	}
	s.Press("esc", "a", "a", "a")
	says(t, s, "by time")
	s.Press("esc")
	says(t, s, "› runs", "✓ 2 marked")
}

func TestCurvesOfEachRunCountTimeFromItsOwnStart(t *testing.T) {
	s := runsStage(t, ui.Options{})
	for range 6 {
		s.Press("down")
	}
	s.Press("space", "space", "space", "v", "a", "a", "a") // they began hours apart, and took 40 to 60 minutes
	if text := s.Screen(); !strings.Contains(text, "45m") || strings.Contains(text, "10h") {
		t.Errorf("the runs do not lie over each other:\n%s", text)
	}
}

func TestARunIsOpenedFromTheTableAndLeftToIt(t *testing.T) {
	s := runsStage(t, ui.Options{}).Press("down", "down", "enter")
	says(t, s, "› train")
	s.Press("esc")
	says(t, s, "› runs")
}

func TestNineRunsAreTheMostToCompare(t *testing.T) {
	s := runsStage(t, ui.Options{})
	for range 10 {
		s.Press("space")
	}
	says(t, s, "9 are marked already", "✓ 9 marked")
	s.Press("v")
	says(t, s, "9 runs")
	s.Advance(time.Second)
}

func TestRunsAreRemovedByKeyAfterAQuestion(t *testing.T) {
	s := runsStage(t, ui.Options{}).Press("down", "down", "X").Advance(time.Second)
	says(t, s, "Remove run charlm-0314-0851?", "goes", "1200 points", "for good", "› Cancel")
	s.Press("enter")
	if slices.Contains(s.Wishes, "remove charlm-0314-0851") {
		t.Fatal("Cancel removes")
	}
	s.Press("X").Advance(time.Second).Press("tab", "enter")
	if !slices.Contains(s.Wishes, "remove charlm-0314-0851") {
		t.Fatalf("not removed: %q", s.Wishes)
	}
	says(t, s, "1 run removed")
	s.Press("home", "space", "space", "X")
	says(t, s, "Remove 2 runs?", "together", "9.0 MB and 2400 points")
	s.Advance(time.Second).Press("tab", "enter")
	says(t, s, "2 runs removed")
	says(t, runsStage(t, ui.Options{ReadOnly: true}).Press("X"), "started with --read-only")
}
