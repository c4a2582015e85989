package ui

import (
	"fmt"
	"os"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/home"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/shell"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// oneLine is an error as one line for the screen.
func oneLine(err error) string { return text.Word(err.Error()) }

// The reasons why something can't be done now. Each is a clause that fits
// behind "can't …: ".

func (m *Model) noCluster() string {
	switch {
	case m.ses == nil:
		return "no cluster is open"
	case m.ses.Past:
		return "this is a past run"
	case !m.ses.State.Up:
		return "the nodes are not up yet"
	}
	switch m.ses.State.Phase() {
	case event.PhaseGone:
		return "the cluster is gone"
	case event.PhaseStopping:
		return "the cluster is being torn down"
	case event.PhaseUnresolved:
		return "its teardown is not finished"
	case event.PhaseStopped:
		return "its machines are stopped; the palette (:) starts them"
	}
	return ""
}

func (m *Model) noRun() string {
	if m.ses == nil || m.ses.State.Run == "" {
		return "nothing was launched yet"
	}
	return ""
}

func (m *Model) noLiveRun() string {
	if why := m.noRun(); why != "" {
		return why
	}
	return m.noCluster()
}

func (m *Model) notRunning() string {
	if m.ses == nil || m.ses.Past || m.ses.State.Phase() != event.PhaseRunning {
		return "no run is going on"
	}
	return ""
}

// runPath is the profile that R is about.
func (m *Model) runPath() string {
	switch {
	case m.here() == atHome:
		return m.home.Path()
	case m.here() == atPlan:
		return m.plan.Path
	case m.ses != nil:
		return m.ses.Profile()
	}
	return ""
}

func (m *Model) cannotRun() string {
	switch {
	case m.runPath() == "" && m.here() == atHome:
		return "pick a profile first"
	case m.runPath() == "":
		return "its profile is not known here"
	case m.here() == atPlan && m.plan.Plan == nil && m.plan.Untrusted == nil:
		return "there is no plan yet"
	case m.ses != nil && m.here().inSession() && m.ses.State.Phase() == event.PhaseRunning:
		return "a run is going on"
	case m.ses != nil && m.here().inSession() && m.ses.State.Phase() == event.PhaseStopping:
		return "the cluster is being torn down"
	case m.ses != nil && m.here().inSession() && m.ses.State.Phase() == event.PhaseUnresolved:
		return "its teardown is not finished"
	case m.ses != nil && m.here().inSession() && m.ses.Failed() == nil && m.ses.State.AnyStep(session.Active):
		return "it is under way"
	}
	return ""
}

// run shows the plan first. On the plan it starts it, and after a failure it
// tries again at once: that plan was seen already. A profile that is not trusted
// has no plan; there it asks.
func (m *Model) run() tea.Cmd {
	path := m.runPath()
	if m.here() == atPlan && m.plan.Untrusted != nil {
		return m.askTrust(path, m.plan.Untrusted)
	}
	retry := m.here() == atSteps && m.ses.Failed() != nil
	if m.here() == atPlan || retry {
		m.path = m.path[:1]
		return m.begin(path)
	}
	return m.showPlan(path)
}

// shell hands the terminal over. With one node there is nothing to ask.
func (m *Model) shell() tea.Cmd {
	if len(m.ses.State.Nodes) <= 1 {
		return m.shellOn(0)
	}
	m.ask = &prompt{label: "shell on node", line: line.New("0"), done: func(m *Model, text string) tea.Cmd {
		var n int
		if _, err := fmt.Sscan(strings.TrimPrefix(text, "node"), &n); err != nil || n < 0 || n >= len(m.ses.State.Nodes) {
			return m.say("warning", fmt.Sprintf("there is no node %q; this cluster has 0 to %d", text, len(m.ses.State.Nodes)-1))
		}
		return m.shellOn(n)
	}}
	return nil
}

func (m *Model) shellOn(node int) tea.Cmd {
	c := m.bench.ShellCommand(m.ses.Cluster, node)
	if c == nil {
		return m.say("warning", "no shell can be opened on "+session.NodeName(node))
	}
	s := shell.Watch(c, os.Stderr)
	return tea.ExecProcess(c, func(err error) tea.Msg {
		return taskDone{task: -1, text: s.Ended(session.NodeName(node), err)}
	})
}

func (m *Model) pull() tea.Cmd {
	run := m.ses.State.Run
	return m.task("bring the results home", func() (string, string, error) {
		r, err := m.bench.Pull(m.ctx, run, "")
		if err != nil {
			return "", "", err
		}
		return event.SizeText(r.Files, r.Bytes) + " in " + text.Word(r.Dir), "", nil
	})
}

func (m *Model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		return m.say("info", "the mouse scrolls and picks again")
	}
	return m.say("info", "the mouse is free for selecting text; m takes it back")
}

func (m *Model) cannotQuit() string {
	if m.here() != atHome {
		return "esc goes back, q quits at home, ctrl+c from anywhere"
	}
	return ""
}

// quit ends the program and leaves the session: frames are drawn until the
// program is gone, and its result is made from it.
func (m *Model) quit() tea.Cmd { return tea.Quit }

// copyWidth is how wide lines are that are copied to be run.
const copyWidth = 1000

// copyThis copies what matters on this screen, as plain text.
func (m *Model) copyThis() tea.Cmd {
	if m.here() == atForwards && m.noForward() == "" {
		return m.refreshed((*Model).copyTo)
	}
	return m.copyTo(m.copyText())
}

func (m *Model) copyTo(txt string) tea.Cmd {
	txt = strings.TrimSpace(sanitize.Plain(txt))
	if txt == "" {
		return m.say("warning", "there is nothing to copy here")
	}
	return tea.Batch(toClipboard(txt), m.say("info", "copied "+text.Plural(strings.Count(txt, "\n")+1, "line")))
}

// toClipboard is the one way there: what is copied is pasted into a shell, and
// must be no more than what was seen.
func toClipboard(text string) tea.Cmd { return tea.SetClipboard(sanitize.Plain(text)) }

func (m *Model) cannotOpen() string {
	switch m.here() {
	case atForwards:
		return m.noForward()
	case atRuns:
		return m.noPickedRun()
	}
	switch it := m.home.Pick(); {
	case it == home.Item{}:
		return "nothing is picked"
	case it.Profile != nil && it.Profile.Fault != "":
		return text.Word(it.Profile.Fault)
	}
	return ""
}

func (m *Model) openPicked() tea.Cmd {
	if m.here() == atForwards {
		return m.refreshed((*Model).openAddress)
	}
	if m.here() == atRuns {
		return m.openRun(m.runs.Pick())
	}
	switch it := m.home.Pick(); {
	case it.Cluster != nil:
		return m.look(it.Cluster.Name, it.Cluster.ProfilePath, it.Cluster.Run != "")
	case it.Profile != nil:
		return m.showPlan(it.Profile.Path)
	case it.Run != nil:
		return m.openRun(it.Run)
	}
	return nil
}

// openRun shows a run where it goes on, or its record.
func (m *Model) openRun(r *event.RunInfo) tea.Cmd {
	if c := m.home.ClusterOf(r); c != nil {
		return m.look(c.Name, c.ProfilePath, true)
	}
	return m.lookBack(*r)
}
