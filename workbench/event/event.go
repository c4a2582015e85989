// Package event is the vocabulary of an experiment's life: the events that its
// driver publishes, the values that they and the lists carry, and the reference
// page that is made from them. Screens and commands read these and need no
// driver for it.
package event

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/metrics"
)

// Event is one thing that happened. Events of a cluster are totally ordered by
// Seq. In JSON an event is one flat object: the fields of the envelope, then
// those of its body; "event" names the type.
type Event struct {
	Seq     int64
	Time    time.Time
	Cluster string
	Run     string // empty for what belongs to no run
	Body    Body
}

// Body is what an event says. The set is closed: see Bodies.
type Body interface{ EventName() string }

// Step names of the life of an experiment, in order.
const (
	StepCluster     = "cluster"     // machines up and reached by ssh
	StepEnvironment = "environment" // Python on every node
	StepSync        = "sync"        // code on every node
	StepData        = "data"        // inputs on every node, where the profile has some
	StepLaunch      = "launch"      // ranks started
	StepTrain       = "train"       // ranks running, until all have ended
	StepFetch       = "fetch"       // results brought home
	StepDown        = "down"        // everything removed, and proven so
)

// The kinds of forwards.
const (
	// ForwardHTTP is an HTTP server, which only browsers that were
	// let in can reach.
	ForwardHTTP = "http"
	// ForwardTCP passes every connection on as it is: see tunnel.RawReach.
	ForwardTCP = "tcp"
	// ForwardReverse leads from a port of the node to one of this machine.
	ForwardReverse = "reverse"
)

// Steps lists the steps that every profile has, in order; StepData is only where there are inputs.
var Steps = []string{StepCluster, StepEnvironment, StepSync, StepLaunch, StepTrain, StepFetch, StepDown}

type (
	// PlanMade says what is about to be done.
	PlanMade struct {
		Profile      string   `json:"profile"`
		Path         string   `json:"path,omitempty"`
		Provider     string   `json:"provider"`
		Nodes        int      `json:"nodes"`
		Engine       string   `json:"engine"`
		Command      string   `json:"command"`
		PricePerHour float64  `json:"price_per_hour"`
		Steps        []string `json:"steps"`
		// Until is the last step that will be done, of a command that goes no
		// further than to set the cluster up; empty when a run is launched.
		Until string `json:"until,omitempty"`
	}
	// StepStarted opens a step.
	StepStarted struct {
		Step string `json:"step"`
		Text string `json:"text"`
	}
	// StepProgress is news from inside a step. Node is -1 for the whole cluster.
	StepProgress struct {
		Step string `json:"step"`
		Node int    `json:"node"`
		Host string `json:"host,omitempty"`
		Text string `json:"text"`
	}
	// StepEnded closes a step. Skipped steps had nothing to do.
	StepEnded struct {
		Step     string  `json:"step"`
		OK       bool    `json:"ok"`
		Skipped  bool    `json:"skipped,omitempty"`
		Duration float64 `json:"duration_s"`
		Text     string  `json:"text"`
		Failure  *Fault  `json:"failure,omitempty"`
	}
	// ClusterUp says that all nodes answer.
	ClusterUp struct {
		Provider     string       `json:"provider"`
		Region       string       `json:"region,omitempty"`
		Zone         string       `json:"zone,omitempty"`
		Instance     string       `json:"instance_type,omitempty"`
		Spot         bool         `json:"spot,omitempty"`
		Nodes        []cloud.Node `json:"nodes"`
		PricePerHour float64      `json:"price_per_hour"`
		Costs        []cloud.Cost `json:"costs,omitempty"`
		// Ends is when the machines' lease ends at the latest.
		Ends time.Time `json:"ends,omitzero"`
		// Lacks are what can't be done on these nodes.
		Lacks []job.Lack `json:"lacks,omitempty"`
		// Job is the run that the price is for, where each is a job that is paid for by
		// itself; Stay is for how long its machines cost when it has ended well.
		Job  string  `json:"job,omitempty"`
		Stay float64 `json:"stay_s,omitempty"`
	}
	// NodeChanged is what is known of the connection to a node.
	NodeChanged struct {
		Node  int         `json:"node"`
		Host  string      `json:"host,omitempty"`
		State cloud.State `json:"state"`
		Why   string      `json:"why,omitempty"`
	}
	// LeaseChanged is when a node ends by itself unless something changes:
	// when a run starts or a person comes, the bound is another one.
	LeaseChanged struct {
		Node  int       `json:"node"`
		Bound string    `json:"bound"` // "bootstrap", "idle", "lifetime" or "budget"; "none" for no end in sight
		Ends  time.Time `json:"ends,omitzero"`
	}
	// SpotNotice says that the provider is about to take a node away.
	SpotNotice struct {
		Node   int       `json:"node"`
		Action string    `json:"action"` // "terminate", "stop" or "hibernate"
		At     time.Time `json:"at"`
	}
	// ClusterStopped says that the machines are stopped; the disks stay, and
	// what they cost is the price now.
	ClusterStopped struct {
		PricePerHour float64      `json:"price_per_hour"`
		Costs        []cloud.Cost `json:"costs"`
	}
	// RunStarted says that every rank was launched.
	RunStarted struct {
		Engine    string     `json:"engine"`
		WorldSize int        `json:"world_size"`
		Nodes     int        `json:"nodes"`
		Command   string     `json:"command"`
		Python    string     `json:"python"`
		Ranks     []RankInfo `json:"ranks"`
	}
	// LogGrew says that the stored log of a rank has Size bytes now. The bytes
	// are read with Workbench.ReadLog.
	LogGrew struct {
		Rank int   `json:"rank"`
		Size int64 `json:"size"`
	}
	// LogLine is one line of a rank's output. Only printed streams have it;
	// it is made from LogGrew.
	LogLine struct {
		Rank int    `json:"rank"`
		Line string `json:"line"`
	}
	// PointsAdded carries new points of the run's series.
	PointsAdded struct {
		Points []metrics.Point `json:"points"`
	}
	// Point is one value of one series. Only printed streams have it; it is
	// made from PointsAdded.
	Point struct{ metrics.Point }
	// ProgressChanged is how far the run says it is.
	ProgressChanged struct {
		metrics.Progress
		ETA float64 `json:"eta_s"` // seconds; 0 when not known
	}
	// Sampled is one telemetry sample of a node.
	Sampled struct {
		Node   int            `json:"node"`
		Sample metrics.Sample `json:"sample"`
	}
	// RankEnded says how one rank ended. ExitCode is 128+n after signal n.
	RankEnded struct {
		Rank      int      `json:"rank"`
		Node      int      `json:"node"`
		Host      string   `json:"host,omitempty"`
		ExitCode  int      `json:"exit_code"`
		Signal    string   `json:"signal,omitempty"` // "KILL", "TERM", …
		ByUs      bool     `json:"stopped_by_us"`    // ended by our own stop, not by itself
		LastLines []string `json:"last_lines,omitempty"`
	}
	// RunEnded says how the run ended. ExitCode is that of the rank that
	// failed first, 124 for a run that hung, 130 for one that was stopped.
	RunEnded struct {
		ExitCode  int      `json:"exit_code"`
		Verdict   Verdict  `json:"verdict"`
		Cause     string   `json:"cause"` // a sentence
		Rank      int      `json:"rank"`  // the rank at fault; -1 for none
		Node      int      `json:"node"`
		Host      string   `json:"host,omitempty"`
		Duration  float64  `json:"duration_s"`
		LastLines []string `json:"last_lines,omitempty"`
		// Silent are nodes that were given up: not heard of for limits.lost, and
		// not known to be gone; or refusing a login when that befell another one.
		Silent []int `json:"silent,omitempty"`
	}
	// ResultsFetched says what is home of a run's results, after some were
	// brought home.
	ResultsFetched struct {
		Files int    `json:"files"` // of the run, in Dir
		Bytes int64  `json:"bytes"`
		Dir   string `json:"dir"` // absolute
		New   int    `json:"new"` // of the files, those that came just now
		// Older counts files below results.paths that the run did not write:
		// they were there before it, or are a later run's. They stay where they
		// are.
		Older int `json:"older,omitempty"`
		// Left is what was asked for and did not come, each with the reason.
		Left []string `json:"left,omitempty"`
		// Unfetched counts files of the run that are on its machines only: they
		// could not be read, or not whole.
		Unfetched int `json:"unfetched,omitempty"`
		// Partial is set where something did not come that may still be had.
		Partial bool `json:"partial,omitempty"`
	}
	// CheckpointSaved says that a whole checkpoint of a run that goes on is safe from
	// the end of its machines: it was brought home, or a service keeps it.
	CheckpointSaved struct {
		Node  int    `json:"node"`
		Host  string `json:"host,omitempty"`
		Name  string `json:"name"` // in results.checkpoints
		Files int    `json:"files"`
		Bytes int64  `json:"bytes"`
		Place string `json:"place,omitempty"` // where a service keeps it; empty: it is home
		// Written is when it was, by the clock here or the service's; zero: not known.
		Written time.Time `json:"written,omitzero"`
	}
	// ResultsLost says that results which were not home are gone with their
	// machine.
	ResultsLost struct {
		Node  int      `json:"node"`
		Host  string   `json:"host,omitempty"`
		Paths []string `json:"paths"`
		Why   string   `json:"why"`
		// Home is where what came before lies, and how many files that are.
		Home  string `json:"home"`
		Files int    `json:"files"`
	}
	// ForwardOpened says that a tunnel listens.
	ForwardOpened struct {
		Kind       string `json:"kind"` // "http", "tcp" or "reverse"
		Name       string `json:"name"`
		LocalPort  int    `json:"local_port"`
		RemotePort int    `json:"remote_port"`
		Node       int    `json:"node"`
		// URL is its address; empty for "reverse". Where the kind is "http" it
		// is for browsers that were let in.
		URL string `json:"url"`
		// Entry is the address with a ticket that lets one browser in, once,
		// within a quarter of an hour. Only the process that holds the tunnel
		// says it; it is never kept.
		Entry string `json:"entry,omitempty"`
		// Note is what a person should know of it, such as that the usual
		// local port was taken.
		Note string `json:"note,omitempty"`
		// Kept says that dlwb's keeper holds it: it goes on when dlwb ends.
		Kept bool `json:"kept,omitempty"`
	}
	// ForwardClosed says that a tunnel is closed, and why.
	ForwardClosed struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		LocalPort  int    `json:"local_port"`
		RemotePort int    `json:"remote_port"`
		Why        string `json:"why"`
	}
	// ForwardChanged says how a tunnel stands: while the node is not reached it
	// is dialed again and again, and the tunnel goes on by itself.
	ForwardChanged struct {
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		LocalPort  int    `json:"local_port"`
		RemotePort int    `json:"remote_port"`
		Connected  bool   `json:"connected"`
		Why        string `json:"why,omitempty"` // what failed last
	}
	// ReceiptMade is the end of a cluster: what was removed, and the proof.
	ReceiptMade struct {
		Proven        bool             `json:"proven"`
		ProcessesLeft int              `json:"processes_left"`
		FilesLeft     int              `json:"files_left"`
		Lived         float64          `json:"lived_s"`
		Cost          float64          `json:"cost"`
		Resources     []cloud.Resource `json:"resources"`
	}
	// MetricAdded says that a person added an expression to a run: its whole
	// output is read by it, and what is still to come.
	MetricAdded struct {
		Name  string `json:"name"`
		Regex string `json:"regex"`
	}
	// Noticed is something a person should know; it changes no state.
	Noticed struct {
		Level string `json:"level"` // "info" or "warning"
		Text  string `json:"text"`
		Next  string `json:"next,omitempty"`
	}
	// Failed says what could not be done. Nothing is left half done by it
	// that is not named.
	Failed struct{ Fault }
)

// RankInfo says where a rank runs and with what.
type RankInfo struct {
	Rank      int    `json:"rank"`
	LocalRank int    `json:"local_rank"`
	Node      int    `json:"node"`
	Host      string `json:"host,omitempty"` // what the user calls the node
	Command   string `json:"command"`
}

// Verdict is how a run ended, in one word.
type Verdict string

// The verdicts.
const (
	Succeeded Verdict = "succeeded"
	ExitedBad Verdict = "failed"  // a rank exited with a code of its own
	Killed    Verdict = "killed"  // a rank was killed by a signal
	Hung      Verdict = "hung"    // no output for longer than the stall limit
	Stopped   Verdict = "stopped" // somebody asked for it
	Lost      Verdict = "lost"    // a node went away, or was not heard of for too long
	// OutOfMemory: the kernel says that it ended processes of the rank at
	// fault for lack of memory.
	OutOfMemory Verdict = "oom"
	DiskFull    Verdict = "disk-full"  // the node of the rank at fault had no room to write
	Rebooted    Verdict = "rebooted"   // a node was started anew during the run
	TimedOut    Verdict = "time-limit" // the service that runs it gave it no more time
)

// Verdicts are all of them.
var Verdicts = []Verdict{Succeeded, ExitedBad, Killed, Hung, Stopped, Lost, OutOfMemory, DiskFull, Rebooted, TimedOut}

// Bodies lists every type of event with one sentence; the reference page is
// made from it.
var Bodies = []struct {
	Body Body
	Doc  string
}{
	{PlanMade{}, "what is about to be done"},
	{StepStarted{}, "a step begins"},
	{StepProgress{}, "news from inside a step; node -1 is the whole cluster"},
	{StepEnded{}, "a step ended, with its duration in seconds and, if it failed, why"},
	{ClusterUp{}, "all nodes answer"},
	{NodeChanged{}, "what is known of the connection to a node"},
	{LeaseChanged{}, "when a node ends by itself, and by which bound of its lease"},
	{SpotNotice{}, "the provider is about to take a node away"},
	{ClusterStopped{}, "the machines are stopped and their disks kept, with what those cost"},
	{RunStarted{}, "every rank was launched"},
	{LogGrew{}, "the stored log of a rank has grown (not printed: log_line is)"},
	{LogLine{}, "one line of a rank's output"},
	{PointsAdded{}, "new points of the run's series (not printed: point is)"},
	{Point{}, "one value of one series, with name, step and value; a value that is not a number is \"nan\", \"inf\" or \"-inf\"; with ordinal 0 the series begins anew, as from a file that tells it better"},
	{ProgressChanged{}, "how far the run says it is"},
	{Sampled{}, "CPU, memory, network and GPUs of a node at one moment"},
	{RankEnded{}, "how one rank ended"},
	{RunEnded{}, "how the run ended: exit code, verdict, the rank at fault and its last lines"},
	{RunBilled{}, "what a run has cost that is a job paid for by itself, as its service bills it"},
	{ResultsFetched{}, "what is home of the run's results, and where"},
	{CheckpointSaved{}, "a whole checkpoint of a run that goes on was brought home, or is kept by its service"},
	{ResultsLost{}, "results that were not home are gone with their machine"},
	{ForwardOpened{}, "a tunnel listens on a local port"},
	{ForwardChanged{}, "how a tunnel stands: whether its node is reached, and what failed last"},
	{ForwardClosed{}, "a tunnel is closed"},
	{ReceiptMade{}, "the cluster is gone: each resource with its proof, what it lived and cost"},
	{ChainStep{}, "how far a chain of profiles is: a step runs, is done, failed, or is skipped because nothing changed"},
	{SweepChanged{}, "how far a sweep is, with its leaderboard: the best trial first"},
	{MetricAdded{}, "a person added an expression to a run; its whole output is read by it"},
	{Noticed{}, "something a person should know"},
	{Failed{}, "something could not be done: what, where, why, and what to do next"},
}

// Address is what to open in a browser: the entry where there is one.
func (f ForwardOpened) Address() string {
	if f.Entry != "" {
		return f.Entry
	}
	return f.URL
}

// EventName gives the value of "event" in JSON.
func (PlanMade) EventName() string { return "plan" }

func (StepStarted) EventName() string { return "step_started" }

func (StepProgress) EventName() string { return "step_progress" }

func (StepEnded) EventName() string { return "step_ended" }

func (ClusterUp) EventName() string { return "cluster_up" }

func (NodeChanged) EventName() string { return "node" }

func (LeaseChanged) EventName() string { return "lease" }

func (SpotNotice) EventName() string { return "spot_notice" }

func (ClusterStopped) EventName() string { return "cluster_stopped" }

func (RunStarted) EventName() string { return "run_started" }

func (LogGrew) EventName() string { return "log_grew" }

func (LogLine) EventName() string { return "log_line" }

func (PointsAdded) EventName() string { return "points" }

func (Point) EventName() string { return "point" }

func (ProgressChanged) EventName() string { return "progress" }

func (Sampled) EventName() string { return "sample" }

func (RankEnded) EventName() string { return "rank_ended" }

func (RunEnded) EventName() string { return "run_ended" }

func (ResultsFetched) EventName() string { return "results" }

func (ResultsLost) EventName() string { return "results_lost" }

func (CheckpointSaved) EventName() string { return "checkpoint" }

func (ForwardOpened) EventName() string { return "forward_opened" }

func (ForwardChanged) EventName() string { return "forward" }

func (ForwardClosed) EventName() string { return "forward_closed" }

func (ReceiptMade) EventName() string { return "receipt" }

func (MetricAdded) EventName() string { return "metric_added" }

func (Noticed) EventName() string { return "notice" }

func (Failed) EventName() string { return "failed" }

// MarshalJSON writes the envelope and the body as one flat object.
func (e Event) MarshalJSON() ([]byte, error) {
	head := struct {
		Event   string    `json:"event"`
		Seq     int64     `json:"seq,omitempty"`
		Time    time.Time `json:"time"`
		Cluster string    `json:"cluster,omitempty"`
		Run     string    `json:"run,omitempty"`
	}{e.Body.EventName(), e.Seq, e.Time, e.Cluster, e.Run}
	h, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(e.Body)
	if err != nil {
		return nil, err
	}
	if len(b) <= 2 {
		return h, nil
	}
	return append(append(h[:len(h)-1], ','), b[1:]...), nil
}

// Text is what is home and where, as a line for people.
func (r ResultsFetched) Text() string {
	text := SizeText(r.Files, r.Bytes) + " in " + r.Dir
	if r.Older > 0 {
		text += fmt.Sprintf("; %s left there, which it did not write", units.Count(r.Older, "file"))
	}
	return text
}

// GivenUp tells of each node, as far as any was, whether it was given up.
func (e RunEnded) GivenUp() (silent []bool) {
	for _, i := range e.Silent {
		for len(silent) <= i {
			silent = append(silent, false)
		}
		silent[i] = true
	}
	return silent
}
