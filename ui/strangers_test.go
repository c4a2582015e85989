package ui_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// odd are series as strangers have them.
func odd() map[string][]float64 {
	nan, inf := math.NaN(), math.Inf(1)
	many := func(n int, f func(i int) float64) (out []float64) {
		for i := range n {
			out = append(out, f(i))
		}
		return out
	}
	return map[string][]float64{
		"one point/loss":                       {1},
		"constant":                             many(50, func(int) float64 { return 0.5 }),
		"zero":                                 many(50, func(int) float64 { return 0 }),
		"nothing finite":                       {nan, inf, -inf, nan},
		"gaps":                                 many(50, func(i int) float64 { return []float64{1, nan, 3, inf}[i%4] }),
		"negative":                             many(50, func(i int) float64 { return -float64(i * i) }),
		"huge":                                 many(50, func(i int) float64 { return math.Pow(10, float64(i*6)) }),
		"tiny/loss":                            many(50, func(i int) float64 { return math.Pow(10, -float64(i*6)) }),
		"far/loss/train":                       many(50, func(i int) float64 { return 1e-9 * float64(i) }),
		"far/loss/val":                         many(50, func(i int) float64 { return 1e9 * float64(i) }),
		"far/loss/test":                        many(50, func(i int) float64 { return float64(i) }),
		"largest":                              {math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64},
		"损失/训练":                                many(50, func(i int) float64 { return 5 / float64(i+1) }),
		"👩‍🔬/loss é\u0301":                     many(50, func(i int) float64 { return 5 / float64(i+1) }),
		strings.Repeat("a_very_long_name/", 9): many(50, func(i int) float64 { return float64(i % 7) }),
		"noise":                                many(4000, func(i int) float64 { return math.Sin(float64(i*i) * 1.3) }),
		"tokens/s":                             many(50, func(i int) float64 { return float64(i % 5 * 1000) }),
		"\u202eright to left":                  {1, 2, 3},
	}
}

// strange is a stage with odd series, on some nodes with GPUs.
func strange(t *testing.T, w, h, nodes, gpus, more int) *scenes.Stage {
	story := scenes.NewStory(nodes, gpus)
	story.Up().Launch()
	add := func(name string, values []float64) {
		for i, v := range values {
			step := int64(i)
			story.Tell(event.PointsAdded{Points: []metrics.Point{{Name: name, Step: &step, Ordinal: step, Value: v, Time: story.At()}}})
		}
	}
	for name, values := range odd() {
		add(name, values)
	}
	for i := range more {
		add(fmt.Sprintf("layer.%d/grad_norm", i), []float64{1, 2, float64(i)})
	}
	story.Samples(1).Wait(time.Second).Samples(2)
	s := scenes.NewStage(w, h, ui.Options{Cluster: story.Cluster, Theme: "dark"}, func(s *scenes.Stage) {
		s.HomeIs = event.Home{Clusters: []event.ClusterInfo{{Name: story.Cluster, Phase: event.PhaseRunning}}}
		for r := range 3 {
			var b strings.Builder
			for i := range 40 {
				fmt.Fprintf(&b, "step %d: constant %v loss %v 宽=%d\n", i, 0.5+float64(r), []string{"nan", "inf", "1"}[r], i)
			}
			s.Logs[r] = b.String()
		}
	})
	t.Cleanup(s.Close)
	for r := range 3 {
		story.Log(r, s.Logs[r])
	}
	s.Play(story.Events()...)
	return s.Advance(time.Second)
}

// A stranger has odd values, odd names and odd windows. Whatever is pressed, each frame
// has its size, and nothing that a terminal would take as a command.
func TestStrangersSeriesAreDrawnAtAnySize(t *testing.T) {
	s := strange(t, 120, 36, 2, 4, 12)
	sizes := [][2]int{{120, 36}, {80, 24}, {200, 60}, {60, 15}, {41, 12}, {30, 9}, {20, 5}, {7, 3}, {1, 1}, {500, 12}, {40, 120}}
	check := func(keys string) {
		for _, size := range sizes {
			s.Resize(size[0], size[1])
			checkFrame(t, s.Model.Frame(), size[0], size[1])
			if t.Failed() {
				t.Fatalf("after %s at %v:\n%s", keys, size, s.Screen())
			}
		}
		s.Resize(120, 36)
	}
	check("train")
	for _, keys := range []string{"c", "c", "o", "i", "v", "o", "d", "u", "]", "a", "a", "a", "left", "left", "+", "+", ",", "enter", "tab", "tab", "tab", "o", "i", "d", "u", "esc", "/"} {
		s.Press(keys)
		check(keys)
	}
	s.Type("loss").Press("enter")
	check("filter")
	for range 30 {
		s.Press("esc", "tab", "enter")
		check("each chart")
	}
}

func TestManyNodesAndSeriesAreDrawnAtAnySize(t *testing.T) {
	s := strange(t, 120, 36, 64, 8, 200)
	for _, place := range []string{"t", "n", "h", "v", "l", "s", "f", "?"} {
		s.Press("esc", place)
		for _, size := range [][2]int{{120, 36}, {80, 24}, {200, 60}, {44, 13}, {16, 4}} {
			s.Resize(size[0], size[1])
			checkFrame(t, s.Model.Frame(), size[0], size[1])
		}
	}
}
