package scenes

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// noisy is a run whose curves can't be read as they are: rewards that are a slab of
// noise, losses summed over a batch beside means, and names as event files have them.
func noisy() *Story {
	t := NewStory(1, 4)
	t.Cluster, t.Provider, t.Run, t.Price = "ppo", "ec2", "ppo-0314-0926", 5.67
	t.Up().Launch()
	const steps = 12000
	start := t.At()
	for s := int64(0); s < steps; s += 4 {
		x := float64(s) / steps
		t.at = start.Add(time.Duration(x * 2 * float64(time.Hour)))
		at := func(name string, v float64) { t.placed(name, s, x*30, v) }
		at("rollout/reward", 30*(1-math.Exp(-3*x))+22*(wobble(s, 1)+wobble(s, 7)))
		at("Loss/train", 0.31+1.4*math.Exp(-7*x)+0.02*wobble(s, 2))
		if s%400 == 396 {
			at("Loss/test", 8200+26_000*math.Exp(-5*x)+300*wobble(s, 3))
			at("Accuracy/test", 91-70*math.Exp(-4*x)+0.4*wobble(s, 4))
		}
		if s%40 == 0 {
			at("Accuracy/train", 94-72*math.Exp(-5*x)+0.9*wobble(s, 5))
			at("grad/l2", 0.4+4*math.Exp(-6*x)+0.2*math.Abs(wobble(s, 6)))
		}
	}
	t.Tell(event.ProgressChanged{Progress: metrics.Progress{Epoch: 30, Epochs: 80, Step: steps, Steps: 32000}, ETA: 12000})
	for i := range int64(120) {
		t.Wait(time.Second).Samples(i)
	}
	return t
}

func chartsNoisy(w, h int, theme string) *Stage {
	return open(w, h, theme, noisy(), Output(0.5)).Press("v")
}

// trainCheckpoint is a run of which a checkpoint is at home.
func trainCheckpoint(w, h int, theme string) *Stage {
	t := NewStory(2, 4)
	t.Cluster, t.Provider, t.Run, t.Price = "vision", "ec2", "vision-0314-0926", 9.32
	t.Up().Launch().Train(0, 0.5)
	t.Tell(event.CheckpointSaved{Name: "checkpoint-300/model-00001-of-00002.safetensors", Written: t.At()})
	return open(w, h, theme, t.Train(0.5, 0.66), Output(0.66))
}

// apart is a run whose ranks print what each has, and one of them goes astray.
func apart(w, h int, theme string) *Stage {
	t := NewStory(1, 4)
	t.Cluster, t.Provider, t.Run, t.Price = "vision", "ec2", "vision-0314-0926", 5.67
	t.Up().Launch()
	logs := make([]strings.Builder, 4)
	for s := int64(0); s < 3000; s += 10 {
		x := float64(s) / 3000
		t.Wait(200 * time.Millisecond)
		for r := range logs {
			v := 0.4 + 2.1*math.Exp(-5*x) + 0.05*wobble(s, float64(r+1))
			if r == 2 {
				v += 1.1 * math.Max(0, x-0.45)
			}
			fmt.Fprintf(&logs[r], "step %d: loss %.4f lr %.6f knob=0.5\n", s, v, 1e-3*(1-x))
			if r == 0 {
				t.point("loss", s, v)
				t.point("lr", s, 1e-3*(1-x))
			}
		}
	}
	t.Tell(event.ProgressChanged{Progress: metrics.Progress{Step: 3000, Steps: 9000}, ETA: 120}).Samples(1)
	s := NewStage(w, h, ui.Options{Cluster: t.Cluster, Theme: theme}, func(s *Stage) {
		for r := range logs {
			s.Logs[r] = logs[r].String()
		}
		s.HomeIs = event.Home{Clusters: []event.ClusterInfo{{Name: t.Cluster, Phase: event.PhaseRunning}}}
	})
	for r := range logs {
		t.Log(r, logs[r].String())
	}
	s.catchUp(t)
	return s
}
