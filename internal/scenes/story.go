package scenes

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/event"
)

// Story writes events: a run of the example on some nodes, at a pace that a
// person knows.
type Story struct {
	Cluster, Run string
	Provider     string
	Nodes, GPUs  int
	Simulated    bool
	Price        float64
	Steps        int64 // of training
	Epochs       int

	at     time.Time
	seq    int64
	events []event.Event
	points map[string]int64
}

// NewStory begins a story at Epoch.
func NewStory(nodes, gpus int) *Story {
	return &Story{Cluster: "charlm", Run: "charlm-0314-0926", Provider: "local", Nodes: nodes, GPUs: gpus,
		Steps: 600, Epochs: 6, at: Epoch, points: map[string]int64{}}
}

// Events is what was written so far.
func (t *Story) Events() []event.Event { return t.events }

// At is the moment the story has come to.
func (t *Story) At() time.Time { return t.at }

// Wait lets time pass.
func (t *Story) Wait(d time.Duration) *Story {
	t.at = t.at.Add(d)
	return t
}

// Tell adds events.
func (t *Story) Tell(bodies ...event.Body) *Story {
	for _, b := range bodies {
		t.seq++
		e := event.Event{Seq: t.seq, Time: t.at, Cluster: t.Cluster, Body: b}
		if ofRun(b) {
			e.Run = t.Run
		}
		t.events = append(t.events, e)
	}
	return t
}

// ofRun tells which events belong to a run.
func ofRun(b event.Body) bool {
	switch b.(type) {
	case event.RunStarted, event.LogGrew, event.PointsAdded, event.ProgressChanged,
		event.RankEnded, event.RunEnded, event.ResultsFetched:
		return true
	}
	return false
}

// Command is what the example is started with.
const Command = "train.py --epochs 6 --batch 64 --context 128"

// Plan tells the plan.
func (t *Story) Plan() *Story {
	return t.Tell(event.PlanMade{Profile: "charlm", Path: "examples/charlm/dlwb.yaml", Provider: t.Provider,
		Nodes: t.Nodes, Engine: "torchrun", Command: Command, PricePerHour: t.Price, Steps: event.Steps[:6]})
}

// Step tells a whole step.
func (t *Story) Step(name, text string, took time.Duration) *Story {
	t.Tell(event.StepStarted{Step: name, Text: text}).Wait(took)
	return t.Tell(event.StepEnded{Step: name, OK: true, Duration: took.Seconds(), Text: text})
}

// Up tells everything until the ranks run.
func (t *Story) Up() *Story {
	t.Plan()
	t.Tell(event.StepStarted{Step: event.StepCluster, Text: "starting nodes"}).Wait(410 * time.Millisecond)
	t.Tell(event.ClusterUp{Provider: t.Provider, Nodes: t.nodes(), PricePerHour: t.Price},
		event.StepEnded{Step: event.StepCluster, OK: true, Duration: 0.41, Text: fmt.Sprintf("%d nodes answer", t.Nodes)})
	t.Tell(event.StepStarted{Step: event.StepEnvironment}).Wait(120 * time.Millisecond)
	t.Tell(event.StepEnded{Step: event.StepEnvironment, OK: true, Skipped: true, Duration: 0.12,
		Text: "requirements did not change; /usr/bin/python3 3.11.2, torch 1.13.1"})
	t.Step(event.StepSync, fmt.Sprintf("12 files, 48 KB to %d nodes in 0.3 s", t.Nodes), 310*time.Millisecond)
	return t.Step(event.StepLaunch, fmt.Sprintf("torchrun, world size %d", t.world()), 640*time.Millisecond)
}

func (t *Story) world() int { return t.Nodes * max(t.GPUs, 1) }

func (t *Story) nodes() []cloud.Node {
	out := make([]cloud.Node, t.Nodes)
	for i := range out {
		out[i] = cloud.Node{Index: i, Name: fmt.Sprintf("node%d", i), Addr: fmt.Sprintf("127.0.0.1:%d", 41022+i), User: "dlwb"}
		if t.Provider != "local" {
			out[i].Addr, out[i].User = fmt.Sprintf("10.0.4.%d:22", 11+i), "ubuntu"
		}
		if t.Simulated {
			out[i].SimulatedGPUs = t.GPUs
		}
	}
	return out
}

// Launch tells that the ranks run.
func (t *Story) Launch() *Story {
	var ranks []event.RankInfo
	per := max(t.GPUs, 1)
	for r := range t.world() {
		ranks = append(ranks, event.RankInfo{Rank: r, LocalRank: r % per, Node: r / per, Command: "python3 " + Command})
	}
	return t.Tell(event.RunStarted{Engine: "torchrun", WorldSize: t.world(), Nodes: t.Nodes,
		Command: "python3 " + Command, Python: "/usr/bin/python3", Ranks: ranks},
		event.StepStarted{Step: event.StepTrain, Text: "training"})
}

// loss is the curve of the example: 4.6 at the start, towards 1.9.
func loss(x float64, i int64) float64 {
	return 1.84 + 2.78*math.Exp(-4.6*x) + 0.05*wobble(i, 1)*(1.3-x)
}

// wobble is noise between -1 and 1 that is the same every time.
func wobble(i int64, seed float64) float64 {
	return math.Sin(float64(i)*12.9898+seed*78.233) * math.Cos(float64(i)*4.1414*seed)
}

// Train tells the run up to a share of its way, a second at a time.
func (t *Story) Train(from, to float64) *Story {
	for s := int64(float64(t.Steps) * from); s < int64(float64(t.Steps)*to); s++ {
		t.Wait(90 * time.Millisecond)
		x := float64(s) / float64(t.Steps)
		if s%2 == 0 {
			t.point("loss", s, loss(x, s))
			t.point("tokens/s", s, 21800+220*wobble(s, 3))
			t.point("lr", s, 3e-3*0.5*(1+math.Cos(math.Pi*x)))
		}
		if s%50 == 49 {
			t.point("val/loss", s, loss(x, 0)+0.06+0.07*x)
		}
		if s%11 == 0 {
			t.Samples(s)
		}
	}
	done := int64(float64(t.Steps) * to)
	left := float64(t.Steps-done) * 0.09
	return t.Tell(event.ProgressChanged{Progress: metrics.Progress{Epoch: math.Min(1+math.Floor(to*float64(t.Epochs)), float64(t.Epochs)), Epochs: float64(t.Epochs),
		Step: done, Steps: t.Steps}, ETA: left}).Samples(done)
}

func (t *Story) point(name string, step int64, v float64) {
	n := t.points[name]
	t.points[name] = n + 1
	t.Tell(event.PointsAdded{Points: []metrics.Point{{Name: name, Step: &step, Ordinal: n, Value: v, Time: t.at}}})
}

// Samples tells a sample of every node.
func (t *Story) Samples(i int64) *Story {
	for n := range t.Nodes {
		t.Tell(event.Sampled{Node: n, Sample: t.sample(n, i)})
	}
	return t
}

func (t *Story) sample(node int, i int64) metrics.Sample {
	f := func(v float64) *float64 { return &v }
	k := i + int64(node)*7
	s := metrics.Sample{Uptime: float64(i), Cores: 2, CPU: f(math.Min(100, 93+6*wobble(k, 2))),
		MemUsed: f(1.31e9 + 4e7*wobble(k, 5) + float64(node)*1e8), MemTotal: f(8.2e9),
		NetRx: f(4.4e6 + 6e5*wobble(k, 7)), NetTx: f(4.3e6 + 6e5*wobble(k, 9)),
		DiskUsed: f(31.4e9), DiskTotal: f(62.7e9), Simulated: t.Simulated, GPUError: "no GPU"}
	if t.GPUs == 0 {
		return s
	}
	s.GPUError, s.Cores, s.MemTotal, s.MemUsed = "", 96, f(1.1e12), f(2.1e11)
	s.CPU, s.NetRx, s.NetTx = f(31+6*wobble(k, 2)), f(2.1e9+1e8*wobble(k, 7)), f(2.1e9+1e8*wobble(k, 9))
	for g := range t.GPUs {
		kg := k + int64(g)*13
		gpu := metrics.GPU{Index: g, Name: "NVIDIA A100-SXM4-80GB", Util: f(94 + 5*wobble(kg, 2)),
			MemUsed: f(71200 + 900*wobble(kg, 4)), MemTotal: f(81920), Temp: f(math.Round(61 + 4*wobble(kg, 6))),
			Power: f(388 + 20*wobble(kg, 8)), PowerLimit: f(400)}
		if t.Simulated {
			gpu.Name = "Simulated GPU"
		}
		s.GPUs = append(s.GPUs, gpu)
	}
	return s
}

// Log tells that a rank has printed a text.
func (t *Story) Log(rank int, text string) *Story {
	return t.Tell(event.LogGrew{Rank: rank, Size: int64(len(text))})
}

// End tells a good end: results home.
func (t *Story) End() *Story {
	t.Tell(event.StepEnded{Step: event.StepTrain, OK: true, Duration: 54.2, Text: "all ranks ended"})
	for r := range t.world() {
		t.Tell(event.RankEnded{Rank: r, Node: r / max(t.GPUs, 1)})
	}
	t.Tell(event.RunEnded{Verdict: event.Succeeded, Cause: "every rank ended with 0", Rank: -1, Node: -1, Duration: 54.2})
	t.Step(event.StepFetch, "3 files, 4.1 MB", 210*time.Millisecond)
	return t.Tell(event.ResultsFetched{Files: 3, Bytes: 4300000, Dir: "results/" + t.Run})
}

// Down tells the teardown, proven or not.
func (t *Story) Down(proven bool) *Story {
	t.Tell(event.StepStarted{Step: event.StepDown, Text: "removing the nodes"}).Wait(900 * time.Millisecond)
	r := event.ReceiptMade{Proven: proven, Lived: t.at.Sub(Epoch).Seconds(), Cost: t.Price * t.at.Sub(Epoch).Hours()}
	for i := range t.Nodes {
		name := fmt.Sprintf("node%d", i)
		r.Resources = append(r.Resources,
			cloud.Resource{Kind: "process", ID: fmt.Sprint(48211 + i), Node: name, State: cloud.Gone, Proof: "no process carries the cluster's cookie"},
			cloud.Resource{Kind: "directory", ID: "home", Node: name, State: cloud.Gone, Proof: "looked again after removal: not there"})
	}
	if !proven {
		r.Resources[1].State, r.Resources[1].Proof = cloud.Unknown, "could not be listed: permission denied"
		r.Resources[2].State, r.Resources[2].Proof = cloud.Alive, "still answers a signal 5 s after KILL"
		r.ProcessesLeft, r.FilesLeft = 1, 14
	}
	t.Tell(event.StepEnded{Step: event.StepDown, OK: proven, Duration: 0.9, Text: map[bool]string{true: "proven gone", false: "not everything is proven gone"}[proven]})
	return t.Tell(r)
}

// Output is what rank 0 of the example prints up to a share of its way.
func Output(to float64) string {
	var b strings.Builder
	b.WriteString("charlm: PyTorch 1.13.1, DistributedDataParallel over gloo, world size 2\n")
	b.WriteString("text: 3 112 034 characters of Python's standard library, 98 different; 90 % train, 10 % validation\n")
	b.WriteString("model: 4 layers, 128 wide, 4 heads, 0.83 M parameters\n")
	for s := int64(0); s < int64(600*to); s += 10 {
		x := float64(s) / 600
		fmt.Fprintf(&b, "epoch %d/6  step %3d/600  loss %.3f  lr %.5f  %6.0f tokens/s\n",
			1+s/100, s, loss(x, s), 3e-3*0.5*(1+math.Cos(math.Pi*x)), 21800+220*wobble(s, 3))
		if s%50 == 40 {
			fmt.Fprintf(&b, "validation: val_loss %.3f\n", loss(x, 0)+0.06+0.07*x)
		}
		if s%100 == 90 {
			fmt.Fprintf(&b, "saved checkpoints/epoch-%d.pt (3.3 MB)\n", 1+s/100)
		}
	}
	return b.String()
}
