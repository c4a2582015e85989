package scenes

import (
	"math"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/event"
)

// Scenes of charts and of the heatmap.

// curves is a run of a day that prints a dozen metrics.
func curves() *Story {
	t := NewStory(4, 8)
	t.Cluster, t.Provider, t.Run, t.Price = "vision", "ec2", "vision-0314-0926", 37.28
	t.Up().Launch()
	const steps = 4000
	start := t.At()
	for s := int64(0); s < steps; s += 5 {
		x := float64(s) / steps
		t.at = start.Add(time.Duration(x * 5 * float64(time.Hour)))
		e := x * 40
		at := func(name string, v float64) { t.placed(name, s, e, v) }
		at("train/loss", 0.62+5.3*math.Exp(-6*x)+(0.12+0.5*math.Exp(-5*x))*wobble(s, 1))
		at("grad_norm", grad(s, x))
		if s%20 == 0 {
			at("train/acc", 88-80*math.Exp(-5*x)+1.8*wobble(s, 4))
			at("lr", 0.1*math.Min(x/0.05, 1)*0.5*(1+math.Cos(math.Pi*x)))
			at("images/s", 11240+160*wobble(s, 3)-float64(s/1000%2)*900)
		}
		if s%100 == 95 {
			late := math.Max(x-0.62, 0)
			at("val/loss", 0.81+4.9*math.Exp(-6.4*x)+1.3*late*late+0.02*wobble(s, 6))
			at("val/acc", 84.1-77*math.Exp(-5.2*x)-9*late*late+0.3*wobble(s, 7))
			at("val/top5", 96.4-60*math.Exp(-6*x)+0.2*wobble(s, 8))
			at("val/ece", 0.04+0.03*x+0.004*wobble(s, 9))
		}
	}
	t.Tell(event.ProgressChanged{Progress: metrics.Progress{Epoch: 40, Epochs: 90, Step: steps, Steps: 9000}, ETA: 22500})
	for i := range int64(120) {
		t.Wait(time.Second).Samples(i)
	}
	return t
}

// grad is the norm of a gradient that was not finite for a while, as it is
// where a loss scale was too large.
func grad(s int64, x float64) float64 {
	switch {
	case s >= 1180 && s < 1260:
		return math.NaN()
	case s == 2740:
		return math.Inf(1)
	}
	return 0.4 + 9*math.Exp(-8*x)*(1.2+wobble(s, 2)) + 0.2*math.Abs(wobble(s, 5))
}

// placed tells a point with a step and an epoch.
func (t *Story) placed(name string, step int64, epoch, v float64) {
	n := t.points[name]
	t.points[name] = n + 1
	t.Tell(event.PointsAdded{Points: []metrics.Point{{Name: name, Step: &step, Epoch: &epoch, Ordinal: n, Value: v, Time: t.at}}})
}

func chartsGrid(w, h int, theme string) *Stage {
	return open(w, h, theme, curves(), Output(0.5)).Press("v")
}

// chartsRead is the grid smoothed, zoomed in and read.
func chartsRead(w, h int, theme string) *Stage {
	s := chartsGrid(w, h, theme).Press("]", "]", "]", "]", "a", "a", "a", "+", "+", "+", "+")
	for range 30 {
		s.Press("left")
	}
	return s
}

func chartFull(w, h int, theme string) *Stage {
	s := chartsGrid(w, h, theme).Press("]", "]", "]", "enter")
	for range 40 {
		s.Press("left")
	}
	return s
}

func chartsFilter(w, h int, theme string) *Stage {
	return chartsGrid(w, h, theme).Press("/").Type("val").Press("enter", "o")
}

// trying is the form for a metric of one's own, filled in.
func trying(name, regex string) func(int, int, string) *Stage {
	return func(w, h int, theme string) *Stage {
		return train(w, h, theme).Press("l", "r").Type(name).Press("tab").Type(regex)
	}
}

// crowd is a story of nodes that do not all do well.
func crowd(nodes int, seconds int64) *Story {
	t := NewStory(nodes, 8)
	t.Cluster, t.Provider, t.Run, t.Price = "pretrain", "ec2", "pretrain-0314-0926", 32.77*float64(nodes)
	t.Up().Launch()
	for i := int64(0); i < seconds; i += 2 {
		t.Wait(2 * time.Second)
		for n := range nodes {
			t.member(n, i, seconds)
		}
	}
	return t
}

// member tells a sample of one node of a crowd.
func (t *Story) member(n int, i, seconds int64) {
	s := t.sample(n, i)
	f := func(v float64) *float64 { return &v }
	for g := range s.GPUs {
		u := 96 + 4*wobble(i+int64(n*8+g)*17, 2)
		if i/2%24 < 3 { // all wait for each other at a checkpoint
			u = 12 + 10*math.Abs(wobble(i+int64(g), 3))
		}
		s.GPUs[g].Util = f(math.Min(u, 100))
	}
	switch n % 32 {
	case 5: // one GPU has nothing to do
		s.GPUs[3].Util, s.GPUs[3].Power, s.GPUs[3].Temp = f(1), f(71), f(34)
	case 11: // nvidia-smi has no answer for one
		s.GPUs[6].Util, s.GPUs[6].Power = nil, nil
	case 18: // out of reach for the last third
		if i > seconds*2/3 {
			return
		}
	case 22:
		s.GPUs, s.GPUError = nil, "no GPU"
	case 27: // throttled
		for g := range s.GPUs {
			s.GPUs[g].Util, s.GPUs[g].Temp = f(55+20*wobble(i+int64(g), 4)), f(88)
		}
	}
	t.Tell(event.Sampled{Node: n, Sample: s})
}

func heat(w, h int, theme string) *Stage {
	t := crowd(64, 240)
	for _, n := range []int{18, 50} {
		t.Tell(event.NodeChanged{Node: n, State: cloud.Unknown, Why: "no answer for 80 s; dialing again"})
	}
	return open(w, h, theme, t, Output(0.5)).Press("h")
}

func heatFew(w, h int, theme string) *Stage {
	return open(w, h, theme, crowd(8, 240), Output(0.5)).Press("h", "c", "c")
}

func heatSimulated(w, h int, theme string) *Stage {
	t := NewStory(2, 4)
	t.Simulated = true
	return open(w, h, theme, t.Up().Launch().Train(0, 0.6), Output(0.6)).Press("h")
}
