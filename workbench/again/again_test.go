package again

import (
	"slices"
	"testing"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

func TestARunIsStartedAgainWhenThatMayHelp(t *testing.T) {
	p := &profiles.Profile{Provider: "local"}
	p.Run.Restarts, p.Results.Checkpoints = 2, "ckpt"
	for verdict, want := range map[event.Verdict]Why{
		event.ExitedBad: Failed, event.Killed: Failed, event.Hung: Failed, event.OutOfMemory: Failed, event.Rebooted: Failed,
		event.Succeeded: Not, event.Stopped: Not, event.DiskFull: Not, event.TimedOut: Not, event.Lost: Not,
	} {
		if got := WhyOf(&event.RunEnded{Verdict: verdict}, false, p, "plain"); got != want {
			t.Errorf("after %s: %v, want %v", verdict, got, want)
		}
	}
	if WhyOf(nil, true, p, "plain") != Not || WhyOf(&event.RunEnded{Verdict: event.Lost}, true, p, "plain") != Taken {
		t.Error("a run that goes on, or lost machines that can be had anew")
	}
	p.Run.Restarts = 0
	if WhyOf(&event.RunEnded{Verdict: event.ExitedBad}, true, p, "plain") != Not {
		t.Error("it is started again without run.restarts")
	}
}

func TestALauncherThatStartsRanksAgainIsLeftToItWithoutCheckpoints(t *testing.T) {
	for _, c := range []struct {
		engine, ckpts string
		least         int
		want          Why
	}{{"torchrun", "", 0, Not}, {"torchrun", "ckpt", 0, Failed}, {"torchrun", "ckpt", 1, Not}, {"plain", "", 0, Failed}, {"ray", "ckpt", 0, Failed}} {
		p := &profiles.Profile{Provider: "local"}
		p.Run.Restarts, p.Results.Checkpoints, p.Run.MinNodes = 1, c.ckpts, c.least
		if got := WhyOf(&event.RunEnded{Verdict: event.Killed}, false, p, c.engine); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestTriesOfEachKindAreCountedApart(t *testing.T) {
	p := &profiles.Profile{}
	p.Run.Restarts, p.Limits.Replacements = 2, 1
	var tries Tries
	var got []string
	for _, why := range []Why{Failed, Taken, Failed, Failed, Taken} {
		which, refused := tries.Next(why, p)
		got = append(got, which+refused)
	}
	want := []string{"1 of 2 times", "1 of 1 times", "2 of 2 times",
		"the run was started again 2 times, which is run.restarts", "machines were replaced 1 times, which is limits.replacements"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestACommandGoesOnFromTheCheckpointOfItsNode(t *testing.T) {
	if got := planning.Command("train.py", "--resume {checkpoint}", false); got != "train.py" {
		t.Errorf("without a checkpoint it is %q", got)
	}
	if got := planning.Command("train.py", "--resume", false); got != "train.py --resume" {
		t.Errorf("a script that looks by itself gets %q", got)
	}
	command := planning.Command("train.py", "--resume={checkpoint}", true)
	shared := []string{"python", command}
	made := engine.Plan{Nodes: [][]engine.Proc{{{Argv: shared}}, {{Argv: shared}}}}
	Fill(made, map[int]string{0: "ckpt/a", 1: "ckpt/b"})
	if a, b := made.Nodes[0][0].Argv[1], made.Nodes[1][0].Argv[1]; a != "train.py --resume=ckpt/a" || b != "train.py --resume=ckpt/b" {
		t.Errorf("%q and %q", a, b)
	}
	own := engine.Plan{Nodes: [][]engine.Proc{{{Argv: []string{"train.py", "--name={checkpoint}"}}}}}
	if Fill(own, nil); own.Nodes[0][0].Argv[1] != "--name={checkpoint}" {
		t.Errorf("without a checkpoint a word of the command became %q", own.Nodes[0][0].Argv[1])
	}
	if got := Env("/home/u/dlwb/c/code", "ckpt/a"); !slices.Equal(got, []string{"DLWB_CHECKPOINT=/home/u/dlwb/c/code/ckpt/a"}) || Env("/x", "") != nil {
		t.Errorf("%q", got)
	}
}
