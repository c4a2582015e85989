package ui_test

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// What a person has to read is on a terminal of 80 columns whole, over several rows
// where it needs them.

// words is a screen, or a text, as one line.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// saysWhole fails unless the screen has each of the texts, wherever it breaks them.
func saysWhole(t *testing.T, s *scenes.Stage, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(words(s.Screen()), words(text)) {
			t.Fatalf("the screen does not say %q in full:\n%s", text, s.Screen())
		}
	}
}

func TestWhyAKeyDoesNothingIsReadWhole(t *testing.T) {
	s := running(t, ui.Options{}).Resize(80, 24).Press("E")
	saysWhole(t, s, "extend, not now: these machines have no lease: they end when they are torn down")
	hides(t, s, "s shows all of it") // the steps have nothing of it
	s.Press("s", "E")
	saysWhole(t, s, "extend, not now: these machines have no lease: they end when they are torn down")
}

func TestTheStepsSayWholeWhatWasDoneAndWhereTheResultsAre(t *testing.T) {
	s := running(t, ui.Options{}).Resize(80, 30)
	done := "Python 3.12.3 (/usr/bin/python3) with PyTorch 2.4.0; the python3 on PATH (3.11.7) has no PyTorch"
	dir := "/home/ada/.local/state/dlwb/runs/charlm-1126-222707-f25a/results/of/this/run"
	told := func(b event.Body) event.Event {
		return event.Event{Cluster: "charlm", Run: "charlm-0314-0926", Body: b}
	}
	s.Play(told(event.StepEnded{Step: event.StepEnvironment, OK: true, Text: done}), told(event.RunEnded{Verdict: event.Succeeded, Cause: "every rank ended with code 0"}),
		told(event.ResultsFetched{Dir: dir, Files: 2, Bytes: 1_400_000}))
	s.Press("s")
	says(t, s, "(3.11.7) has no PyTorch", "2 files, 1.4 MB in")
	if !strings.Contains(strings.ReplaceAll(words(s.Screen()), " ", ""), dir) {
		t.Fatalf("the screen does not say where the results are, %s:\n%s", dir, s.Screen())
	}
}

func TestTheWizardSaysWholeWhatAProviderIs(t *testing.T) {
	s := stage(t, ui.Options{}, nil).Resize(80, 24).Press("N")
	for _, p := range providers.All {
		if p.Doc != "" && strings.Contains(s.Screen(), "  "+p.Name+" ") {
			saysWhole(t, s, p.Doc)
		}
	}
	says(t, s.Resize(60, 16).Press("end"), "› ") // what is picked is seen where there is room for few
}

func TestTheHeadIsSaidToTrainNothing(t *testing.T) {
	s := stage(t, ui.Options{Cluster: "charlm"}, nil)
	nodes := []cloud.Node{{Name: "node0", Addr: "203.0.113.7", User: "ubuntu", Head: true, Instance: "m5.xlarge"},
		{Index: 1, Name: "node1", Addr: "203.0.113.8", User: "ubuntu", Instance: "g5.12xlarge"}}
	s.Play(event.Event{Cluster: "charlm", Body: event.ClusterUp{Nodes: nodes, Instance: "g5.12xlarge", Spot: true, PricePerHour: 5.86}}).Press("n")
	for _, w := range []int{80, 120} {
		says(t, s.Resize(w, 30), "head, m5.xlarge: no rank trains there")
	}
}

func TestThePaletteSaysWholeWhatIsPicked(t *testing.T) {
	s := running(t, ui.Options{}).Resize(80, 24).Press(":").Type("own metric")
	var box string // what stands between its edges
	for row := range strings.Lines(s.Screen()) {
		if first, last := strings.Index(row, "│"), strings.LastIndex(row, "│"); first < last {
			box += row[first+len("│"):last] + " "
		}
	}
	if want := "your own regular expression, tried on the last lines, then on the whole log"; !strings.Contains(words(box), want) {
		t.Fatalf("the palette does not say %q in full:\n%s", want, s.Screen())
	}
}

func TestTheHelpIsNamedForWhereOneCameFrom(t *testing.T) {
	s := scene(t, "compare", 80, 40).Press("?")
	says(t, s, "Keys on the compare screen")
	hides(t, s, "past run")
	saysWhole(t, s, "zoom in, around the cursor or at the newest; so does the wheel")
}

func TestNumbersAndSignsAreWholeOrNotThere(t *testing.T) {
	hides(t, scene(t, "chart-full", 80, 24), "…")
	s := scene(t, "heat-simulated", 80, 24)
	for range 4 {
		says(t, s, "not known")
		s.Press("c")
	}
}
