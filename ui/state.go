package ui

import (
	"math"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

// status is how far a step is.
type status int

const (
	waiting status = iota
	active
	done
	skipped
	broken
)

// stepState is what is known of one step.
type stepState struct {
	name   string
	status status
	since  time.Time
	took   time.Duration
	text   string
	nodes  map[int]string // the newest news per node; -1 is the whole cluster
	fault  *event.Fault
}

// nodeState is what is known of one node.
type nodeState struct {
	cloud.Node
	state     cloud.State
	why       string
	since     time.Time // of state
	sample    *metrics.Sample
	sampledAt time.Time
	cpu, mem  trace
	rx, tx    trace
	gpus      []trace // use, by position in the sample
	heat      []heatSample
}

// trace is the newest values of one quantity, oldest first.
type trace []float64

// traceLen covers a sparkline on the widest screen.
const traceLen = 240

// add takes a value; none leaves a gap, which is shown as one.
func (t *trace) add(v *float64) {
	switch {
	case v != nil:
		*t = append(*t, *v)
	case len(*t) > 0:
		*t = append(*t, math.NaN())
	}
	if len(*t) > 2*traceLen {
		*t = append(trace(nil), (*t)[len(*t)-traceLen:]...)
	}
}

// state is everything that is known of a cluster and its newest run. It is a
// pure fold: apply is the only thing that changes it, and reads no clock.
type state struct {
	cluster, run string
	lastAt       time.Time // of the newest event

	plan     *event.PlanMade
	provider string
	machines machines
	account  workbench.Account
	up       bool
	steps    []stepState
	nodes    []nodeState

	launched  *event.RunStarted
	startedAt time.Time
	progress  metrics.Progress
	eta       float64
	etaAt     time.Time
	curves    []*curve
	groups    [][]*curve // of the first of them, as many as grouped says
	grouped   int
	clock     time.Time // from which the time of a point is counted
	logSizes  map[int]int64
	rankEnds  map[int]event.RankEnded
	rankEndAt time.Time // of the newest of them
	ended     *event.RunEnded
	endedAt   time.Time
	results   *event.ResultsFetched
	lost      *event.ResultsLost // of them; nil: nothing that is known of

	forwards []forward
	receipt  *event.ReceiptMade
	notices  []event.Noticed
	noticeAt time.Time // of the newest
	failed   *event.Fault
	// aside is that another command is at work on the cluster, such as a sync,
	// which launches no run: what is shown of the last one stays.
	aside bool
}

func newState(cluster string) *state {
	s := &state{cluster: cluster}
	s.forgetRun()
	return s
}

// forgetRun makes room for the next run on the same cluster.
func (s *state) forgetRun() {
	s.launched, s.ended, s.results, s.lost, s.failed = nil, nil, nil, nil, nil
	s.progress, s.eta = metrics.Progress{}, 0
	s.startedAt, s.endedAt = time.Time{}, time.Time{}
	s.curves, s.groups, s.grouped, s.clock = nil, nil, 0, time.Time{}
	s.logSizes = map[int]int64{}
	s.rankEnds = map[int]event.RankEnded{}
}

// apply folds one event into what is known.
func (s *state) apply(e event.Event) {
	if e.Time.After(s.lastAt) {
		s.lastAt = e.Time
	}
	if e.Run != "" && e.Run != s.run {
		s.forgetRun()
		s.run = e.Run
	}
	if s.applyAside(e) {
		return
	}
	s.account.Apply(e)
	switch b := e.Body.(type) {
	case event.PlanMade:
		if e.Run == "" { // a new attempt: what the last run came to is over
			s.forgetRun()
			s.run = ""
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
		s.receipt = &b
	case event.Noticed:
		s.notice(e.Time, b)
	case event.Failed:
		f := cleanFault(b.Fault)
		s.failed = &f
	default:
		s.applyRun(e.Time, e.Body)
	}
}

// applyAside folds what a command tells that sets up a cluster on which a run
// was launched, and launches none itself. Its steps and plan are not those that
// are shown; that it failed is told as a notice.
func (s *state) applyAside(e event.Event) bool {
	switch b := e.Body.(type) {
	case event.PlanMade:
		s.aside = setsUp(b.Until) && s.launched != nil && s.receipt == nil
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

func (s *state) notice(at time.Time, n event.Noticed) {
	n.Text, n.Next = text.Word(n.Text), text.Word(n.Next)
	s.notices, s.noticeAt = append(s.notices, n), at
}

// setsUp reports whether a step comes before a run.
func setsUp(step string) bool {
	return step == event.StepCluster || step == event.StepEnvironment || step == event.StepSync
}

// applyRun folds what belongs to a run.
func (s *state) applyRun(at time.Time, body event.Body) {
	switch b := body.(type) {
	case event.RunStarted:
		b.Command, b.Python = text.Word(b.Command), text.Word(b.Python)
		s.launched, s.startedAt = &b, at
	case event.LogGrew:
		s.logSizes[b.Rank] = max(b.Size, s.logSizes[b.Rank])
	case event.PointsAdded:
		for _, p := range b.Points {
			s.addPoint(p)
		}
	case event.ProgressChanged:
		s.progress, s.eta, s.etaAt = b.Progress, b.ETA, at
	case event.RankEnded:
		b.LastLines = cleanLines(b.LastLines)
		s.rankEnds[b.Rank], s.rankEndAt = b, at
	case event.RunEnded:
		b.Cause, b.LastLines = text.Word(b.Cause), cleanLines(b.LastLines)
		s.ended, s.endedAt = &b, at
	case event.ResultsFetched:
		b.Dir = text.Word(b.Dir)
		s.results, s.lost = &b, nil
	case event.ResultsLost:
		s.lost = &b
	}
}

// applyPlan begins a new life of the cluster: what was known of an earlier
// attempt no longer holds.
func (s *state) applyPlan(b event.PlanMade) {
	b.Profile, b.Command = text.Word(b.Profile), text.Word(b.Command)
	s.plan, s.provider = &b, b.Provider
	if s.receipt != nil && s.receipt.Proven {
		s.machines = machines{}
	}
	s.failed, s.receipt = nil, nil
	s.steps = nil
	for _, name := range b.Steps {
		s.steps = append(s.steps, stepState{name: name})
	}
}

func (s *state) applyStep(at time.Time, body event.Body) {
	switch b := body.(type) {
	case event.StepStarted:
		st := s.step(b.Step)
		*st = stepState{name: b.Step, status: active, since: at, text: text.Word(b.Text)}
	case event.StepProgress:
		st := s.step(b.Step)
		if st.nodes == nil {
			st.nodes = map[int]string{}
		}
		st.nodes[b.Node] = text.Word(b.Text)
	case event.StepEnded:
		st := s.step(b.Step)
		st.took, st.text = text.Seconds(b.Duration), text.Word(b.Text)
		st.status = endStatus(b)
		if b.Failure != nil {
			f := cleanFault(*b.Failure)
			st.fault = &f
		}
	}
}

func endStatus(b event.StepEnded) status {
	switch {
	case !b.OK:
		return broken
	case b.Skipped:
		return skipped
	}
	return done
}

// step finds a step by name; one that the plan did not name is put at the end.
func (s *state) step(name string) *stepState {
	for i := range s.steps {
		if s.steps[i].name == name {
			return &s.steps[i]
		}
	}
	s.steps = append(s.steps, stepState{name: name})
	return &s.steps[len(s.steps)-1]
}

func (s *state) applyUp(at time.Time, b event.ClusterUp) {
	s.provider, s.up = b.Provider, true
	s.machines = machines{count: len(b.Nodes), instance: text.Word(b.Instance), spot: b.Spot, place: text.Word(b.Zone), perHour: b.PricePerHour}
	if b.Zone == "" {
		s.machines.place = text.Word(b.Region)
	}
	for _, n := range b.Nodes {
		st := s.node(n.Index)
		n.Name = text.Word(n.Name)
		st.Node, st.state, st.since = n, cloud.Alive, at
	}
}

func (s *state) applyStopped(at time.Time, b event.ClusterStopped) {
	s.machines.stopped = true
}

// node finds a node, and makes room for it when it is news. A cluster has at
// most a few dozen; a number far outside is somebody's mistake, not a node.
func (s *state) node(i int) *nodeState {
	if i < 0 || i >= 4096 {
		return &nodeState{}
	}
	for len(s.nodes) <= i {
		n := len(s.nodes)
		s.nodes = append(s.nodes, nodeState{
			Node: cloud.Node{Index: n, Name: nodeName(n)}, state: cloud.Unknown})
	}
	return &s.nodes[i]
}

func (s *state) applyNode(at time.Time, b event.NodeChanged) {
	n := s.node(b.Node)
	if n.state != b.State || n.since.IsZero() {
		n.since = at
	}
	n.state, n.why = b.State, text.Word(b.Why)
}

func (s *state) applySample(at time.Time, b event.Sampled) {
	n := s.node(b.Node)
	smp := b.Sample
	smp.GPUError = text.Word(smp.GPUError)
	smp.GPUs = append([]metrics.GPU(nil), smp.GPUs...)
	for i := range smp.GPUs {
		smp.GPUs[i].Name = text.Word(smp.GPUs[i].Name)
	}
	n.sample, n.sampledAt = &smp, at
	n.cpu.add(smp.CPU)
	n.mem.add(ratio(smp.MemUsed, smp.MemTotal))
	n.rx.add(smp.NetRx)
	n.tx.add(smp.NetTx)
	n.noteHeat(at, smp.GPUs)
	for len(n.gpus) < len(smp.GPUs) {
		n.gpus = append(n.gpus, nil)
	}
	for i, g := range smp.GPUs {
		n.gpus[i].add(g.Util)
	}
}

func (s *state) addPoint(p metrics.Point) {
	p.Name = text.Word(p.Name)
	if s.clock.IsZero() {
		if s.clock = s.startedAt; s.clock.IsZero() {
			s.clock = p.Time
		}
	}
	c := s.curve(p.Name)
	if p.Ordinal == 0 && c.n > 0 { // another source tells it better: all of it comes again
		*c = *newCurve(c.name)
	}
	c.add(p, s.clock)
}

func (s *state) curve(name string) *curve {
	for _, c := range s.curves {
		if c.name == name {
			return c
		}
	}
	c := newCurve(name)
	s.curves = append(s.curves, c)
	return c
}
