package ui

import (
	"slices"

	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/internal/job"
	"github.com/dlwb/dlwb/ui/logview"
)

// command is one row of the key table.
type command struct {
	bind key.Binding // its keys, of which the first is shown, and its name
	help string      // a sentence
	at   place       // where it works
	foot int         // its rank in the footer; 0: not there
	show place       // the screens whose footer has it; 0: all of at
	acts bool        // changes the cluster: refused when read-only
	// needs is what the nodes must be able to do; where they can't, the key is
	// grey, and says why and what to do about it.
	needs job.Capability

	can func(*Model) string // why not now; empty when it can be done
	do  func(*Model) tea.Cmd
}

// on binds a command's name to its keys; one without keys is in the palette only.
func on(name string, keys ...string) key.Binding {
	first := ""
	if len(keys) > 0 {
		first = keys[0]
	}
	return key.NewBinding(key.WithKeys(keys...), key.WithHelp(first, name))
}

// name is what the footer and the palette call it.
func (c *command) name() string { return c.bind.Help().Desc }

// inFooter reports whether the footer of a screen has the command.
func (c *command) inFooter(at place) bool {
	return c.foot > 0 && c.at&at != 0 && (c.show == 0 || c.show&at != 0)
}

// commands is the key table: dispatch, footer, help, palette and docs/keys.md are
// all made from it. Lower-case keys look, capital keys act on the cluster.
func commands() []command {
	all := lookCommands()
	for _, sc := range screens() {
		if sc.keys != nil {
			all = append(all, sc.keys()...)
		}
	}
	return slices.Concat(all, actCommands(), moveCommands())
}

func lookCommands() []command {
	return []command{
		{bind: on("open", "enter"), help: "open what is picked", at: atHome | atForwards | atRuns, foot: 1,
			can: (*Model).cannotOpen, do: (*Model).openPicked},
		{bind: on("logs", "l"), help: "output of every rank", at: inSession &^ atLogs, foot: 3, show: atTrain | atSteps | atReceipt,
			can: (*Model).noRun, do: goer(atLogs)},
		{bind: on("nodes", "n"), help: "every node and GPU in full", at: inSession &^ (atLogs | atNodes), foot: 4, show: atTrain | atSteps, needs: job.Telemetry, do: goer(atNodes)},
		{bind: on("forwards", "f"), help: "open tunnels and their addresses", at: inSession &^ (atLogs | atForwards), do: goer(atForwards)},
		{bind: on("steps", "s"), help: "what was done, how long it took, what failed", at: inSession &^ atSteps, do: goer(atSteps)},
		{bind: on("train", "t"), help: "charts, nodes and output together", at: inSession &^ atTrain, foot: 5,
			can: (*Model).noRun, do: goer(atTrain)},
		{bind: on("receipt", "x"), help: "the proof that nothing is left", at: inSession &^ atReceipt, foot: 6, show: atTrain | atSteps,
			can: (*Model).noReceipt, do: goer(atReceipt)},
		{bind: on("sweep", "w"), help: "the trials of the sweep, the best first", at: inSession &^ (atSweep | atLogs), can: (*Model).noSweep, do: goer(atSweep)},
		{bind: on("follow", "f"), help: "follow the end of the log, or hold it still", at: atLogs, foot: 2, do: (*Model).toggleFollow},
		{bind: on("wrap", "w"), help: "wrap long lines, or cut them", at: atLogs, foot: 3, do: (*Model).toggleWrap},
		{bind: on("search", "/"), help: "search the log, with a count", at: atLogs, foot: 1, do: (*Model).askSearch},
		{bind: on("next match", "n"), help: "next match, downwards", at: atLogs, foot: 1, can: (*Model).noSearch, do: (*Model).nextMatch},
		{bind: on("previous match", "p"), help: "previous match, upwards", at: atLogs, foot: 1, can: (*Model).noSearch, do: (*Model).prevMatch},
		{bind: on("filter", "/"), help: "filter the list by a word", at: atHome, foot: 4, do: (*Model).askFilter},
		{bind: on("next rank", "tab"), help: "output of the next rank; shift+tab goes back, 0–9 picks one", at: atTrain | atLogs, foot: 6, show: atLogs,
			can: (*Model).noRun, do: (*Model).nextRank},
		{bind: on("previous rank", "shift+tab"), help: "output of the previous rank", at: atTrain | atLogs, can: (*Model).noRun, do: (*Model).prevRank},
		{bind: on("close", "d"), help: "close the picked tunnel", at: atForwards, foot: 2, can: (*Model).noForward, do: (*Model).closePicked},
		{bind: on("copy", "y"), help: "copy what matters here to the clipboard", at: everywhere, do: (*Model).copyThis},
		{bind: on("mouse", "m"), help: "free the mouse for selecting text, or take it back", at: everywhere, do: (*Model).toggleMouse},
		{bind: on("palette", ":"), help: "everything that can be done, by name", at: everywhere, do: (*Model).openPalette},
		{bind: on("keys", "?"), help: "the keys of where you are", at: everywhere &^ atHelp, foot: 9, do: goer(atHelp)},
		{bind: on("back", "esc"), help: "one step back", at: everywhere, foot: 8, can: (*Model).cannotBack, do: (*Model).back},
		{bind: on("quit", "q"), help: "quit; only at home. Clusters go on", at: everywhere, foot: 8, can: (*Model).cannotQuit, do: (*Model).quit},
		{bind: on("suspend", suspendKey), help: "put dlwb aside; fg in the shell comes back. What runs goes on", at: everywhere,
			can: (*Model).cannotSuspend, do: func(m *Model) tea.Cmd { return m.turns.Suspend() }},
		{bind: on("quit from anywhere", "ctrl+c"), help: "quit; asks when something goes on. Clusters go on", at: everywhere, do: (*Model).askQuit},
	}
}

func actCommands() []command {
	return []command{
		{bind: on("new", "N"), help: "a new experiment: put its profile together; it is written when you say so", at: atHome, foot: 5, acts: true,
			do: (*Model).newExperiment},
		{bind: on("run", "R"), help: "show the plan of the profile; on the plan, start it", at: everywhere &^ (atHelp | atForwards | atNew | atRuns | atCompare), foot: 2, show: atHome | atPlan | atSteps | atTrain | atReceipt, acts: true,
			can: (*Model).cannotRun, do: (*Model).run},
		{bind: on("Jupyter", "J"), help: "start Jupyter on node 0 and open it here", at: inSession, foot: 6, show: atTrain | atForwards, acts: true, needs: job.Dial,
			can: (*Model).noCluster, do: forwarder("jupyter")},
		{bind: on("TensorBoard", "T"), help: "start TensorBoard on node 0 and open it here", at: inSession, acts: true, needs: job.Dial,
			can: (*Model).noCluster, do: forwarder("tensorboard")},
		{bind: on("shell", "S"), help: "a shell on a node; exit comes back here", at: inSession, acts: true, needs: job.Shell,
			can: (*Model).noCluster, do: (*Model).shell},
		{bind: on("forward", "F"), help: "forward ports of a node to this machine, or all that the profile lists", at: inSession, acts: true, needs: job.Dial,
			can: (*Model).noCluster, do: (*Model).askForward},
		{bind: on("pull results"), help: "bring the results of the run home now", at: inSession, acts: true, needs: job.Files,
			can: (*Model).noLiveRun, do: (*Model).pull},
		{bind: on("stop the run"), help: "stop the run and keep the cluster", at: inSession, acts: true,
			can: (*Model).notRunning, do: (*Model).askStop},
		{bind: on("extend", "E"), help: "let the machines live an hour longer; asks first", at: inSession, foot: 6, show: atTrain | atSteps, acts: true,
			can: (*Model).cannotExtend, do: (*Model).askExtend},
		{bind: on("stop the machines"), help: "stop the machines and keep their disks; asks first", at: inSession, acts: true, needs: job.Suspend,
			can: (*Model).cannotStopMachines, do: (*Model).askStopMachines},
		{bind: on("start the machines"), help: "start machines that were stopped; asks first", at: inSession, acts: true, needs: job.Suspend,
			can: (*Model).cannotStartMachines, do: (*Model).askStartMachines},
		{bind: on("tear down", "X"), help: "remove the cluster and prove it; asks first", at: inSession | atHome, foot: 7, show: atHome | atSteps | atTrain | atReceipt, acts: true,
			can: (*Model).nothingToRemove, do: (*Model).askTeardown},
	}
}

func moveCommands() []command {
	mv := func(keys []string, name, help string, d func(*Model) int) command {
		return command{bind: on(name, keys...), help: help, at: everywhere,
			do: func(m *Model) tea.Cmd { return m.move(d(m)) }}
	}
	side := func(arrow, help string, turn func(*logview.View, int)) command {
		return command{bind: on(arrow, arrow), help: help, at: atLogs,
			do: func(m *Model) tea.Cmd { turn(m.ses.View, sideways); return nil }}
	}
	return []command{
		side("left", "move long lines back", (*logview.View).Left),
		side("right", "see more of long lines", (*logview.View).Right),
		mv([]string{"up", "k"}, "up", "one line up", func(*Model) int { return -1 }),
		mv([]string{"down", "j"}, "down", "one line down", func(*Model) int { return 1 }),
		mv([]string{"pgup", "b"}, "page up", "one page up", func(m *Model) int { return -m.page() }),
		mv([]string{"pgdown"}, "page down", "one page down", func(m *Model) int { return m.page() }),
		{bind: on("page down", "space"), help: "one page down", at: everywhere &^ atRuns, do: func(m *Model) tea.Cmd { return m.move(m.page()) }},
		mv([]string{"home", "g"}, "top", "to the top", func(*Model) int { return -far }),
		mv([]string{"end", "e"}, "end", "to the end", func(*Model) int { return far }),
	}
}

// suspendKey is what the terminal itself suspends programs by.
const suspendKey = "ctrl+z"

func (m *Model) cannotSuspend() string { return m.opts.CannotSuspend }

// sideways is how far an arrow moves in long lines.
const sideways = 16

// far is further than any list or log goes.
const far = 1 << 40

// refusal says why a command can't be carried out here and now.
func (m *Model) refusal(c *command) string {
	switch {
	case c.acts && m.opts.ReadOnly:
		return "started with --read-only"
	case m.lack(c) != nil:
		return m.lack(c).String()
	case c.can != nil:
		return c.can(m)
	}
	return ""
}

// lack is what keeps the nodes of the cluster that is shown from what a command
// needs; nil: nothing does.
func (m *Model) lack(c *command) *job.Lack {
	if m.ses == nil || m.ses.Past || c.needs == "" || c.at&inSession == 0 {
		return nil
	}
	return job.LackOf(m.ses.State.Lacks, c.needs)
}

// press is a key press by its name.
type press string

// String implements fmt.Stringer, as key.Matches wants it.
func (p press) String() string { return string(p) }

// find looks a key up among the commands of the present screen.
func (m *Model) find(pressed string) *command {
	for i := range m.table {
		c := &m.table[i]
		if c.at&m.here() == 0 {
			continue
		}
		if key.Matches(press(pressed), c.bind) {
			return c
		}
	}
	return nil
}

// carryOut does what a command says, or says why not.
func (m *Model) carryOut(c *command) tea.Cmd {
	if why := m.refusal(c); why != "" {
		told := m.say("warning", c.name()+", not now: "+why)
		m.note.refusal = true
		return told
	}
	if m.note.refusal { // what was refused there is nothing about what comes now
		m.note.text = ""
	}
	return c.do(m)
}

// key dispatches one key press: what asks a question gets it first.
func (m *Model) key(k tea.KeyPressMsg) tea.Cmd {
	pressed := k.String()
	if pressed == suspendKey { // whatever asks: it still asks afterwards
		return m.carryOut(m.find(pressed))
	}
	if n := len(m.dialogs); n > 0 {
		return m.dialogs[n-1].key(m, k)
	}
	if m.ask != nil {
		return m.ask.key(m, k)
	}
	if c := m.find(pressed); c != nil {
		return m.carryOut(c)
	}
	if sc := m.screen(); sc.digit != nil && len(pressed) == 1 && pressed[0] >= '0' && pressed[0] <= '9' {
		return sc.digit(m, int(pressed[0]-'0'))
	}
	return nil
}
