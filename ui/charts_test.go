package ui_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// cellOf is where a text begins on the screen.
func cellOf(t *testing.T, s *scenes.Stage, text string) (x, y int) {
	t.Helper()
	for y, row := range strings.Split(s.Screen(), "\n") {
		if before, _, ok := strings.Cut(row, text); ok {
			return len([]rune(before)), y
		}
	}
	t.Fatalf("the screen does not say %q:\n%s", text, s.Screen())
	return 0, 0
}

func TestChartsAreReadAtTheSameStep(t *testing.T) {
	s := running(t, ui.Options{}).Press("v")
	says(t, s, "› charts", "3 charts", "1 loss", "2 val/loss", "◆ min 2.228")
	s.Press("left", "left")
	says(t, s, "at step 29")
	if n := strings.Count(s.Screen(), "at step 29"); n != 3 {
		t.Fatalf("%d of 3 charts are read:\n%s", n, s.Screen())
	}
	s.Press("esc")
	hides(t, s, "at step")
	says(t, s, "› charts")
}

func TestZoomFollowsTheNewestUntilItIsMovedAway(t *testing.T) {
	s := running(t, ui.Options{}).Press("v", "+", "+", "+")
	says(t, s, "–299 ▼ live")
	more := scenes.NewStory(2, 0)
	step := int64(400)
	more.Tell(event.PointsAdded{Points: []metrics.Point{{Name: "loss", Step: &step, Ordinal: 150, Value: 2}}})
	says(t, s.Play(more.Events()...), "–400 ▼ live")
	says(t, s.Press(","), "held")
	says(t, s.Press("end"), "–400 ▼ live")
	says(t, s.Press(",", "."), "–400 ▼ live")
	hides(t, s.Press("0"), "live", "held")
	hides(t, s.Press("+", "home"), "live", "held")
	hides(t, s.Press("+", "-", "-"), "live", "held")
}

func TestXAxisIsSwitchedToWhatThereIs(t *testing.T) {
	s := running(t, ui.Options{}).Press("v")
	says(t, s.Press("a"), "by step")
	says(t, s.Press("a"), "by time", "20s") // no line of the example names an epoch as a value
	hides(t, s.Press("a"), "by ")
}

func TestSmoothingSaysItsFactorAndKeepsTheValue(t *testing.T) {
	s := running(t, ui.Options{}).Press("v", "]", "]")
	says(t, s, "smoothed 0.6", "~")
	hides(t, s.Press("[", "["), "smoothed", "~")
}

func TestChartsAreFilteredAndOneFillsTheScreen(t *testing.T) {
	s := running(t, ui.Options{}).Press("v", "/").Type("tok").Press("enter")
	says(t, s, "1 of 3 charts", "/tok", "tokens/s")
	hides(t, s, "val/loss")
	says(t, s.Press("enter"), "newest", "highest", "values")
	hides(t, s.Press("esc"), "newest")
	says(t, s.Press("esc"), "3 charts", "val/loss")
	says(t, s.Press("/").Type("nothing").Press("enter"), "No chart matches nothing", "shows all of them again")
	says(t, s.Press("esc"), "val/loss")
	says(t, s.Press("esc"), "› train")
}

func TestMouseReadsZoomsMovesAndPicksCharts(t *testing.T) {
	for _, on := range []string{"train", "charts"} {
		s := running(t, ui.Options{})
		if on == "charts" {
			s.Press("v")
		}
		x, y := cellOf(t, s, "1 loss")
		x, y = x+30, y+2
		s.Send(tea.MouseMotionMsg{X: x, Y: y})
		says(t, s, "at step ")
		s.Send(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelUp})
		s.Send(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelUp})
		says(t, s, "held", "at step ")
		before := s.Screen()
		s.Send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
		s.Send(tea.MouseMotionMsg{X: x + 8, Y: y, Button: tea.MouseLeft})
		s.Send(tea.MouseReleaseMsg{X: x + 8, Y: y, Button: tea.MouseLeft})
		if s.Screen() == before {
			t.Errorf("on %s a drag moves nothing", on)
		}
		for range 4 {
			s.Send(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelDown})
		}
		hides(t, s, "held")
		s.Send(tea.MouseMotionMsg{X: 0, Y: 0})
		hides(t, s, "at step ")
	}
}

func TestClickPicksAChartAndOneMoreFillsTheScreen(t *testing.T) {
	s := running(t, ui.Options{}).Press("v")
	x, y := cellOf(t, s, "━ tokens/s")
	click := func() {
		s.Send(tea.MouseClickMsg{X: x + 20, Y: y + 2, Button: tea.MouseLeft})
		s.Send(tea.MouseReleaseMsg{X: x + 20, Y: y + 2, Button: tea.MouseLeft})
	}
	click()
	says(t, s, "› ━ tokens/s")
	click()
	says(t, s, "newest", "tab shows the next")
	says(t, s.Press("tab"), "lr")
}

func TestWheelBesideTheChartsScrollsTheLog(t *testing.T) {
	s := running(t, ui.Options{})
	_, y := cellOf(t, s, "rank 0")
	s.Send(tea.MouseWheelMsg{X: 5, Y: y + 2, Button: tea.MouseWheelUp})
	says(t, s, "held; end follows")
}

func TestValuesThatAreNotFiniteAreCountedAndCrossed(t *testing.T) {
	s := scenes.All()
	for _, sc := range s {
		if sc.Name == "charts" {
			st := sc.Build(120, 36, "dark")
			defer st.Close()
			says(t, st, "× 17 NaN or inf", "××")
		}
	}
}

func TestHeatmapTellsIdleUnknownGoneAndNoGPUApart(t *testing.T) {
	for _, sc := range scenes.All() {
		if sc.Name != "heat" {
			continue
		}
		for _, size := range scenes.Sizes {
			s := sc.Build(size[0], size[1], "dark")
			says(t, s, "node63", "no GPU", "?", "····", "utilisation")
			says(t, s.Press("c"), "memory")
			says(t, s.Press("c"), "temperature")
			says(t, s.Press("enter"), "more row")
			s.Close()
		}
		// Without colour a cell is drawn as dense as it is full.
		s := sc.Build(200, 60, "dark")
		s.Send(tea.ColorProfileMsg{Profile: 2}) // what NO_COLOR makes it: ASCII
		hides(t, s, "▀")
		says(t, s, "████", "░")
		s.Close()
	}
	s := running(t, ui.Options{})
	says(t, s.Press("h"), "› GPUs", "no GPU")
}

func TestOwnMetricIsTriedWhileItIsTyped(t *testing.T) {
	s := running(t, ui.Options{}).Press("r")
	says(t, s, "A metric of your own", "type an expression")
	s.Type("speed").Press("tab").Type(`(\d+`)
	says(t, s, "✗ missing closing )")
	s.Press("backspace", "backspace", "backspace", "backspace").Type("tokens")
	says(t, s, "it has no group")
	s.Press("ctrl+u").Type(`(step) +(\d+)`)
	says(t, s, "it has 2 groups")
	s.Press("ctrl+u").Type(`nowhere (\d+)`)
	says(t, s, "it catches nothing in the last")
	s.Press("ctrl+u").Type(`(\d+) tokens/s`)
	says(t, s, "✓ 30 values", "newest 2", "step 290/600")
	s.Logs[0] += "step 301  21000 tokens/s\n"
	story := scenes.NewStory(2, 0)
	s.Play(story.Log(0, s.Logs[0]).Events()...)
	says(t, s, "✓ 31 values", "newest 21 000")
	asked(t, s, "attach charlm")
	s.Press("enter")
	asked(t, s, "attach charlm", `add metric speed: (\d+) tokens/s`)
	says(t, s, "speed is in this run from now on", `'speed': '(\d+) tokens/s'`)
	s.Advance(time.Second).Press("tab", "enter")
	if s.Copied != `  'speed': '(\d+) tokens/s'` {
		t.Fatalf("copied %q", s.Copied)
	}
}

func TestOwnMetricIsRefusedWithAReason(t *testing.T) {
	s := running(t, ui.Options{}).Press("r").Type("loss").Press("tab").Send(tea.PasteMsg{Content: `loss (\d\.\d+)`}).Press("enter")
	says(t, s, "there is a series called loss already")
	s.Press("ctrl+u").Type("other").Press("enter")
	hides(t, s, "A metric of your own")
	s = running(t, ui.Options{ReadOnly: true}).Press("r").Type("a").Press("tab").Type(`(\d)`).Press("enter")
	says(t, s, "--read-only")
	asked(t, s, "attach charlm")
	s = running(t, ui.Options{})
	s.Refuse = errors.New("the disk is full")
	says(t, s.Press("r").Type("a").Press("tab").Type(`(\d)`).Press("enter"), "the disk is full")
	hides(t, s.Advance(time.Second).Press("esc"), "from now on")
}

func TestOwnMetricOfAPastRunIsThereAtOnce(t *testing.T) {
	for _, sc := range scenes.All() {
		if sc.Name != "past" {
			continue
		}
		s := sc.Build(120, 36, "dark")
		defer s.Close()
		n := strings.Count(s.Screen(), "loss")
		step := int64(5)
		more := s.Past[len(s.Past)-1]
		for _, e := range s.Past {
			if _, ok := e.Body.(event.PointsAdded); ok {
				more = e
			}
		}
		more.Body = event.PointsAdded{Points: []metrics.Point{{Name: "a", Step: &step, Value: 1}, {Name: "a", Step: &step, Ordinal: 1, Value: 2}}}
		s.Past = append(s.Past, more)
		s.Press("r").Type("a").Press("tab").Type(`(\d)`).Press("enter").Advance(time.Second).Press("esc")
		says(t, s.Press("v"), "4 charts")
		if strings.Count(s.Press("t").Screen(), "loss") < n {
			t.Error("the other curves are gone")
		}
	}
}
