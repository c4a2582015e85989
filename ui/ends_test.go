package ui_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// ended is a stage on which the example has trained to its end, and was then
// torn down or not.
func ended(t *testing.T, down bool, gpus int) *scenes.Stage {
	t.Helper()
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, gpus)
	story.Simulated = gpus > 0
	story.Up().Launch().Train(0, 1).End()
	if down {
		story.Down(true)
	}
	s.Advance(story.At().Sub(scenes.Epoch))
	return s.Play(story.Events()...)
}

func TestPanelsOfWhatIsOverSayThatTheyAreTheLastValues(t *testing.T) {
	s := ended(t, true, 2)
	s.Advance(time.Hour).Press("t")
	says(t, s, "as it was at the end, ", "SIMULATED")
	hides(t, s, "no news since", "127.0.0.1:41022")
	says(t, s.Press("n"), "not looked at any more")
	s.Press("t").Resize(80, 24)
	says(t, s, "at the end", "SIMULATED")
	says(t, s.Press("x"), "Everything is gone")
}

func TestWhatARunWithoutValuesHasIsNotWaitedFor(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0).Up().Launch()
	says(t, s.Play(story.Events()...), "no values yet; they are read from")
	story.End()
	s.Play(story.Events()...)
	says(t, s.Press("t"), "no values were found; they are read from")
	hides(t, s, "no values yet")
}

func TestPanelsOfAClusterThatIsThereGoStale(t *testing.T) {
	s := ended(t, false, 0)
	s.Advance(time.Minute)
	says(t, s, "no news since")
	says(t, s.Press("s").Press("x"), "receipt, not now: the cluster was not torn down")
	hides(t, s.Press("t"), "not now") // which was said of where one was
}

func TestStartThatFailsStaysWithItsReasonWhenTheClusterIsGone(t *testing.T) {
	s := stage(t, ui.Options{StartPath: "lm.yaml"}, nil)
	story := scenes.NewStory(2, 0).Plan()
	story.Tell(event.StepStarted{Step: event.StepEnvironment},
		event.StepEnded{Step: event.StepEnvironment, Failure: &event.Fault{What: "install requirements.txt", Node: 1,
			Why: "pip ended with 1", LastLines: []string{"ERROR: no such package"}, Next: "correct the name"}}).Down(true)
	s.Play(story.Events()...)
	says(t, s, "install requirements.txt on node1: pip ended with 1", "correct the name", "the cluster is gone", "x receipt")
	says(t, s.Press("x"), "Everything is gone")
}

func TestFailureIsToldOnceWithWhatToDoNext(t *testing.T) {
	last := []string{"one", "RuntimeError: expected 3 channels"}
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0).Up().Launch().Train(0, 0.2)
	cause := "rank 1 on node1 exited with code 3"
	story.Tell(event.StepEnded{Step: event.StepTrain, Failure: &event.Fault{What: "train", Node: 1, Why: cause, LastLines: last}},
		event.RunEnded{ExitCode: 3, Verdict: event.ExitedBad, Cause: cause, Rank: 1, Node: 1, LastLines: last})
	s.Play(story.Events()...)
	says(t, s, cause, "next  l shows all it printed", "R run")
	hides(t, s, "exit code 3   exit code")
	s.Press("s")
	if n := strings.Count(s.Screen(), "RuntimeError"); n != 1 {
		t.Fatalf("the last lines are shown %d times:\n%s", n, s.Screen())
	}
}

func TestTheAgeOfTheNewestCheckpointIsOnTheTrainScreen(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0).Up().Launch().Train(0, 0.2)
	at := story.Events()[len(story.Events())-1].Time
	story.Tell(event.CheckpointSaved{Name: "step-100", Written: at.Add(-90 * time.Second)},
		event.CheckpointSaved{Node: 1, Name: "step-50", Written: at.Add(-time.Hour)})
	s.Play(story.Events()...)
	says(t, s, "checkpoint ", " old: step-100")
	hides(t, s, "step-50")
	long := "epoch=12-step=48000-val_loss=0.1234-of-a-very-long-experiment-name.ckpt"
	s.Play(story.Tell(event.CheckpointSaved{Name: long, Written: at}).Events()...)
	says(t, s.Resize(80, 24), " old: epoch=12")
	s.Resize(120, 36)
	s.Play(scenes.NewStory(2, 0).Up().Launch().Events()...)
	hides(t, s, "old: step-100")
}

func TestAddressIsShownWholeWhereThereIsNoBrowser(t *testing.T) {
	s := running(t, ui.Options{OpenURL: func(string) error { return errors.New("no display") }})
	url := "http://127.0.0.1:8888/"
	story := scenes.NewStory(2, 0)
	s.Play(story.Tell(event.ForwardOpened{Name: "jupyter", LocalPort: 8888, RemotePort: 1, URL: url}).Events()...)
	s.Press("J")
	says(t, s, "› forwards", "y copies the address", url+"?dlwb_token=4c1f")
	s.Play(scenes.NewStory(2, 0).Tell(event.ForwardOpened{Name: "jupyter", LocalPort: 8888, RemotePort: 1, URL: url}).Events()...)
	says(t, s, url+"?dlwb_token=4c1f") // what is said again has no ticket: it comes from the store
	s.Press("y")
	if !strings.HasPrefix(s.Copied, url) {
		t.Fatalf("copied %q", s.Copied)
	}
}

func TestFollowingGoesOnAfterASearch(t *testing.T) {
	s := running(t, ui.Options{})
	s.Press("l", "/").Type("val_loss").Press("enter")
	says(t, s, "held", "n next match")
	says(t, s.Press("esc"), "▼ following")
}

func TestOldNoticesAreNotSaidAgain(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0).Up().Tell(event.Noticed{Level: "info", Text: "said an hour ago"}).Launch()
	s.Advance(time.Hour)
	s.Play(story.Events()...)
	hides(t, s, "said an hour ago")
	says(t, s.Press("s"), "said an hour ago")
}

func TestProfileOfTheDirectoryIsOffered(t *testing.T) {
	s := stage(t, ui.Options{Here: "/home/ada/lm/dlwb.yaml"}, nil)
	says(t, s, "› lm", "in this directory")
	s.Press("R")
	says(t, s, "/home/ada/lm/dlwb.yaml")
}

func TestLogAxisIsTurnedOnAndOff(t *testing.T) {
	s := running(t, ui.Options{})
	hides(t, s, "log axis")
	says(t, s.Press("o"), "log axis")
	hides(t, s.Press("o"), "log axis")
}

func TestKeyOfAllKeysIsInEveryFooter(t *testing.T) {
	s := running(t, ui.Options{})
	for _, w := range []int{48, 60, 80, 200} {
		s.Resize(w, 24)
		says(t, s, "? keys")
	}
}

func TestRunThatGoesOnIsOpenedWhereItGoesOn(t *testing.T) {
	s := stage(t, ui.Options{}, func(s *scenes.Stage) { s.HomeIs = scenes.HomeFull() })
	s.Press("/").Type("0314-0926").Press("enter", "enter")
	asked(t, s, "attach charlm")
	hides(t, s, "past run")
}

func TestLeavingByHomeKeepsTheResultOfTheRun(t *testing.T) {
	s := ended(t, false, 0)
	s.Press("esc")
	says(t, s, "› home")
	if r := s.Model.Result(); r.Ended == nil || r.Cluster != "charlm" {
		t.Fatalf("the result is %+v", r)
	}
}

func TestSilenceIsCountedFromTheStartOfTheRun(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0).Up().Launch()
	s.Advance(story.At().Sub(scenes.Epoch) + 10*time.Second)
	s.Play(story.Events()...)
	says(t, s, "10s elapsed", "nothing was printed yet, for 10s")
}
