package ui

import (
	"context"
	"io"
	"os"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/wizard"
	"github.com/dlwb/dlwb/workbench/cleanup"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/planning"
)

type (
	// PlanView is a plan as the screen shows it.
	PlanView = planning.Plan
	// CodePlan is what a plan would copy to the nodes.
	CodePlan = planning.Code
	// FieldFault is what is wrong with one value of a profile.
	FieldFault = wizard.FieldFault
)

// Bench is what the screen drives. The workbench is one; tests and pictures
// have another.
type Bench interface {
	// Home says what exists.
	Home(ctx context.Context) (event.Home, error)
	// Plan reads a profile and says what it would do. It changes nothing.
	Plan(ctx context.Context, path string) (*PlanView, error)
	// Trust trusts a profile, if it is still the one that has the key.
	Trust(ctx context.Context, path, key string) error
	// Start begins everything from machines to results and returns at once.
	Start(ctx context.Context, path string) (cluster string, err error)
	// Attach begins watching a cluster that is there.
	Attach(ctx context.Context, cluster string) error
	// Subscribe gives the history of a cluster's present life, then its news.
	Subscribe(cluster string) Feed
	// RunEvents gives everything that is kept of a past run.
	RunEvents(ctx context.Context, run string) ([]event.Event, error)
	// ReadLog reads a rank's stored log; io.EOF at its present end. Rank -1-i
	// is the launcher's own log on node i.
	ReadLog(run string, rank int, off int64, p []byte) (int, error)
	// AddMetric reads the whole output of a run by one more expression, and
	// all that it still prints; it says how many values were found so far.
	AddMetric(ctx context.Context, run, name, regex string) (values int, err error)
	// Stop ends a run and keeps the cluster.
	Stop(ctx context.Context, run string) error
	// Down removes a cluster and proves it; the proof comes as an event.
	Down(ctx context.Context, cluster string) error
	// Forward opens a tunnel to "jupyter", "tensorboard" or a port of node 0 ("8265",
	// "8265/http"), or of another node ("node1:8265"), or finds it with a fresh address.
	Forward(ctx context.Context, cluster, what string) (event.ForwardOpened, error)
	// ForwardAll opens several at once, and returns those that opened with the
	// errors of the others.
	ForwardAll(ctx context.Context, cluster string, what []string) ([]event.ForwardOpened, error)
	// ListedForwards are those that the cluster's profile lists.
	ListedForwards(cluster string) ([]string, error)
	// CloseForward closes the tunnel that listens on a local port.
	CloseForward(cluster string, localPort int)
	// ShellCommand is a command that gives the terminal to a shell on a node.
	ShellCommand(cluster string, node int) *exec.Cmd
	// Pull brings the results of a run home, into a directory; empty: where
	// they go by themselves.
	Pull(ctx context.Context, run, to string) (event.ResultsFetched, error)
	// Extend moves the end of the lease that a cluster's machines hold.
	Extend(ctx context.Context, cluster string, by time.Duration) error
	// StopMachines stops a cluster's machines and keeps their disks;
	// StartMachines starts them again.
	StopMachines(ctx context.Context, cluster string) error
	StartMachines(ctx context.Context, cluster string) error
	Asker
	wizard.Drafter
	Recorder
}

// Asker says what is to be asked before something is destroyed. It reads what
// is on record and changes nothing.
type Asker interface {
	// AskDown asks whether a cluster may be removed.
	AskDown(ctx context.Context, cluster string) (event.Question, error)
	// AskStop asks whether a run may be ended.
	AskStop(ctx context.Context, run string) (event.Question, error)
	// AskStopMachines asks whether the machines of a cluster may be stopped.
	AskStopMachines(ctx context.Context, cluster string) (event.Question, error)
}

// Recorder is what keeps runs and tells them apart.
type Recorder interface {
	// RunTable lists runs as a question asks for them.
	RunTable(q history.Query) (history.Table, error)
	// Compare says what differs between runs, and what they came to.
	Compare(runs []string) (history.Comparison, error)
	// Overlays are series of several runs, by their names.
	Overlays(runs, names []string) ([]history.Overlay, error)
	// SetNote writes a note to a run; an empty one removes it.
	SetNote(run, note string) error
	// PlanCleanup says what the removal of runs comes to; it changes nothing.
	PlanCleanup(sel cleanup.Selection) (cleanup.Found, error)
	// CleanUp removes it.
	CleanUp(c cleanup.Found) error
	// SetStar gives a run a star, or takes it away.
	SetStar(run string, starred bool) error
}

// Feed is a stream of events as its reader sees it.
type Feed interface {
	// Next waits for events and returns all that wait; nil at the end.
	Next(ctx context.Context) []event.Event
	Close()
}

// Clock tells the time and wakes the model up. Tests and pictures have one
// that stands still.
type Clock interface {
	Now() time.Time
	Tick(d time.Duration, wake func(time.Time) tea.Msg) tea.Cmd
}

// Options say how the screen begins.
type Options struct {
	Cluster   string                 // open the screen of this cluster at once
	StartPath string                 // start this profile at once
	ReadOnly  bool                   // look, change nothing
	Theme     string                 // "auto", "dark" or "light"
	Glyphs    string                 // "auto", "unicode" or "ascii"
	OpenURL   func(url string) error // opens a browser; nil where there is none
	PID       int                    // of this process, as lists name who watches
	Input     io.Reader              // where keys come from; nil: the terminal
	Run       *event.RunInfo         // open this past run at once
	Here      string                 // the profile of the present directory; empty when it has none

	CannotSuspend string           // why Ctrl-Z can't put the program aside; empty: it can
	Continued     <-chan os.Signal // has a value whenever this process goes on after it was stopped; nil: never
	NoSync        bool             // leave synchronized output to Bubble Tea, which does not look for it over ssh

	Clock Clock                     // nil: the real one
	Feed  func(cluster string) Feed // nil: Bench.Subscribe
}

// Result is what is left to say when the screen is closed.
type Result struct {
	Cluster string             // the cluster looked at last; empty for none
	Run     string             // its run
	Ended   *event.RunEnded    // how the run ended; nil while it goes on
	Receipt *event.ReceiptMade // the proof of its teardown; nil while it exists
	Running []string           // clusters that go on without us
}

// realClock is the time of this machine. Unlike tea.Tick its timers end with
// the screen, so that nothing of it is left behind.
type realClock struct{ ctx context.Context }

// Now implements Clock.
func (realClock) Now() time.Time { return time.Now() }

// Tick implements Clock.
func (c realClock) Tick(d time.Duration, wake func(time.Time) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case at := <-t.C:
			return wake(at)
		case <-c.ctx.Done():
			return nil
		}
	}
}
