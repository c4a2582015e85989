package ui_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// leased is a stage on which two paid machines train. They end at a moment
// counted from scenes.Epoch.
func leased(t *testing.T, ends time.Duration, bodies ...event.Body) *scenes.Stage {
	t.Helper()
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	story := scenes.NewStory(2, 0)
	story.Tell(event.ClusterUp{Provider: "ec2", Region: "us-west-2", Instance: "g5.xlarge", Nodes: make([]cloud.Node, 2),
		PricePerHour: 2, Costs: []cloud.Cost{{What: "2 × g5.xlarge", PerHour: 1.9}, {What: "200 GB of gp3 disk", PerHour: 0.1}}, Ends: scenes.Epoch.Add(ends)})
	story.Launch().Tell(bodies...)
	return s.Play(story.Events()...)
}

// later tells one more event at a moment counted from scenes.Epoch.
func later(s *scenes.Stage, at time.Duration, bodies ...event.Body) {
	s.Play(scenes.NewStory(2, 0).Wait(at).Tell(bodies...).Events()...)
}

func TestNewPriceDoesNotRewriteWhatWasSpent(t *testing.T) {
	disks := []cloud.Cost{{What: "200 GB of gp3 disk", PerHour: 6}}
	up := event.ClusterUp{Provider: "ec2", Instance: "g5.xlarge", Nodes: make([]cloud.Node, 2), PricePerHour: 120}
	s := leased(t, 24*time.Hour)
	later(s, 0, up)
	s.Advance(time.Minute)
	says(t, s, "$120.00/h", "$2.00 so far")
	later(s, time.Minute, event.ClusterStopped{PricePerHour: 6, Costs: disks})
	says(t, s, "$6.00/h", "$2.00 so far", "○ stopped", "disks cost $6.00/h")
	s.Advance(10 * time.Minute)
	says(t, s, "$3.00 so far")
	up.PricePerHour = 30
	later(s, 11*time.Minute, up)
	says(t, s, "$30.00/h", "$3.00 so far")
	s.Advance(8 * time.Minute)
	says(t, s, "$7.00 so far")
}

func TestExtendingTheLeaseCostsNothingTwice(t *testing.T) {
	s := leased(t, 2*time.Hour)
	s.Advance(6 * time.Minute)
	later(s, 6*time.Minute, event.ClusterUp{Provider: "ec2", Instance: "g5.xlarge", Nodes: make([]cloud.Node, 2), PricePerHour: 2, Ends: scenes.Epoch.Add(3 * time.Hour)})
	says(t, s, "$0.20 so far", "ends in 2h53m (lifetime)")
}

func TestCountdownNamesTheBoundThatIsReachedFirst(t *testing.T) {
	at := scenes.Epoch
	s := leased(t, 5*time.Hour)
	says(t, s, "2 × g5.xlarge in us-west-2", "ends in 5h (lifetime)")
	both := func(bound string, ends time.Time) {
		later(s, 0, event.LeaseChanged{Node: 0, Bound: bound, Ends: ends}, event.LeaseChanged{Node: 1, Bound: bound, Ends: ends})
	}
	both("idle", at.Add(27*time.Minute+30*time.Second))
	says(t, s, "ends in 27m29s (idle)")
	both("budget", at.Add(2*time.Hour+time.Minute))
	says(t, s, "ends in 2h (budget)")
	hides(t, s, "idle")
	later(s, 0, event.LeaseChanged{Node: 1, Bound: "idle", Ends: at.Add(4*time.Minute + 30*time.Second)})
	says(t, s, "! ends in 4m29s (idle, node1)")
	s.Advance(10 * time.Minute)
	says(t, s, "! overdue 5m")
}

func TestSpotNoticeIsShownAtOnceAndCountsDown(t *testing.T) {
	s := leased(t, 5*time.Hour, event.SpotNotice{Node: 1, Action: "terminate", At: scenes.Epoch.Add(2 * time.Minute)})
	for _, k := range []string{"l", "n", "s", "?", "t"} {
		says(t, s.Press(k), "node1 will be taken away in 2m (spot): checkpoint now")
	}
	s.Advance(12 * time.Second)
	says(t, s, "in 1m48s (spot)")
	s.Advance(2 * time.Minute)
	says(t, s, "node1: was to be taken away 11s ago (spot)")
	later(s, 3*time.Minute, event.NodeChanged{Node: 1, State: cloud.Gone})
	hides(t, s, "(spot)")
}

func TestLeaseIsExtendedOnlyAfterAQuestion(t *testing.T) {
	s := leased(t, 3*time.Hour, event.LeaseChanged{Node: 0, Bound: "idle", Ends: scenes.Epoch.Add(20 * time.Minute)})
	says(t, s.Press("E"), "live an hour longer?", "12:26, in 3h", "13:26, in 4h", "at most $2.00 more", "another bound (idle)", "· Cancel")
	says(t, s.Advance(time.Second), "› Cancel")
	asked(t, s, "attach charlm")
	s.Press("tab", "enter")
	asked(t, s, "attach charlm", "extend charlm 1h0m0s")
	says(t, s, "the machines live until 13:26")
}

func TestMachinesWithoutALeaseCanNotBeExtended(t *testing.T) {
	says(t, running(t, ui.Options{}).Press("E"), "extend, not now: these machines have no lease")
	says(t, running(t, ui.Options{ReadOnly: true}).Press("E"), "started with --read-only")
}

func TestMachinesAreStoppedAndStartedFromThePalette(t *testing.T) {
	s := leased(t, 5*time.Hour)
	s.Press(":").Type("stop the machines").Press("enter").Advance(time.Second)
	says(t, s, "Stop the machines of charlm?", "the run that is going on", "the disks, with every file on them", "$0.10/h for the disks, instead of $2.00/h", "› Cancel")
	s.Type("charlm").Press("enter")
	asked(t, s, "attach charlm", "stop machines charlm")
	later(s, time.Minute, event.ClusterStopped{PricePerHour: 0.1})
	says(t, s, "○ stopped")
	hides(t, s, "ends in")
	says(t, s.Press("J"), "its machines are stopped")
	says(t, s.Press("n"), "○ stopped")
	s.Press(":").Type("start the machines").Press("enter")
	says(t, s, "Start the machines of charlm?", "$2.00/h again")
	s.Advance(time.Second).Press("tab", "enter")
	asked(t, s, "attach charlm", "stop machines charlm", "start machines charlm")
}

func TestUnresolvedStandsAboveEveryScreenWithItsPrice(t *testing.T) {
	s := stage(t, ui.Options{}, func(s *scenes.Stage) {
		s.HomeIs = scenes.HomeFull()
		s.PlanIs = scenes.PlanEC2()
	})
	bar := "UNRESOLVED: sweep, $1.01/h, dlwb down sweep"
	says(t, s, bar)
	says(t, s.Press("?"), bar)
	says(t, s.Press("esc", "N"), bar)
	says(t, s.Press("esc", "down", "down", "down", "R"), "› plan", bar)
	says(t, s.Press("esc", "home", "enter"), "› train", bar)
	for _, k := range []string{"l", "n", "f", "s"} {
		says(t, s.Press(k), bar)
	}
	s.Resize(40, 8)
	says(t, s, "UNRESOLVED: sweep")
}

func TestClusterThatBecomesUnresolvedIsSeenFromAnyScreen(t *testing.T) {
	s := running(t, ui.Options{})
	hides(t, s, "UNRESOLVED")
	s.HomeIs = scenes.HomeFull()
	s.Advance(time.Minute)
	says(t, s, "UNRESOLVED: sweep, $1.01/h")
	s.HomeIs.Clusters = nil
	s.Advance(time.Minute)
	hides(t, s, "UNRESOLVED")
}

func TestUnresolvedClusterThatIsLookedAtIsCountedOnce(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "sweep"}, func(s *scenes.Stage) { s.HomeIs = scenes.HomeFull() })
	story := scenes.NewStory(2, 0)
	story.Cluster = "sweep"
	story.Tell(event.ClusterUp{Nodes: make([]cloud.Node, 1), PricePerHour: 1.5})
	s.Play(story.Down(false).Events()...)
	says(t, s, "UNRESOLVED: sweep, $1.50/h, dlwb down sweep")
}

func TestReceiptIsCopiedWithItsCommandsWhole(t *testing.T) {
	command := "aws ec2 terminate-instances --region us-east-1 --instance-ids i-0123456789abcdef0 i-0123456789abcdef1"
	s := leased(t, time.Hour)
	later(s, time.Minute, event.ReceiptMade{Cost: 1.5, Resources: []cloud.Resource{
		{Kind: "instance", ID: "i-0123456789abcdef0", State: cloud.Alive, Proof: "by hand: " + command, Lived: time.Hour, Cost: 1.25}}})
	says(t, s, "› receipt", "1h", "$1.25", "✗ alive", "aws ec2 terminate-instances", "i-0123456789abcdef1")
	if s.Press("y"); !strings.Contains(s.Copied, command) {
		t.Fatalf("copied %q", s.Copied)
	}
}

func TestHomeSaysWhereClustersAreAndWhenTheyEnd(t *testing.T) {
	s := stage(t, ui.Options{}, func(s *scenes.Stage) { s.HomeIs = scenes.HomeFull() })
	s.Resize(120, 30)
	says(t, s, "$17.30/h", "4 × g5.12xlarge spot, us-east-1", "ends in 13h", "! ends in 4m09s", "$182.45")
	s.Press("/").Type("eu-west-1")
	says(t, s, "sweep")
	hides(t, s, "imagenet")
}

func TestNodesScreenHasThePartsOfThePrice(t *testing.T) {
	says(t, leased(t, time.Hour).Press("n"), "what it costs", "$1.90/h  2 × g5.xlarge", "$0.10/h  200 GB of gp3 disk")
}
