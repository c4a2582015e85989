package ui_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/exp/teatest/v2"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/cputime"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/workbench/event"
)

// says fails unless the screen has each of the texts.
func says(t *testing.T, s *scenes.Stage, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.Screen(), text) {
			t.Fatalf("the screen does not say %q:\n%s", text, s.Screen())
		}
	}
}

// hides fails if the screen has any of the texts.
func hides(t *testing.T, s *scenes.Stage, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(s.Screen(), text) {
			t.Fatalf("the screen says %q:\n%s", text, s.Screen())
		}
	}
}

func asked(t *testing.T, s *scenes.Stage, want ...string) {
	t.Helper()
	if got := strings.Join(s.Wishes, "; "); got != strings.Join(want, "; ") {
		t.Fatalf("asked of the workbench: %q, want %q", got, strings.Join(want, "; "))
	}
}

// stage builds a stage that is closed with the test.
func stage(t *testing.T, opts ui.Options, set func(*scenes.Stage)) *scenes.Stage {
	t.Helper()
	s := scenes.NewStage(100, 30, opts, set)
	t.Cleanup(s.Close)
	return s
}

// running is a stage on which the example trains.
func running(t *testing.T, opts ui.Options) *scenes.Stage {
	t.Helper()
	opts.Cluster = "charlm"
	out := scenes.Output(0.5)
	s := stage(t, opts, func(s *scenes.Stage) { s.Logs[0], s.Logs[1] = out, "rank 1 is ready\n" })
	story := scenes.NewStory(2, 0).Up().Launch().Train(0, 0.5)
	story.Log(0, out).Log(1, "rank 1 is ready\n")
	s.Advance(story.At().Sub(scenes.Epoch))
	return s.Play(story.Events()...)
}

func TestProfileIsPlannedBeforeItIsStarted(t *testing.T) {
	s := stage(t, ui.Options{}, func(s *scenes.Stage) {
		s.HomeIs = event.Home{Profiles: []event.ProfileInfo{{Name: "charlm", Path: "lm.yaml", Provider: "local"}}}
		s.PlanIs = &ui.PlanView{Name: "charlm", Nodes: 2, Engine: "torchrun", WorldSize: 2, Provider: "local"}
	})
	s.Press("R")
	says(t, s, "torchrun, world size 2", "Nothing was changed so far")
	asked(t, s)
	s.Press("R")
	asked(t, s, "start lm.yaml")
	says(t, s, "waiting for the first news of charlm")
}

func TestScreenFollowsAStartToItsReceipt(t *testing.T) {
	s := stage(t, ui.Options{StartPath: "lm.yaml"}, nil)
	story := scenes.NewStory(2, 0).Plan()
	story.Tell(event.StepStarted{Step: event.StepCluster, Text: "starting 2 nodes"},
		event.StepProgress{Step: event.StepCluster, Node: 1, Text: "sshd listens"})
	s.Play(story.Events()...)
	says(t, s, "› steps", "starting 2 nodes", "node1   sshd listens", "then Python is looked for")

	next := scenes.NewStory(2, 0).Up().Launch().Train(0, 0.5)
	s.Play(next.Events()...)
	says(t, s, "› train", "● training", "epoch 4/6", "step 300/600", "world size 2 on 2 nodes", "no GPU", "val/loss")

	from := len(next.Events())
	next.End().Down(true)
	s.Play(next.Events()[from:]...)
	says(t, s, "› receipt", "Everything is gone", "0 processes, 0 files", "no process carries")
}

func TestFailedStepSaysCommandLastLinesAndHowToTryAgain(t *testing.T) {
	s := stage(t, ui.Options{StartPath: "lm.yaml"}, nil)
	story := scenes.NewStory(2, 0).Plan()
	story.Tell(event.StepStarted{Step: event.StepEnvironment},
		event.StepEnded{Step: event.StepEnvironment, Failure: &event.Fault{What: "install requirements.txt", Node: 1,
			Why: "pip ended with 1", Command: "pip install -r requirements.txt", LastLines: []string{"ERROR: no such package"}, Next: "correct the name"}})
	s.Play(story.Events()...)
	says(t, s, "install requirements.txt on node1: pip ended with 1", "$ pip install -r", "│ ERROR: no such package", "correct the name", "tries again")
	s.Press("R")
	asked(t, s, "start lm.yaml", "start lm.yaml")
}

func TestStartThatIsRefusedSaysWhy(t *testing.T) {
	s := stage(t, ui.Options{StartPath: "lm.yaml"}, func(s *scenes.Stage) { s.StartErr = errors.New("port 29400 is taken") })
	says(t, s, "port 29400 is taken", "tries again")
}

func TestTeardownAsksOnceAndSwallowsKeysTypedAhead(t *testing.T) {
	s := running(t, ui.Options{})
	s.Press("X", "tab", "enter") // all within an instant: not meant for the dialog
	says(t, s, "Tear down charlm?", "· Cancel", "the run that is going on: charlm")
	asked(t, s, "attach charlm")
	says(t, s.Advance(500*time.Millisecond), "› Cancel")
	s.Press("enter") // the focus is there
	hides(t, s, "Tear down charlm?")
	asked(t, s, "attach charlm")
	s.Press("X").Advance(500*time.Millisecond).Press("tab", "enter") // without its name a cluster with a live run stays
	asked(t, s, "attach charlm")
	s.Press("X").Advance(500 * time.Millisecond).Type("charln")
	says(t, s, "type charlm to agree", "› Cancel")
	s.Press("backspace").Type("m")
	says(t, s, "› Tear down")
	s.Press("enter")
	asked(t, s, "attach charlm", "down charlm")
	says(t, s, "› steps")
}

func TestCtrlCIsNeverTakenForAKeyTypedAhead(t *testing.T) {
	says(t, running(t, ui.Options{}).Press("X", "ctrl+c"), "Quit dlwb?")
}

// The dialog once said "nothing was run on it" after a run that had ended.
func TestTeardownSaysWhatIsSavedOfARunThatEnded(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0).Up().Launch().Train(0, 1).End()
	s.Play(story.Events()...)
	s.Press("X")
	says(t, s, "Tear down charlm?", "result files of run charlm-0314-0926 in ")
	hides(t, s, "nothing was run", "type charlm", "not saved")
	s.Press("esc", "esc", "esc")
}

// What would be lost is looked up first: until then nothing can be agreed to.
func TestNothingCanBeAgreedToBeforeItIsKnownWhatIsLost(t *testing.T) {
	s := running(t, ui.Options{})
	s.Refuse = errors.New("the store is locked")
	s.AskErr = s.Refuse
	s.Press("X").Advance(time.Second)
	says(t, s, "look at what would be lost", "the store is locked", "› Close")
	s.Press("tab", "enter")
	asked(t, s, "attach charlm")
}

func TestUnprovenTeardownIsUnresolvedOnEveryScreen(t *testing.T) {
	s := running(t, ui.Options{})
	story := scenes.NewStory(2, 0)
	story.Tell(event.ClusterUp{Nodes: []cloud.Node{{Name: "node0"}}, PricePerHour: 2}).Down(false)
	s.Play(story.Events()...)
	for _, k := range []string{"t", "l", "n", "s"} {
		says(t, s.Press(k), "! UNRESOLVED", "$2.00/h")
	}
}

func TestWishThatFailsSaysWhatToDo(t *testing.T) {
	s := running(t, ui.Options{})
	s.Refuse = &event.Fault{What: "start Jupyter", Node: 0, Why: "it is not installed", Next: "pip install jupyterlab"}
	says(t, s.Press("J"), "start Jupyter on node0: it is not installed", "pip install jupyterlab")
	s.Advance(time.Second).Press("esc")
	s.Refuse = nil
	s.Press("T")
	if last := s.Wishes[len(s.Wishes)-1]; last != "open http://127.0.0.1:8888/?dlwb_token=4c1f" {
		t.Fatalf("the browser was not opened: %q", s.Wishes)
	}
}

func TestReadOnlyRefusesWhatActsAndSaysSo(t *testing.T) {
	s := running(t, ui.Options{ReadOnly: true})
	says(t, s, "read-only")
	for _, k := range []string{"X", "J", "T", "S", "F", "R"} {
		says(t, s.Press(k), "started with --read-only")
	}
	asked(t, s, "attach charlm")
}

func TestOnlyHomeQuitsAndLeavingExplainsItself(t *testing.T) {
	s := running(t, ui.Options{})
	says(t, s.Press("q"), "esc goes back, q quits at home")
	says(t, s.Press("ctrl+c"), "what runs goes on without it", "dlwb attach charlm", "› Stay")
	s.Press("enter")
	if s.Quit {
		t.Fatal("Stay quits")
	}
	s.Press("ctrl+c", "ctrl+c")
	if !s.Quit {
		t.Fatal("ctrl+c twice does not quit")
	}
	s = running(t, ui.Options{})
	s.Press("esc", "q")
	if !s.Quit {
		t.Fatal("q at home does not quit")
	}
}

func TestLogsSearchFollowAndRanks(t *testing.T) {
	s := running(t, ui.Options{})
	s.Press("l")
	says(t, s, "▼ following", "step 290/600")
	s.Press("/").Type("val_loss").Press("enter")
	says(t, s, `"val_loss"`, "of 6", "held")
	s.Press("esc")
	hides(t, s, `"val_loss"`)
	s.Press("home")
	says(t, s, "charlm: PyTorch 1.13.1", "held")
	s.Press("f")
	says(t, s, "▼ following", "step 290/600")
	s.Press("tab")
	says(t, s, "rank 1 is ready")
	s.Press("0")
	says(t, s, "step 290/600")
	s.Press("9")
	says(t, s, "there is no rank 9")
}

func TestLogIsReadInBoundedChunksToItsEnd(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	out := strings.Repeat(line, 20000) + "the end\n" // eight chunks
	s := stage(t, ui.Options{Cluster: "charlm"}, func(s *scenes.Stage) { s.Logs[0] = out })
	story := scenes.NewStory(1, 0).Up().Launch()
	s.Play(story.Log(0, out).Events()...)
	says(t, s.Press("l"), "the end", "20 001 lines")
}

func TestLateNewsOfAnEarlierClusterIsDropped(t *testing.T) {
	s := running(t, ui.Options{})
	s.Press("esc")
	story := scenes.NewStory(1, 0)
	s.Play(story.Tell(event.Noticed{Level: "warning", Text: "an old cluster speaks"}).Events()...)
	hides(t, s, "an old cluster speaks")
}

func TestFloodEntersAsBatches(t *testing.T) {
	s := running(t, ui.Options{})
	story := scenes.NewStory(2, 0)
	step := int64(0)
	for range 20000 {
		step++
		story.Tell(event.PointsAdded{Points: []metrics.Point{{Name: "flood", Step: &step, Ordinal: step, Value: 1}}})
	}
	begin := cputime.Worked()
	s.Play(story.Events()...)
	if took := cputime.Worked() - begin; took > 5*time.Second {
		t.Fatalf("20,000 events took %s", took)
	}
}

func TestHostileTextReachesTheScreenAsText(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\u009b31m\u202ereversed\x07\r\tend"
	s := stage(t, ui.Options{Cluster: "charlm"}, func(s *scenes.Stage) { s.Logs[0] = evil + "\n" })
	story := scenes.NewStory(1, 0).Up()
	story.Tell(event.RunStarted{Engine: evil, WorldSize: 1, Nodes: 1, Command: evil},
		event.NodeChanged{Node: 0, State: cloud.Unknown, Why: evil},
		event.PointsAdded{Points: []metrics.Point{{Name: evil, Value: 1}}},
		event.Noticed{Level: "warning", Text: evil, Next: evil},
		event.ForwardOpened{Name: evil, URL: evil, LocalPort: 1},
		event.Failed{Fault: event.Fault{What: evil, Why: evil, Next: evil, Command: evil, LastLines: []string{evil}}})
	s.Play(story.Log(0, evil+"\n").Events()...)
	for _, k := range []string{"t", "l", "n", "f", "s", "?"} {
		s.Press(k)
		checkFrame(t, s.Model.Frame(), 100, 30)
		if strings.ContainsRune(s.Model.Frame(), '\u202e') || strings.Contains(s.Model.Frame(), "\x1b]") {
			t.Fatalf("%s: hostile text came through", k)
		}
	}
}

func TestPaletteFindsAndRefusesWithAReason(t *testing.T) {
	s := running(t, ui.Options{})
	s.Press(":").Type("pull")
	says(t, s, "pull results")
	s.Press("enter")
	says(t, s, "3 files, 4.2 MB in results/")
	s.Press("esc", ":").Type("filter")
	says(t, s, "filter the list")
	s.Press("esc", ":").Type("one page down")                    // by either of its keys
	if n := strings.Count(s.Screen(), "one page down"); n != 3 { // what was typed, its row, its sentence
		t.Errorf("it is there %d times:\n%s", n, s.Screen())
	}
}

func TestLinesAreEditedWithReadlinesKeysEverywhere(t *testing.T) {
	s := stage(t, ui.Options{}, nil)
	edit := func() {
		t.Helper()
		s.Type("ab cd").Press("alt+b").Type("x ").Press("home", "delete", "end", "ctrl+w").Send(tea.PasteMsg{Content: "e\n"})
		says(t, s, "b x e")
		s.Press("ctrl+a", "ctrl+k").Send(tea.PasteMsg{Content: strings.Repeat("y", line.Most+1)})
		hides(t, s, "yy")
	}
	s.Press("/")
	edit()
	says(t, s, "a line has at most 4000 characters")
	s.Press("esc", ":")
	edit()
	s.Press("esc", "enter", "l", "/")
	edit()
}

func TestPasteNeverPressesKeys(t *testing.T) {
	s := running(t, ui.Options{})
	s.Send(tea.PasteMsg{Content: "X\nq"})
	hides(t, s, "Tear down")
	s.Press("l", "/").Send(tea.PasteMsg{Content: "epoch"}).Press("enter")
	says(t, s, `"epoch"`)
}

func TestCopyTakesPlainText(t *testing.T) {
	s := running(t, ui.Options{})
	s.Press("l", "y")
	if !strings.Contains(s.Copied, "step 290/600") || strings.Contains(s.Copied, "\x1b") {
		t.Fatalf("copied %q", s.Copied)
	}
}

func TestEverythingFromAStreamThatCannotBeReadIsSaid(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "gone"}, func(s *scenes.Stage) { s.Refuse = errors.New("no cluster is called gone") })
	says(t, s, "gone can't be followed", "no cluster is called gone", "goes back")
}

func TestProgramShowsItsFirstFrameAndEnds(t *testing.T) {
	s := stage(t, ui.Options{}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := ui.New(ctx, s, ui.Options{Theme: "dark"})
	tm := teatest.NewTestModel(t, m, teatest.WithInitialTermSize(80, 24))
	teatest.WaitFor(t, tm.Output(), func(b []byte) bool { return bytes.Contains(b, []byte("Nothing here yet")) })
	tm.Send(scenes.Key("q"))
	tm.WaitFinished(t, teatest.WithFinalTimeout(5*time.Second))
}

func TestNextRunOnTheSameClusterBeginsAnew(t *testing.T) {
	s := running(t, ui.Options{})
	first := scenes.NewStory(2, 0)
	s.Play(first.End().Events()...)
	says(t, s, "✓ succeeded")

	again := scenes.NewStory(2, 0)
	again.Run = "charlm-0314-0940"
	s.Play(again.Plan().Tell(event.StepStarted{Step: event.StepSync, Text: "copying"}).Events()...)
	says(t, s, "› steps", "copying")
	hides(t, s, "succeeded")
	n := len(again.Events())
	again.Launch().Train(0, 0.1)
	s.Play(again.Events()[n:]...)
	says(t, s, "› train", "● training", "step 60/600")
}

func TestRanksThatDoNotEndAreWaitedForByName(t *testing.T) {
	s := running(t, ui.Options{})
	story := scenes.NewStory(2, 0)
	story.Wait(time.Minute).Tell(event.RankEnded{Rank: 0})
	s.Play(story.Events()...)
	says(t, s, "1 of 2 ranks ended", "waiting for the others")
}

// A sync in another terminal once wiped a finished run from an open screen.
func TestCommandThatLaunchesNothingWipesNoRunFromTheScreen(t *testing.T) {
	for until, steps := range map[string][]string{"sync": {"cluster", "environment", "sync"}, "environment": {"cluster", "environment"}} {
		s := stage(t, ui.Options{Cluster: "charlm"}, nil)
		story := scenes.NewStory(2, 0).Up().Launch().Train(0, 1).End()
		s.Play(story.Events()...).Press("t")
		before := s.Screen()
		done := len(story.Events())
		story.Tell(event.PlanMade{Profile: "charlm", Nodes: 2, Steps: event.Steps, Until: until})
		for _, step := range steps {
			story.Step(step, "3 files", time.Second)
		}
		s.Play(story.Events()[done:]...).Advance(10 * time.Second) // the note is off again
		if after := s.Screen(); after != before {
			t.Fatalf("%s changed what is shown to\n%s\nfrom\n%s", until, after, before)
		}
		says(t, s.Press("s"), "✓ train", "succeeded", "another command on this cluster: "+steps[len(steps)-1]+": 3 files")

		done = len(story.Events())
		story.Tell(event.PlanMade{Profile: "charlm", Nodes: 2, Steps: event.Steps, Until: until},
			event.Failed{Fault: event.Fault{What: "copy the code", Node: 1, Why: "its disk is full"}})
		s.Play(story.Events()[done:]...)
		says(t, s, "✓ train", "copy the code on node1: its disk is full")

		done = len(story.Events())
		story.Tell(event.StepStarted{Step: event.StepDown, Text: "cluster charlm"}) // another command again
		s.Play(story.Events()[done:]...)
		says(t, s, "down", "cluster charlm")

		done = len(story.Events())
		story.Tell(event.PlanMade{Profile: "charlm", Nodes: 2, Steps: event.Steps}) // a new run is under way
		s.Play(story.Events()[done:]...)
		hides(t, s, "succeeded")
	}
}

// A filter was on without a sign, and what it hid looked gone.
func TestHomeSaysThatAFilterIsOn(t *testing.T) {
	s := stage(t, ui.Options{}, func(s *scenes.Stage) { s.HomeIs = scenes.HomeFull() })
	hides(t, s, "esc shows all")
	s.Press("/").Type("imagenet")
	says(t, s, "/imagenet", " of ", "esc shows all")
	s.Press("enter")
	says(t, s, "/imagenet", "esc shows all")
	s.Press("esc")
	hides(t, s, "/imagenet")
}

// The line that another process watches stayed when that had ended, and once
// named the process itself.
func TestWatcherIsNamedWhileItWatchesAndNeverItself(t *testing.T) {
	for _, own := range []bool{false, true} {
		opts := ui.Options{PID: 1}
		if own {
			opts.PID = 41877
		}
		var home *scenes.Stage
		s := stage(t, opts, func(s *scenes.Stage) { s.HomeIs, home = scenes.HomeFull(), s })
		s.Press("down", "enter")
		story := scenes.NewStory(2, 0)
		story.Cluster = "imagenet-r50"
		s.Play(story.Up().Launch().Train(0, 0.5).Events()...)
		s.Advance(10 * time.Second)
		if own {
			hides(t, s, "watches this cluster")
			continue
		}
		says(t, s, "process 41877 watches this cluster")
		home.HomeIs.Clusters[1].Owner = 0
		s.Advance(time.Minute)
		hides(t, s, "watches this cluster")
	}
}

// "dlwb down hh" was advised when hh had been torn down a moment before.
func TestQuittingAfterATeardownNamesNoClusterThatIsGone(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, func(s *scenes.Stage) { s.HomeIs = scenes.HomeFull() })
	story := scenes.NewStory(2, 0).Up().Launch().Train(0, 1).End().Down(true)
	s.Play(story.Events()...)
	s.Press("esc", "esc", "esc")
	for _, name := range s.Model.Result().Running {
		if name == "charlm" {
			t.Errorf("goes on: %v", s.Model.Result().Running)
		}
	}
}
