package event

import "testing"

func TestNodesAreCalledWhatTheUserCallsThem(t *testing.T) {
	n := Names{"ada@gpu1", "node2", "", "node3"}
	for text, want := range map[string]string{
		"rank 3 on node0 exited with code 1":                 "rank 3 on node0 (ada@gpu1) exited with code 1",
		"node1 (ranks 2, 3) has not been heard of, node2 is": "node1 (node2; ranks 2, 3) has not been heard of, node2 is",
		"node1 (node2) and node10 and xnode0 and node3":      "node1 (node2) and node10 and xnode0 and node3",
		"none": "none",
	} {
		if got := n.In(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if got := n.In(n.In(text)); got != want {
			t.Errorf("the second time %q became %q", text, got)
		}
		if got := (Names)(nil).In(text); got != text {
			t.Errorf("without names %q became %q", text, got)
		}
	}
	f := &Fault{What: "connect", Node: 0, Why: "no answer"}
	if b := n.Body(StepEnded{Failure: f}).(StepEnded); b.Failure.Error() != "connect on node0 (ada@gpu1): no answer" {
		t.Error(b.Failure.Error())
	}
	if b := n.Body(RunStarted{Ranks: []RankInfo{{Rank: 1, Node: 1}}}).(RunStarted); b.Ranks[0].Host != "node2" {
		t.Errorf("%+v", b)
	}
}
