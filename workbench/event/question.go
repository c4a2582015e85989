package event

import (
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/units"
)

// Question is what a person is asked before something is destroyed. The screen
// and the command line show the same one.
type Question struct {
	// Title is the question itself: "Tear down charlm?"
	Title string `json:"title"`
	// Facts say what goes, what stays, what is not saved, what it costs to
	// keep; in this order.
	Facts []Fact `json:"facts"`
	// Name must be typed to agree; empty where a yes is enough.
	Name string `json:"name,omitempty"`
}

// Fact is one line of a question: a label of at most ten letters and a text.
type Fact struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Add adds a line where there is something to say.
func (q *Question) Add(label, text string) {
	if text != "" {
		q.Facts = append(q.Facts, Fact{label, text})
	}
}

// nameFrom is the price from which a cluster's name is to be typed before it is
// removed, in US dollars per hour: it is work of somebody that costs money.
const nameFrom = 1.0

// Removal is what the removal of a cluster comes to.
type Removal struct {
	Cluster, Provider string
	Nodes             int
	Instance, Place   string // empty where there is no such thing
	Leased            bool   // they are machines that only dlwb made, and end by themselves
	PerHour, Spent    float64
	Disks             float64   // what of the price goes on when the machines stop
	Ends              time.Time // when they end by themselves at the latest
	Stopped           bool      // the machines are off, only their disks cost
	Runs              []RunLeft // on this life of the cluster, newest first
	Forwards          int
}

// RunLeft is a run on the nodes, and where its results are.
type RunLeft struct {
	RunResults
	Live bool
}

// live is the run that is going on; empty when there is none.
func (r Removal) live() string {
	for _, run := range r.Runs {
		if run.Live {
			return run.Run
		}
	}
	return ""
}

// Question asks whether the cluster may go.
func (r Removal) Question() Question {
	q := Question{Title: "Tear down " + r.Cluster + "?"}
	q.Add("goes", r.goes())
	q.Add("ends", r.ends())
	q.Facts = append(q.Facts, r.results()...)
	q.Add("stays", "logs, curves and the record of every run")
	q.Add("to keep", r.keep())
	if r.Spent >= 0.005 {
		q.Add("so far", units.USD(r.Spent))
	}
	if r.live() != "" || r.PerHour > nameFrom {
		q.Name = r.Cluster
	}
	return q
}

func (r Removal) goes() string {
	s := units.Count(r.Nodes, "node") + " of " + r.Provider
	if r.Instance != "" {
		s += " (" + strings.TrimSpace(r.Instance+" "+inPlace(r.Place)) + ")"
	}
	switch {
	case r.Nodes == 0:
		s = "what there is of it: it never came up whole"
	case r.Leased:
		s += ", with their disks and everything on them"
	default:
		s += ", with every process and file of dlwb on them"
	}
	if r.Forwards > 0 {
		s += "; " + units.Count(r.Forwards, "tunnel")
	}
	return s
}

// ends is the run that ends with the machines; empty when none does.
func (r Removal) ends() string {
	if run := r.live(); run != "" {
		return "the run that is going on: " + run
	}
	return ""
}

func inPlace(place string) string {
	if place == "" {
		return ""
	}
	return "in " + place
}

// results says of the newest run where its results are and what of them would
// be lost, and how many earlier runs would lose something.
func (r Removal) results() []Fact {
	if len(r.Runs) == 0 {
		return []Fact{{"not saved", "no run was launched on it: what its nodes hold was put there by hand, or by the set-up"}}
	}
	facts := r.Runs[0].facts()
	lost := 0
	for _, run := range r.Runs[1:] {
		if run.AtStake != "" {
			lost++
		}
	}
	if lost > 0 {
		facts = append(facts, Fact{"not saved", "the results of " + units.Count(lost, "earlier run")})
	}
	return facts
}

func (r RunResults) facts() []Fact {
	var facts []Fact
	if r.Files > 0 {
		facts = append(facts, Fact{"saved", units.Count(r.Files, "result file") + " of run " + r.Run + " in " + r.Dir})
	}
	if r.Lost != "" {
		facts = append(facts, Fact{"lost", r.Lost})
	}
	if r.AtStake != "" {
		facts = append(facts, Fact{"not saved", r.AtStake})
	}
	if facts == nil {
		facts = []Fact{{"results", "run " + r.Run + " wrote none that its profile names"}}
	}
	return facts
}

func (r Removal) keep() string {
	if r.PerHour == 0 {
		return "costs nothing"
	}
	s := units.PerHour(r.PerHour) + ", " + units.USD(r.PerHour*24) + " a day"
	if r.Stopped {
		s += " for the disks"
	}
	if !r.Ends.IsZero() && !r.Stopped {
		s += ", until " + units.Minute(r.Ends) + " at the latest: then the machines end by themselves"
	}
	return s
}

// StopQuestion asks whether the machines may be stopped.
func (r Removal) StopQuestion() Question {
	q := Question{Title: "Stop the machines of " + r.Cluster + "?"}
	what := units.Count(r.Nodes, "node") + " of " + r.Provider
	if r.Instance != "" {
		what = strings.TrimSpace(fmt.Sprintf("%d × %s %s", r.Nodes, r.Instance, inPlace(r.Place)))
	}
	q.Add("stops", what)
	q.Add("ends", r.ends())
	q.Add("kept", "the disks, with every file on them")
	q.Add("lost", "memory, and disks that belong to the machine (NVMe instance store)")
	costs := "the disks go on to cost"
	if r.Disks > 0 {
		costs = units.PerHour(r.Disks) + " for the disks"
	}
	q.Add("costs", costs+", instead of "+units.PerHour(r.PerHour)+", until it is torn down")
	q.Add("back", "dlwb start "+r.Cluster)
	if r.live() != "" {
		q.Name = r.Cluster
	}
	return q
}

// StopQuestion asks whether the run may be ended.
func (r RunInfo) StopQuestion() Question {
	q := Question{Title: "Stop run " + r.ID + "?"}
	q.Add("ends", units.Count(r.WorldSize, "rank")+" of "+r.Cluster+", running for "+units.Clock(r.Took(time.Now())))
	q.Add("stays", "the cluster, with its files and its price; logs and curves")
	return q
}

// CollectQuestion asks whether what was found without a record here may be
// removed; that list was shown before.
func CollectQuestion(o cloud.Orphan) Question {
	q := Question{Title: "Remove all of cluster " + o.Name + "?"}
	q.Add("goes", units.Count(len(o.Resources), "resource")+" in "+strings.Join(o.Regions, ", ")+", and everything on its disks")
	q.Add("made", "on "+o.Host+"; nothing here tells whether somebody still uses it")
	q.Add("to keep", Removal{PerHour: o.PerHour}.keep())
	if o.PerHour > nameFrom {
		q.Name = o.Name
	}
	return q
}
