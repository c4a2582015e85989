package session

import (
	"math"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/money"
)

// Status is how far a step is.
type Status int

// How far a step may be.
const (
	Waiting Status = iota
	Active
	Done
	Skipped
	Broken
)

// Step is what is known of one step.
type Step struct {
	Name   string
	Status Status
	Since  time.Time
	Took   time.Duration
	Text   string
	Nodes  map[int]string // the newest news per node; -1 is the whole cluster
	Fault  *event.Fault
}

// Node is what is known of one node.
type Node struct {
	cloud.Node
	State     cloud.State
	Why       string    // it is so
	Since     time.Time // of state
	Sample    *metrics.Sample
	sampledAt time.Time
	CPU, Mem  Trace
	Rx, tx    Trace
	GPUs      []Trace // use, by position in the sample
	heat      []gpuSample
}

// Trace is the newest values of one quantity, oldest first.
type Trace []float64

// traceLen covers a sparkline on the widest screen.
const traceLen = 240

// add takes a value; none leaves a gap, which is shown as one.
func (t *Trace) add(v *float64) {
	switch {
	case v != nil:
		*t = append(*t, *v)
	case len(*t) > 0:
		*t = append(*t, math.NaN())
	}
	if len(*t) > 2*traceLen {
		*t = append(Trace(nil), (*t)[len(*t)-traceLen:]...)
	}
}

// State is everything that is known of a cluster and its newest run. It is a
// pure fold: Apply is the only thing that changes it, and reads no clock.
type State struct {
	Cluster, Run string
	LastAt       time.Time // of the newest event

	plan     *event.PlanMade
	Provider string
	Machines Machines
	Lacks    []job.Lack // what can't be done on its nodes
	Account  money.Account
	Up       bool
	Steps    []Step
	Nodes    []Node

	Launched  *event.RunStarted
	StartedAt time.Time
	Progress  metrics.Progress
	ETA       float64 // seconds, at etaAt
	etaAt     time.Time
	Curves    []*Curve
	grouping  [][]*Curve // of the first of them, as many as grouped says
	grouped   int
	clock     time.Time // from which the time of a point is counted
	LogSizes  map[int]int64
	RankEnds  map[int]event.RankEnded
	RankEndAt time.Time // of the newest of them
	Ended     *event.RunEnded
	endedAt   time.Time
	Results   *event.ResultsFetched
	// Checkpoint is the newest whole one of the run that is home; without a name: none.
	Checkpoint event.Checkpoint
	Lost       *event.ResultsLost // of them; nil: nothing that is known of

	Sweep    *event.SweepChanged // how far the sweep of this cluster is; nil: there is none
	Forwards []Forward
	Receipt  *event.ReceiptMade
	Notices  []event.Noticed
	NoticeAt time.Time // of the newest
	Failed   *event.Fault
	// aside is that another command is at work on the cluster, such as a sync,
	// which launches no run: what is shown of the last one stays.
	aside bool
}

// NewState knows nothing of a cluster yet.
func NewState(cluster string) *State {
	s := &State{Cluster: cluster}
	s.forgetRun()
	return s
}

// forgetRun makes room for the next run on the same cluster.
func (s *State) forgetRun() {
	s.Launched, s.Ended, s.Results, s.Lost, s.Failed = nil, nil, nil, nil, nil
	s.Progress, s.ETA = metrics.Progress{}, 0
	s.StartedAt, s.endedAt, s.Checkpoint = time.Time{}, time.Time{}, event.Checkpoint{}
	s.Curves, s.grouping, s.grouped, s.clock = nil, nil, 0, time.Time{}
	s.LogSizes = map[int]int64{}
	s.RankEnds = map[int]event.RankEnded{}
}

// Apply folds one event into what is known.
func (s *State) Apply(e event.Event) {
	if e.Time.After(s.LastAt) {
		s.LastAt = e.Time
	}
	if e.Run != "" && e.Run != s.Run {
		s.forgetRun()
		s.Run = e.Run
	}
	if s.applyAside(e) {
		return
	}
	s.Account.Apply(e)
	s.Checkpoint.Apply(e)
	switch b := e.Body.(type) {
	case event.PlanMade:
		if e.Run == "" { // a new attempt: what the last run came to is over
			s.forgetRun()
			s.Run = ""
		}
		s.applyPlan(b)
	case event.StepStarted, event.StepProgress, event.StepEnded:
		s.applyStep(e.Time, b)
	case event.ClusterUp:
		s.applyUp(e.Time, b)
	case event.NodeChanged:
		s.applyNode(e.Time, b)
	case event.Sampled:
		s.applySample(e.Time, b)
	case event.ClusterStopped:
		s.applyStopped(e.Time, b)
	case event.ForwardOpened:
		s.openForward(b)
	case event.ForwardChanged:
		s.changeForward(b)
	case event.ForwardClosed:
		s.closeForward(b)
	case event.ReceiptMade:
		s.Receipt = &b
	case event.SweepChanged:
		s.Sweep = &b
	case event.Noticed:
		s.notice(e.Time, b)
	case event.Failed:
		f := CleanFault(b.Fault)
		s.Failed = &f
	default:
		s.applyRun(e.Time, e.Body)
	}
}

// applyAside folds what a command tells that sets up a cluster on which a run
// was launched, and launches none itself. Its steps and plan are not those that
// are shown; that it failed is told as a notice.
func (s *State) applyAside(e event.Event) bool {
	switch b := e.Body.(type) {
	case event.PlanMade:
		s.aside = setsUp(b.Until) && s.Launched != nil && s.Receipt == nil
		return s.aside
	case event.StepStarted:
		s.aside = s.aside && setsUp(b.Step)
		return s.aside
	case event.StepProgress:
		return s.aside
	case event.StepEnded:
		if !s.aside || !setsUp(b.Step) {
			return false
		}
		if b.OK && !b.Skipped {
			s.notice(e.Time, event.Noticed{Level: "info", Text: "another command on this cluster: " + b.Step + ": " + b.Text})
		}
		return true
	case event.Failed:
		if s.aside {
			s.notice(e.Time, event.Noticed{Level: "warning", Text: "another command on this cluster failed: " + b.Error(), Next: b.Next})
		}
		return s.aside
	}
	return false
}

func (s *State) notice(at time.Time, n event.Noticed) {
	n.Text, n.Next = text.Word(n.Text), text.Word(n.Next)
	s.Notices, s.NoticeAt = append(s.Notices, n), at
}

// setsUp reports whether a step comes before a run.
func setsUp(step string) bool {
	return step == event.StepCluster || step == event.StepEnvironment || step == event.StepSync || step == event.StepData
}

// applyRun folds what belongs to a run.
func (s *State) applyRun(at time.Time, body event.Body) {
	switch b := body.(type) {
	case event.RunStarted:
		b.Command, b.Python = text.Word(b.Command), text.Word(b.Python)
		s.Launched, s.StartedAt = &b, at
	case event.LogGrew:
		s.LogSizes[b.Rank] = max(b.Size, s.LogSizes[b.Rank])
	case event.PointsAdded:
		for _, p := range b.Points {
			s.AddPoint(p)
		}
	case event.ProgressChanged:
		s.Progress, s.ETA, s.etaAt = b.Progress, b.ETA, at
	case event.RankEnded:
		b.LastLines = text.Words(b.LastLines)
		s.RankEnds[b.Rank], s.RankEndAt = b, at
	case event.RunEnded:
		b.Cause, b.LastLines = text.Word(b.Cause), text.Words(b.LastLines)
		s.Ended, s.endedAt = &b, at
	case event.ResultsFetched:
		b.Dir = text.Word(b.Dir)
		s.Results, s.Lost = &b, nil
	case event.ResultsLost:
		s.Lost = &b
	}
}

// applyPlan begins a new life of the cluster: what was known of an earlier
// attempt no longer holds.
func (s *State) applyPlan(b event.PlanMade) {
	b.Profile, b.Command = text.Word(b.Profile), text.Word(b.Command)
	s.plan, s.Provider = &b, b.Provider
	if s.Receipt != nil && s.Receipt.Proven {
		s.Machines = Machines{}
	}
	s.Failed, s.Receipt = nil, nil
	s.Steps = nil
	for _, name := range b.Steps {
		s.Steps = append(s.Steps, Step{Name: name})
	}
}

func (s *State) applyStep(at time.Time, body event.Body) {
	switch b := body.(type) {
	case event.StepStarted:
		st := s.step(b.Step)
		*st = Step{Name: b.Step, Status: Active, Since: at, Text: text.Word(b.Text)}
	case event.StepProgress:
		st := s.step(b.Step)
		if st.Nodes == nil {
			st.Nodes = map[int]string{}
		}
		st.Nodes[b.Node] = text.Word(b.Text)
	case event.StepEnded:
		st := s.step(b.Step)
		st.Took, st.Text = text.Seconds(b.Duration), text.Word(b.Text)
		st.Status = endStatus(b)
		if b.Failure != nil {
			f := CleanFault(*b.Failure)
			st.Fault = &f
		}
	}
}

func endStatus(b event.StepEnded) Status {
	switch {
	case !b.OK:
		return Broken
	case b.Skipped:
		return Skipped
	}
	return Done
}

// step finds a step by name; one that the plan did not name is put at the end.
func (s *State) step(name string) *Step {
	for i := range s.Steps {
		if s.Steps[i].Name == name {
			return &s.Steps[i]
		}
	}
	s.Steps = append(s.Steps, Step{Name: name})
	return &s.Steps[len(s.Steps)-1]
}

func (s *State) applyUp(at time.Time, b event.ClusterUp) {
	s.Provider, s.Up, s.Lacks = b.Provider, true, nil
	for _, l := range b.Lacks {
		s.Lacks = append(s.Lacks, job.Lack{Capability: l.Capability, Why: text.Word(l.Why), Next: text.Word(l.Next)})
	}
	s.Machines = Machines{text: text.Word(cloud.MachinesText(b.Nodes, b.Instance, b.Spot)), Instance: text.Word(b.Instance), place: text.Word(b.Zone), PerHour: b.PricePerHour}
	if b.Zone == "" {
		s.Machines.place = text.Word(b.Region)
	}
	for _, n := range b.Nodes {
		st := s.node(n.Index)
		if n.Name = text.Word(n.Name); n.Called != "" {
			n.Name = text.Word(n.Called)
		}
		st.Node, st.State, st.Since = n, cloud.Alive, at
	}
}

func (s *State) applyStopped(at time.Time, b event.ClusterStopped) {
	s.Machines.Stopped = true
}

// node finds a node, and makes room for it when it is news. A cluster has at
// most a few dozen; a number far outside is somebody's mistake, not a node.
func (s *State) node(i int) *Node {
	if i < 0 || i >= 4096 {
		return &Node{}
	}
	for len(s.Nodes) <= i {
		n := len(s.Nodes)
		s.Nodes = append(s.Nodes, Node{
			Node: cloud.Node{Index: n, Name: NodeName(n)}, State: cloud.Unknown})
	}
	return &s.Nodes[i]
}

func (s *State) applyNode(at time.Time, b event.NodeChanged) {
	n := s.node(b.Node)
	if n.State != b.State || n.Since.IsZero() {
		n.Since = at
	}
	n.State, n.Why = b.State, text.Word(b.Why)
}

func (s *State) applySample(at time.Time, b event.Sampled) {
	n := s.node(b.Node)
	smp := b.Sample
	smp.GPUError = text.Word(smp.GPUError)
	smp.GPUs = append([]metrics.GPU(nil), smp.GPUs...)
	for i := range smp.GPUs {
		smp.GPUs[i].Name = text.Word(smp.GPUs[i].Name)
	}
	n.Sample, n.sampledAt = &smp, at
	n.CPU.add(smp.CPU)
	n.Mem.add(Percent(smp.MemUsed, smp.MemTotal))
	n.Rx.add(smp.NetRx)
	n.tx.add(smp.NetTx)
	n.noteHeat(at, smp.GPUs)
	for len(n.GPUs) < len(smp.GPUs) {
		n.GPUs = append(n.GPUs, nil)
	}
	for i, g := range smp.GPUs {
		n.GPUs[i].add(g.Util)
	}
}

// AddPoint puts a point at the end of its series.
func (s *State) AddPoint(p metrics.Point) {
	p.Name = text.Word(p.Name)
	if s.clock.IsZero() {
		if s.clock = s.StartedAt; s.clock.IsZero() {
			s.clock = p.Time
		}
	}
	c := s.curve(p.Name)
	if p.Ordinal == 0 && c.N > 0 { // another source tells it better: all of it comes again
		*c = *NewCurve(c.Name)
	}
	c.Add(p, s.clock)
}

func (s *State) curve(name string) *Curve {
	for _, c := range s.Curves {
		if c.Name == name {
			return c
		}
	}
	c := NewCurve(name)
	s.Curves = append(s.Curves, c)
	return c
}
