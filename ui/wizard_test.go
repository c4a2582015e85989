package ui_test

import (
	"errors"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// begun is a stage on which a new experiment is begun.
func begun(t *testing.T, opts ui.Options, set func(*scenes.Stage)) *scenes.Stage {
	t.Helper()
	s := stage(t, opts, func(s *scenes.Stage) {
		s.OffersAre, s.PlanIs = scenes.Offers(), scenes.PlanEC2()
		if set != nil {
			set(s)
		}
	})
	return s.Press("N")
}

// atMarket answers the first questions: EC2, in its first region.
func atMarket(t *testing.T, set func(*scenes.Stage)) *scenes.Stage {
	t.Helper()
	return begun(t, ui.Options{}, set).Press("down", "enter", "down", "enter")
}

func TestNewExperimentIsPutTogetherByKeysAndWrittenWhenConfirmed(t *testing.T) {
	s := begun(t, ui.Options{}, nil)
	says(t, s, "Where do the machines come from?", "› local", "ec2")
	says(t, s.Press("down", "enter"), "Where do they stand?", "default")
	says(t, s.Press("down", "c", "down", "down", "c"), "✓ 1", "✓ 2")
	s.Press("enter")
	asked(t, s, "offers of ec2 us-east-1 us-west-2")
	says(t, s, "14 machines", "live, asked 3m ago", "g5.12xlarge", "4 × A10G")
	s.Press("/").Type("a10g").Press("enter")
	says(t, s, "3 of 14 machines with a10g", "› ", "g5.48xlarge")
	s.Press("enter")
	says(t, s, "How many, and how?", "1 × g5.12xlarge  $5.67/h")
	s.Press("enter", "ctrl+u").Type("4").Press("enter")
	says(t, s, "4 × g5.12xlarge  $22.69/h")
	s.Press("right") // spot
	says(t, s, "‹ yes ›", "fallback", "$9.24/h")
	s.Press("down", "right", "tab")
	says(t, s, "Where does Python come from", "‹ venv ›", "requirements.txt")
	s.Press("right")
	says(t, s, "‹ system ›")
	hides(t, s, "packages    ")
	s.Press("tab")
	says(t, s, "What runs?", "train.py is the training script", "/home/ada/lm")
	s.Press("down", "down", "enter").Type(" --epochs 3").Press("enter", "tab")
	says(t, s, "When do the machines end by themselves?")
	s.Press("enter").Type("20").Press("enter")
	says(t, s, "names its currency", `did you mean "20USD"?`)
	s.Press("enter").Type("USD").Press("enter")
	hides(t, s, "names its currency")
	s.Press("tab").Resize(200, 60)
	says(t, s, "This is what it comes to.", "$9.30/h", "400 GiB of gp3 disk", "at most", "$20.00 by limits.budget", "request-service-quota-increase",
		"region: [us-east-1, us-west-2]", "instance: g5.12xlarge", "count: 4", "spot: true", "spot_fallback: true", "command: train.py --epochs 3", "budget: 20USD",
		"Nothing was written so far.")
	says(t, s.Press("W").Advance(time.Second), "Write the profile?", "/home/ada/lm/dlwb.yaml", "› Cancel")
	s.Press("enter")
	asked(t, s, "offers of ec2 us-east-1 us-west-2")
	s.Press("W").Advance(time.Second).Press("tab", "enter")
	asked(t, s, "offers of ec2 us-east-1 us-west-2", "save /home/ada/lm/dlwb.yaml")
	says(t, s, "› plan", "/home/ada/lm/dlwb.yaml", "starts it")
	says(t, s.Press("esc"), "› home")
}

func TestLocalExperimentHasNoQuestionsAboutMachines(t *testing.T) {
	s := begun(t, ui.Options{}, nil)
	says(t, s.Press("enter"), "How many, and how?", "2 nodes", "5 review")
	hides(t, s, "spot", "region", "disk")
	s.Press("5").Resize(160, 40)
	says(t, s, "provider: local", "venv: requirements.txt")
	asked(t, s)
}

func TestEscGoesOneStepBackAndKeepsTheDraft(t *testing.T) {
	s := atMarket(t, nil).Press("enter")
	says(t, s.Press("esc"), "Which machine?", "› ")
	says(t, s.Press("esc"), "Where do they stand?")
	says(t, s.Press("esc"), "Where do the machines come from?")
	says(t, s.Press("esc"), "› home")
	says(t, s.Press("N"), "the draft that was left", "› ec2")
	s.Press(":").Type("start over").Press("enter")
	says(t, s, "› local")
	if len(s.Wishes) != 1 {
		t.Fatalf("the machines of one question were asked for more than once: %q", s.Wishes)
	}
}

func TestFieldSaysWhatIsWrongWithItAndTheReviewGoesThere(t *testing.T) {
	s := begun(t, ui.Options{}, nil).Press("enter", "enter", "ctrl+u").Type("two").Press("enter")
	says(t, s, "two", "✗ this is no whole number")
	s.Press("5")
	says(t, s, "Some answers can't be used", "machines.count", "2 nodes !")
	says(t, s.Press("W"), "write, not now: some answers can't be used")
	says(t, s.Press("enter"), "How many, and how?", "› nodes", "✗ this is no whole number")
}

func TestVenvWithoutItsFileIsAFault(t *testing.T) {
	s := begun(t, ui.Options{}, nil).Press("enter", "3", "down", "enter", "ctrl+u", "enter")
	says(t, s, "name the requirements file")
}

func TestMachinesAreSortedByAnyColumnAndTurnedRound(t *testing.T) {
	s := atMarket(t, nil)
	s.Resize(200, 40)
	says(t, s, "on demand, best first", "› ", "g4dn.12xlarge")
	for range 7 { // machine, region, GPUs, each, vCPU, RAM, $/h
		s.Press("s")
	}
	says(t, s, "by $/h", "↓$/h", "›   g4dn.xlarge")
	says(t, s.Press("o"), "by $/h, reversed", "›   p5en.48xlarge")
	s.Press("s") // spot: what has no price comes last, in either order
	says(t, s, "›   g4dn.xlarge")
	says(t, s.Press("o"), "›   p5.48xlarge")
}

func TestMachinesAreComparedSideBySideAndTakenThere(t *testing.T) {
	s := atMarket(t, nil)
	says(t, s.Press("v"), "mark two or three machines with c first")
	s.Press("c", "down", "c", "down", "c", "down", "c")
	says(t, s, "3 are marked already")
	s.Press("v")
	says(t, s, "memory of all", "✓ 3.91", "g4dn.12xlarge", "g6.12xlarge", "g5.12xlarge", "EFA")
	s.Press("right", "enter")
	says(t, s, "How many, and how?", "g6.12xlarge")
}

func TestMarketThatDoesNotAnswerSaysWhyAndIsAskedAgain(t *testing.T) {
	s := atMarket(t, func(s *scenes.Stage) {
		s.OffersErr = &event.Fault{What: "list the machines of ec2", Node: -1, Why: "the credentials have expired", Next: "aws sso login --profile work"}
	})
	says(t, s, "the credentials have expired", "aws sso login --profile work", "r asks again")
	s.OffersErr = nil
	says(t, s.Press("r"), "14 machines")
	asked(t, s, "offers of ec2 us-east-1", "offers of ec2 us-east-1 fresh")
}

func TestMachineCanBeNamedWhereThereIsNoTable(t *testing.T) {
	s := atMarket(t, func(s *scenes.Stage) { s.OffersErr = errors.New("no network") })
	s.Press("enter").Type("g5.xlarge").Press("enter")
	says(t, s, "How many, and how?")
	says(t, s.Press("8").Resize(160, 50), "instance: g5.xlarge")
}

func TestFactsThatCameWithDlwbAreMarkedAsNotLive(t *testing.T) {
	s := atMarket(t, func(s *scenes.Stage) {
		s.OffersAre.Live, s.OffersAre.At = false, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
		s.OffersAre.Notes = []string{"AWS could not be asked about us-east-1 (no credentials)"}
	})
	says(t, s, "not live: facts of 2026-01-02", "AWS could not be asked")
}

func TestSpotAndAllMachinesAreAskedForAnew(t *testing.T) {
	s := atMarket(t, nil)
	says(t, s.Press("p"), "spot, best first")
	s.Press("a")
	asked(t, s, "offers of ec2 us-east-1", "offers of ec2 us-east-1", "offers of ec2 us-east-1 cpu")
	s.Press("enter")
	says(t, s, "‹ yes ›", "$1.40/h")
}

func TestRegionCanBeTyped(t *testing.T) {
	s := begun(t, ui.Options{}, nil).Press("down", "enter", "end", "enter").Type("me-central-1").Press("enter")
	says(t, s, "✓ 1 me-central-1")
	s.Press("enter")
	asked(t, s, "offers of ec2 me-central-1")
	says(t, s.Press("esc", "end", "enter").Type("us-east-1a").Press("enter"), "this is a zone")
}

func TestDirectoryOfTheExperimentCanBeChanged(t *testing.T) {
	s := begun(t, ui.Options{Here: "/home/ada/asr/dlwb.yaml"}, nil).Press("enter", "4")
	says(t, s, "/home/ada/asr")
	s.Press("5").Resize(100, 80)
	says(t, s, "there is a profile already")
	s.Press("4", "enter", "ctrl+u").Type("/home/ada/vision").Press("enter", "5")
	says(t, s, "/home/ada/vision/dlwb.yaml")
	hides(t, s, "there is a profile already")
}

func TestPathsAndRegionsAreCompletedByTab(t *testing.T) {
	s := begun(t, ui.Options{}, nil).Press("enter", "4", "down", "down", "enter", "ctrl+u").Type("t")
	says(t, s, "tab train.py", "of 2 suggestions")
	says(t, s.Press("down"), "tab tune.py")
	says(t, s.Press("tab").Type(" --lr 1").Press("enter"), "tune.py --lr 1")
	s.Press("home", "enter", "ctrl+u").Type("/home/ada/lm/d")
	says(t, s.Press("tab", "enter"), "/home/ada/lm/data")
	s = begun(t, ui.Options{}, nil).Press("down", "enter", "end", "enter").Type("eu-w")
	says(t, s.Press("tab", "enter"), "✓ 1 eu-west-1")
}

func TestHostileNameOfAFileCompletesNothing(t *testing.T) {
	s := begun(t, ui.Options{}, nil).Press("enter", "4", "down", "down", "enter", "ctrl+u").Type("bad")
	hides(t, s, "tab bad", "name.py")
	checkFrame(t, s.Model.Frame(), 100, 30)
}

func TestProfileThatIsThereIsNotReplaced(t *testing.T) {
	s := begun(t, ui.Options{}, nil).Press("enter", "5")
	s.Refuse = &event.Fault{What: "write the profile", Node: -1, Why: "/home/ada/lm/dlwb.yaml is there already", Next: "move it away"}
	s.Press("W").Advance(time.Second).Press("tab", "enter")
	says(t, s, "is there already", "move it away")
	says(t, s.Advance(time.Second).Press("esc"), "This is what it comes to.")
}

func TestReadOnlyBeginsNoExperiment(t *testing.T) {
	s := stage(t, ui.Options{ReadOnly: true}, nil)
	says(t, s.Press("N"), "started with --read-only")
}

func TestHostileTextOfAProviderReachesTheScreenAsText(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\u009b31m\u202e\r\nend"
	s := atMarket(t, func(s *scenes.Stage) {
		o := cloud.Offer{Provider: "ec2", Region: evil, Instance: evil, Arch: evil, GPU: evil, GPUs: 1, GPUShare: 1, Network: evil,
			OnDemand: cloud.Price{PerHour: 1, Source: evil}, Notes: []string{evil}, Zones: []cloud.Zone{{Name: evil}}}
		other := o
		other.Instance = "other"
		s.OffersAre = cloud.Offers{Offers: []cloud.Offer{o, other}, Notes: []string{evil}}
		s.PlanIs.Offer, s.PlanIs.MostWhy, s.PlanIs.Costs = &o, evil, []cloud.Cost{{What: evil, Source: evil}}
		s.PlanIs.Findings = []cloud.Finding{{What: evil, Text: evil, Next: evil}}
	})
	for _, k := range []string{"c", "down", "c", "v", "enter", "tab", "tab", "tab", "tab"} {
		s.Press(k)
		checkFrame(t, s.Model.Frame(), 100, 30)
	}
}

func TestMachinesThatOneHasAreNamedInTheWizard(t *testing.T) {
	s := begun(t, ui.Options{}, nil)
	says(t, s, "hosts", "machines that one already has", "slurm", "kubernetes")
	s.Press("down", "down", "enter")
	says(t, s, "How many, and how?", "› hosts", "✗ ", "modules", "such as ada@gpu1, ada@gpu2")
	hides(t, s, "spot", "disk  ")
	s.Press("enter").Type("gpu1, ada@gpu2").Press("enter")
	says(t, s, "gpu1, ada@gpu2", "› nodes", "empty: all that are named")
	hides(t, s, "✗ ")
	s.Press("enter", "ctrl+u").Type("3").Press("enter")
	says(t, s, "✗ there are only 2 hosts")
	s.Press("enter", "ctrl+u").Type("2").Press("enter")
	hides(t, s, "✗ ")
	s.Press("5")
	says(t, s, "This is what it comes to.")
	for range 30 {
		s.Press("down")
	}
	says(t, s, "provider: hosts", "hosts: [gpu1, ada@gpu2]")
}
