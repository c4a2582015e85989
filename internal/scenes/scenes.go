package scenes

import (
	"errors"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Scene is one situation.
type Scene struct {
	Name  string // of its golden files and pictures
	Story string // a sentence for the caption
	Build func(w, h int, theme string) *Stage
}

// Sizes are those at which every scene is looked at.
var Sizes = [][2]int{{80, 24}, {120, 36}, {200, 60}}

// All lists every scene.
func All() []Scene {
	return append([]Scene{
		{"home", "What exists, running first", home},
		{"home-empty", "A first start", homeEmpty},
		{"plan", "A plan: nothing is done yet", plan},
		{"plan-broken", "A profile with errors", planBroken},
		{"steps", "A cluster comes up", steps},
		{"steps-failed", "A requirement that does not exist", stepsFailed},
		{"train", "Two nodes train", train},
		{"train-simulated", "Simulated GPUs say so", trainSimulated},
		{"train-4x8", "Four nodes with eight GPUs each", train4x8},
		{"train-16x8", "Sixteen nodes with eight GPUs each", train16x8},
		{"train-stale", "A node that does not answer", trainStale},
		{"train-failed", "A rank exits with 3", trainFailed},
		{"train-done", "A run that ended well", trainDone},
		{"past", "A past run, looked at again", past},
	}, more()...)
}

func more() []Scene {
	return []Scene{
		{"plan-untrusted", "A profile from somebody else is read, and nothing else", planUntrusted},
		{"trust", "What a profile would do, before it may", askTrust},
		{"plan-ec2", "What machines cost, and at most can cost", planEC2},
		{"train-ec2", "Paid machines, and when they end by themselves", trainEC2},
		{"spot-notice", "A machine is about to be taken away", spotNotice},
		{"stopped", "Stopped machines, whose disks still cost", stopped},
		{"extend", "What another hour costs", asking(trainEC2, "E")},
		{"receipt-ec2", "Each resource with what it lived and cost", receiptEC2(true)},
		{"unresolved-ec2", "What is not proven gone, with how to do it by hand", receiptEC2(false)},
		{"unresolved-home", "What nobody knows stands above every screen", unresolvedHome},
		{"wizard-region", "A new experiment: where", wizardRegion},
		{"wizard-machine", "A new experiment: which machine", wizardMachine},
		{"wizard-compare", "Machines side by side", wizardCompare},
		{"wizard-facts", "What is known without an answer from the provider", wizardFacts},
		{"wizard-nodes", "A new experiment: how many", wizardNodes},
		{"wizard-faults", "A review with errors", wizardFaults},
		{"wizard-review", "What a new experiment comes to", wizardReview},
		{"charts", "Every chart: train and validation together, the best value marked", chartsGrid},
		{"charts-read", "Smoothed, zoomed in, and read at one moment in all charts", chartsRead},
		{"charts-filter", "The charts with a word in their names, logarithmic", chartsFilter},
		{"charts-noisy", "Noise smoothed, with the values behind it, and two axes where scales are far apart", chartsNoisy},
		{"ranks", "Ranks that differ: their middle, a band, and which is farthest", apart},
		{"ranks-singly", "The ranks that differ, each by itself", pressed(apart, "v", "i", "enter")},
		{"charts-doubt", "Names of which it is not known whether they are metrics, and why", pressed(apart, "v", "d")},
		{"train-checkpoint", "How old the newest checkpoint at home is", trainCheckpoint},
		{"chart-full", "One chart, with all that is known of its curves", chartFull},
		{"metric", "A metric of one's own, tried on the last lines before it is added", trying("tok", `(\d+) tokens/s`)},
		{"metric-wrong", "An expression that can't be used says why", trying("tok", `(step) +(\d+`)},
		{"metric-added", "What goes into the profile", pressed(trying("speed", `(\d+) tokens/s`), "enter")},
		{"runs", "All runs: sorted, with stars, notes and marks", runsSorted},
		{"runs-filter", "The runs for which conditions hold, with the series that they name", runsFilter},
		{"runs-wrong", "Conditions that can't be read say why", runsWrong},
		{"runs-none", "No run yet", runsNone},
		{"compare", "Three runs over each other, and what differs between them", compareRuns},
		{"compare-read", "Compared by time, smoothed, and read at one moment", compareRead},
		{"compare-full", "One chart of all runs on the whole screen", pressed(compareRuns, "enter")},
		{"compare-facts", "All that differs between eight runs", compareFacts},
		{"heat", "512 GPUs over time", heat},
		{"heat-temperature", "Another quantity: the temperature of 64 GPUs", heatFew},
		{"heat-simulated", "Simulated GPUs say so", heatSimulated},
		{"logs", "The whole output, with a search", logs},
		{"nodes", "Every node in full", nodes},
		{"forwards", "Open tunnels", forwards},
		{"forwards-none", "No tunnel yet", pressed(train, "f")},
		{"help", "The keys of where one is", pressed(train, "?")},
		{"palette", "Everything that can be done", pressed(train, ":")},
		{"quit", "Leaving does not end a cluster", pressed(train, "ctrl+c")},
		{"teardown", "What goes, what is not saved, what it costs to keep", teardown},
		{"fault", "A wish that failed", fault},
		{"receipt", "Each resource with its proof", receipt(true)},
		{"sweep", "The trials of a sweep, the best first", sweeping},
		{"unresolved", "Not everything is proven gone", receipt(false)},
	}
}

// open builds a stage on which a cluster is looked at.
func open(w, h int, theme string, t *Story, output string) *Stage {
	s := NewStage(w, h, ui.Options{Cluster: t.Cluster, Theme: theme}, func(s *Stage) {
		s.Logs[0], s.Logs[1] = output, "charlm: rank 1 of 2 is ready\n"
		s.HomeIs = event.Home{Clusters: []event.ClusterInfo{{Name: t.Cluster, Phase: event.PhaseRunning}}}
	})
	if output != "" {
		t.Log(0, output)
		t.Log(1, s.Logs[1])
	}
	s.catchUp(t)
	return s
}

// catchUp sets the clock to the story's moment and plays it.
func (s *Stage) catchUp(t *Story) {
	s.mu.Lock()
	s.at = t.At()
	s.mu.Unlock()
	s.Play(t.Events()...)
	s.Advance(time.Second)
}

func home(w, h int, theme string) *Stage {
	return NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) { s.HomeIs = HomeFull() })
}

// HomeFull is a bench that was used for a while.
func HomeFull() event.Home {
	f := func(v float64) *float64 { return &v }
	n := func(v int) *int { return &v }
	ended := func(d time.Duration) *time.Time { t := Epoch.Add(-d); return &t }
	return event.Home{
		Clusters: []event.ClusterInfo{
			{Name: "charlm", Provider: "local", Phase: event.PhaseRunning, Profile: "charlm", ProfilePath: "~/lm/dlwb.yaml",
				Nodes: make([]cloud.Node, 2), Run: "charlm-0314-0926", CreatedAt: Epoch.Add(-3 * time.Minute)},
			{Name: "imagenet-r50", Provider: "ec2", Phase: event.PhaseRunning, Profile: "imagenet-r50",
				Nodes: make([]cloud.Node, 4), Run: "imagenet-r50-0313-2210", CreatedAt: Epoch.Add(-11 * time.Hour), PricePerHour: 16.29, Spent: 182.45, Owner: 41877,
				Region: "us-east-1", Instance: "g5.12xlarge", Spot: true, Ends: Epoch.Add(13 * time.Hour), Next: &event.Bound{At: Epoch.Add(13 * time.Hour), Why: "lifetime", Node: -1}},
			{Name: "sweep", Provider: "ec2", Phase: event.PhaseUnresolved, Nodes: make([]cloud.Node, 1),
				CreatedAt: Epoch.Add(-26 * time.Hour), PricePerHour: 1.01, Spent: 26.15,
				Region: "eu-west-1", Instance: "g5.xlarge", Ends: Epoch.Add(4*time.Minute + 9*time.Second), Next: &event.Bound{At: Epoch.Add(4*time.Minute + 9*time.Second), Why: "lifetime", Node: -1}},
		},
		Profiles: []event.ProfileInfo{
			{Name: "charlm", Path: "~/lm/dlwb.yaml", Provider: "local", UsedAt: Epoch.Add(-3 * time.Minute)},
			{Name: "imagenet-r50", Path: "~/vision/r50.yaml", Provider: "ec2", UsedAt: Epoch.Add(-11 * time.Hour)},
			{Name: "asr", Path: "~/asr/dlwb.yaml", Provider: "ec2", Fault: "7:3: unknown key \"machine\"; did you mean \"machines\"?"},
		},
		Runs: []event.RunInfo{
			{ID: "charlm-0314-0926", Profile: "charlm", StartedAt: Epoch.Add(-2 * time.Minute), LastLoss: f(2.214)},
			{ID: "imagenet-r50-0313-2210", Profile: "imagenet-r50", StartedAt: Epoch.Add(-11 * time.Hour), LastLoss: f(1.873)},
			{ID: "charlm-0314-0851", Profile: "charlm", StartedAt: Epoch.Add(-36 * time.Minute), EndedAt: ended(35 * time.Minute), Verdict: event.Succeeded, ExitCode: n(0), LastLoss: f(1.912)},
			{ID: "charlm-0313-1740", Profile: "charlm", StartedAt: Epoch.Add(-16 * time.Hour), EndedAt: ended(16*time.Hour - 41*time.Second), Verdict: event.ExitedBad, ExitCode: n(3), LastLoss: f(3.107)},
			{ID: "asr-0312-0915", Profile: "asr", StartedAt: Epoch.Add(-49 * time.Hour), EndedAt: ended(44 * time.Hour), Verdict: event.Killed, ExitCode: n(137), LastLoss: f(0.4218)},
			{ID: "sweep-0312-0702", Profile: "sweep", StartedAt: Epoch.Add(-51 * time.Hour), EndedAt: ended(50 * time.Hour), Verdict: event.Stopped, ExitCode: n(130)},
		},
	}
}

func homeEmpty(w, h int, theme string) *Stage {
	return NewStage(w, h, ui.Options{Theme: theme}, nil)
}

func plan(w, h int, theme string) *Stage {
	s := NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		s.HomeIs = event.Home{Profiles: HomeFull().Profiles[:1]}
		s.PlanIs = &ui.PlanView{Name: "charlm", Path: "~/lm/dlwb.yaml", Provider: "local", Nodes: 2, Engine: "torchrun", WorldSize: 2,
			EngineWhy: "PyTorch is there and the command is a Python script", Environment: "venv from requirements.txt, optional",
			Code:   ui.CodePlan{Dir: "~/lm", Files: 12, Bytes: 48 << 10},
			Limits: []string{"stall 5 m"}, Results: []string{"checkpoints/"},
			Findings: []cloud.Finding{
				{OK: true, What: "this machine", Text: "2 cores, 5.9 GB of memory are free"},
				{OK: true, What: "disk", Text: "31 GB are free in ~/.local/share/dlwb"},
				cloud.Warning("GPU", "no GPU: there is no nvidia-smi on this machine; training uses the CPU", "")},
			Launches: []planning.Launch{{Engine: "torchrun", WorldSize: 2, Commands: []event.RankInfo{
				{Rank: 0, Node: 0, Command: "/usr/bin/python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=1 --node-rank=0 --master-addr=127.0.0.1 --master-port=29400 --no-python sh ~/.dlwb/bin/rank RUN /usr/bin/python3 " + Command},
				{Rank: 1, Node: 1, Command: "/usr/bin/python3 -m torch.distributed.run --nnodes=2 --nproc-per-node=1 --node-rank=1 --master-addr=127.0.0.1 --master-port=29400 --no-python sh ~/.dlwb/bin/rank RUN /usr/bin/python3 " + Command}}}},
			Open: []planning.Placeholder{{Name: "RUN", Is: "the id of the run"}},
		}
	})
	return s.Press("enter")
}

func planBroken(w, h int, theme string) *Stage {
	s := NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		s.HomeIs = event.Home{Profiles: HomeFull().Profiles[:1]}
		s.PlanErr = errors.New("dlwb.yaml:2:11: provider: \"locl\" is not known; did you mean \"local\"?\n" +
			"dlwb.yaml:5:10: machines.count: must be a whole number of at least 1, is \"two\"\n" +
			"dlwb.yaml:9:3: run: unknown key \"comand\"; did you mean \"command\"?")
	})
	return s.Press("enter")
}

func steps(w, h int, theme string) *Stage {
	t := NewStory(2, 0)
	t.Plan()
	t.Tell(event.StepStarted{Step: event.StepCluster, Text: "starting 2 nodes"}).Wait(410 * time.Millisecond)
	t.Tell(event.ClusterUp{Provider: "local", Nodes: t.nodes()},
		event.StepEnded{Step: event.StepCluster, OK: true, Duration: 0.41, Text: "2 nodes answer"},
		event.StepStarted{Step: event.StepEnvironment, Text: "making a venv from requirements.txt"})
	t.Wait(6 * time.Second)
	t.Tell(event.StepProgress{Step: event.StepEnvironment, Node: 0, Text: "pip install: Downloading numpy-1.26.4 (18.2 MB)"},
		event.StepProgress{Step: event.StepEnvironment, Node: 1, Text: "python 3.11.2 at /usr/bin/python3, torch 1.13.1"})
	return open(w, h, theme, t, "")
}

func stepsFailed(w, h int, theme string) *Stage {
	t := NewStory(2, 0)
	t.Plan()
	t.Step(event.StepCluster, "2 nodes answer", 410*time.Millisecond)
	t.Tell(event.ClusterUp{Provider: "local", Nodes: t.nodes()})
	t.Tell(event.StepStarted{Step: event.StepEnvironment}).Wait(4200 * time.Millisecond)
	t.Tell(event.StepEnded{Step: event.StepEnvironment, Duration: 4.2, Text: "pip install ended with 1 on node1", Failure: &event.Fault{
		What: "install requirements.txt", Node: 1, Why: "pip install ended with exit code 1",
		Next: "correct the version in requirements.txt, then try again", Command: "~/dlwb/charlm/venv/bin/pip install -r requirements.txt",
		LastLines: []string{"Collecting torchvison==0.14", "ERROR: Could not find a version that satisfies the requirement torchvison==0.14 (from versions: none)",
			"ERROR: No matching distribution found for torchvison==0.14"}}})
	s := NewStage(w, h, ui.Options{StartPath: "~/lm/dlwb.yaml", Theme: theme}, nil)
	s.catchUp(t)
	return s
}

func train(w, h int, theme string) *Stage {
	t := NewStory(2, 0).Up().Launch().Train(0, 0.62)
	return open(w, h, theme, t, Output(0.62))
}

func trainSimulated(w, h int, theme string) *Stage {
	t := NewStory(2, 2)
	t.Simulated = true
	return open(w, h, theme, t.Up().Launch().Train(0, 0.4), Output(0.4))
}

func big(nodes int) *Story {
	t := NewStory(nodes, 8)
	t.Provider, t.Price = "ec2", 32.77*float64(nodes)
	return t.Up().Launch().Train(0, 0.71)
}

func train4x8(w, h int, theme string) *Stage  { return open(w, h, theme, big(4), Output(0.71)) }
func train16x8(w, h int, theme string) *Stage { return open(w, h, theme, big(16), Output(0.71)) }

func trainStale(w, h int, theme string) *Stage {
	t := NewStory(2, 1)
	t.Provider, t.Price = "ec2", 2.42
	t.Up().Launch().Train(0, 0.5)
	t.Tell(event.NodeChanged{Node: 1, State: cloud.Unknown, Why: "no answer on 10.0.4.12:22 for 15 s; dialing again"}).Wait(20 * time.Second)
	for i := range int64(4) {
		t.Wait(time.Second).Tell(event.Sampled{Node: 0, Sample: t.sample(0, 900+i)})
	}
	return open(w, h, theme, t, Output(0.5))
}

func trainFailed(w, h int, theme string) *Stage {
	t := NewStory(2, 0).Up().Launch().Train(0, 0.31)
	last := []string{"Traceback (most recent call last):", `  File "train.py", line 212, in <module>`, "    step(batch)",
		`  File "train.py", line 148, in step`, `    raise FloatingPointError("loss is nan at step 186")`, "FloatingPointError: loss is nan at step 186"}
	t.Tell(event.RankEnded{Rank: 1, Node: 1, ExitCode: 3, LastLines: last},
		event.RankEnded{Rank: 0, Node: 0, ExitCode: 143, Signal: "TERM", ByUs: true},
		event.StepEnded{Step: event.StepTrain, Duration: 18.4, Text: "rank 1 on node1 exited with code 3"},
		event.RunEnded{ExitCode: 3, Verdict: event.ExitedBad, Cause: "rank 1 on node1 exited with code 3", Rank: 1, Node: 1, Duration: 18.4, LastLines: last})
	s := NewStage(w, h, ui.Options{Cluster: t.Cluster, Theme: theme}, nil)
	s.Logs[0], s.Logs[1] = Output(0.31), "charlm: rank 1 of 2 is ready\n"+strings.Join(last, "\n")+"\n"
	t.Log(0, s.Logs[0]).Log(1, s.Logs[1])
	s.catchUp(t)
	return s
}

func trainDone(w, h int, theme string) *Stage {
	t := NewStory(2, 0).Up().Launch().Train(0, 1).End()
	return open(w, h, theme, t, Output(1)+"sample: def __init__(self, name, value=None):\n            self.name = name\n")
}

func past(w, h int, theme string) *Stage {
	t := NewStory(2, 0).Up().Launch().Train(0, 1)
	out := Output(1)
	t.Log(0, out).End().Down(true)
	s := NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		full := HomeFull()
		s.HomeIs, s.Past = event.Home{Runs: full.Runs[2:4]}, t.Events()
		s.Logs[0] = out
	})
	return s.Press("enter")
}

func logs(w, h int, theme string) *Stage {
	s := train(w, h, theme)
	return s.Press("l", "/").Type("val_loss").Press("enter")
}

func nodes(w, h int, theme string) *Stage { return trainStale(w, h, theme).Press("n") }

func forwards(w, h int, theme string) *Stage {
	s := train(w, h, theme)
	t := NewStory(2, 0)
	t.Wait(s.now().Sub(Epoch))
	const http, tcp, reverse = event.ForwardHTTP, event.ForwardTCP, event.ForwardReverse
	t.Tell(event.ForwardOpened{Kind: http, Name: "jupyter", LocalPort: 8888, RemotePort: 35119, URL: "http://jupyter-charlm-4c2fka77.localhost:8888/", Kept: true},
		event.ForwardOpened{Kind: http, Name: "tensorboard", LocalPort: 6006, RemotePort: 41013, URL: "http://tensorboard-charlm-q3betkc7.localhost:6006/", Kept: true},
		event.ForwardOpened{Kind: tcp, Name: "8265", LocalPort: 8265, RemotePort: 8265, URL: "http://127.0.0.1:8265/", Kept: true},
		event.ForwardOpened{Kind: reverse, Name: "reverse", LocalPort: 5000, RemotePort: 6007},
		event.ForwardChanged{Kind: tcp, Name: "8265", LocalPort: 8265, RemotePort: 8265, Connected: true, Why: "connect to 127.0.0.1:8265 on node0: ssh: rejected: connect failed (Connection refused)"},
		event.ForwardChanged{Kind: reverse, Name: "reverse", LocalPort: 5000, RemotePort: 6007, Why: "the connection was lost: no answer within 10s"})
	return s.Play(t.Events()...).Press("f")
}

func teardown(w, h int, theme string) *Stage {
	t := big(4)
	return open(w, h, theme, t, Output(0.71)).Press("X").Advance(time.Second)
}

func fault(w, h int, theme string) *Stage {
	s := train(w, h, theme)
	s.Refuse = &event.Fault{What: "start Jupyter", Node: 0, Why: "it is not installed there", Next: "on node0: /usr/bin/python3 -m pip install jupyterlab"}
	return s.Press("J").Advance(time.Second)
}

func receipt(proven bool) func(int, int, string) *Stage {
	return func(w, h int, theme string) *Stage {
		t := NewStory(2, 0)
		if !proven {
			t.Price = 2.42
		}
		t.Up().Launch().Train(0, 1).End().Down(proven)
		return open(w, h, theme, t, Output(1))
	}
}

// pressed is a scene with keys pressed in it.
// asking opens a question and waits until it takes keys.
func asking(build func(int, int, string) *Stage, keys ...string) func(int, int, string) *Stage {
	return func(w, h int, theme string) *Stage { return build(w, h, theme).Press(keys...).Advance(time.Second) }
}

func pressed(build func(int, int, string) *Stage, keys ...string) func(int, int, string) *Stage {
	return func(w, h int, theme string) *Stage { return build(w, h, theme).Press(keys...) }
}
