package ui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/ui/chart"
	"github.com/dlwb/dlwb/ui/compare"
	"github.com/dlwb/dlwb/ui/home"
	"github.com/dlwb/dlwb/ui/nodes"
	"github.com/dlwb/dlwb/ui/plan"
	"github.com/dlwb/dlwb/ui/ranks"
	"github.com/dlwb/dlwb/ui/runs"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/shell"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/ui/wizard"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/trust"
)

// Model is the one real model of the screen. Everything below it is a plain
// struct that it owns.
type Model struct {
	ctx     context.Context
	bench   Bench
	opts    Options
	turns   shell.Turns
	clock   Clock
	table   []command
	screens []screen

	w, h       int
	now        time.Time
	styles     text.Styles
	foot       text.Foot
	spin       int
	mouse      bool
	colourless bool // the terminal shows no colour, or was asked not to
	ascii      bool // it shows ASCII only, or was asked to

	path    []place // where we are, and how we came there
	scroll  map[place]int
	home    home.List
	runs    runs.Table
	comp    compare.Comparison
	turn    int // counts looks at what exists
	plan    plan.View
	wiz     *wizard.Wizard // nil while no profile is being put together
	ses     *session.Session
	feed    Feed // the stream of ses; nil before it is there
	charts  chart.View
	heat    nodes.Heat
	gens    int // counts sessions
	dialogs []dialog
	ask     *prompt

	note  note
	doing map[int]wish // by number
	tasks int
	left  Result               // of the session that was left last
	gone  map[string]time.Time // clusters whose end was seen here: the list of what exists is older
}

// note is a short line above the footer.
type note struct {
	id          int
	level, text string
	refusal     bool // of a key that can do nothing where it was pressed
	notice      bool // that stands among the steps, too
}

// wish is something under way that a person asked for.
type wish struct {
	text  string
	since time.Time
}

// New makes the model. ctx ends everything that it waits for.
func New(ctx context.Context, bench Bench, opts Options) *Model {
	clock := opts.Clock
	if clock == nil {
		clock = realClock{ctx}
	}
	return &Model{
		ctx: ctx, bench: bench, opts: opts, turns: shell.NewTurns(opts.Continued), clock: clock, table: commands(), screens: screens(),
		now: clock.Now(), styles: text.NewStyles(opts.Theme != "light"), mouse: true,
		home:  home.New(opts.Here),
		ascii: opts.Glyphs == "ascii",
		path:  []place{atHome}, scroll: map[place]int{}, doing: map[int]wish{}, gone: map[string]time.Time{},
	}
}

// asksBackground reports whether the terminal is to say what the colours stand on.
func (m *Model) asksBackground() bool { return m.opts.Theme != "light" && m.opts.Theme != "dark" }

// Init begins what Options ask for.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.readHome(), m.tick(), m.turns.Await(m.ctx)}
	if m.asksBackground() {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	if !m.opts.NoSync {
		cmds = append(cmds, assumeSync)
	}
	switch {
	case m.opts.StartPath != "":
		cmds = append(cmds, m.begin(m.opts.StartPath))
	case m.opts.Run != nil:
		cmds = append(cmds, m.lookBack(*m.opts.Run))
	case m.opts.Cluster != "":
		cmds = append(cmds, m.look(m.opts.Cluster, "", true))
	}
	return tea.Batch(cmds...)
}

// assumeSync turns synchronized output on as if the terminal had said that it
// knows it. One that does not ignores the request; over ssh Bubble Tea does not
// ask, though there it matters most.
func assumeSync() tea.Msg {
	return tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset}
}

// Update takes one message. It does no input or output of its own.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	open := len(m.dialogs)
	cmd := m.handle(msg)
	if len(m.dialogs) > open {
		cmd = tea.Batch(cmd, m.heedLater())
	}
	return m, cmd
}

func (m *Model) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
	case tea.ColorProfileMsg:
		m.colourless = msg.String() == "Ascii" || msg.String() == "NoTTY"
	case tea.EnvMsg:
		if m.opts.Glyphs == "" || m.opts.Glyphs == "auto" {
			m.ascii = text.OnlyASCII(msg)
		}
		if m.asksBackground() && text.LightBackground(msg) { // until the terminal itself has answered
			m.styles, m.foot = text.NewStyles(false), text.Foot{}
		}
	case tea.BackgroundColorMsg:
		m.styles, m.foot = text.NewStyles(msg.IsDark()), text.Foot{}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		return m.paste(msg.Content)
	case tea.MouseWheelMsg:
		return m.wheel(msg.Mouse())
	case tea.MouseClickMsg:
		return m.click(msg.Mouse())
	case tea.MouseMotionMsg:
		m.pointed(msg.Mouse())
	case tea.MouseReleaseMsg:
		m.letGo(msg.Mouse())
	case tea.ResumeMsg:
		m.now = m.clock.Now()
		return m.readHome()
	case shell.Continued:
		return m.turns.Reclaim(m.ctx)
	case heeded:
		m.now = m.clock.Now()
	case ticked:
		m.now, m.spin = m.clock.Now(), m.spin+1
		return tea.Batch(m.tick(), m.compareRanks())
	case pruned:
		if msg.note == m.note.id {
			m.note.text = ""
		}
	default:
		return m.news(msg)
	}
	return nil
}

// news takes the messages that commands end in.
func (m *Model) news(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case homeRead:
		if msg.turn == m.turn {
			m.home.Set(msg.home, msg.err)
			return tea.Batch(m.homeLater(), m.runsAgain())
		}
	case homeDue:
		if msg.turn == m.turn {
			return m.readHome()
		}
	case tabled:
		m.runs.Take(msg.gen, msg.table, msg.err)
	case compare.Compared:
		return m.comp.TakeFacts(msg, m.now)
	case compare.Overlaid:
		return m.comp.TakeOverlay(msg)
	case compare.Readied:
		m.comp.TakeReady(msg)
	case planned:
		m.plan.Take(msg.path, msg.plan, msg.err)
	case trusted:
		return m.takeTrust(msg)
	case wizard.News:
		m.wiz.Take(msg)
	case wrote:
		return m.planWritten(msg)
	case started:
		return m.begun(msg)
	case subscribed:
		return m.hear(msg)
	case gathered:
		return m.take(msg)
	case feedDue:
		if m.ses != nil && m.ses.Gen == msg.gen && m.feed != nil {
			return m.readFeed(m.ses)
		}
	case logRead:
		return m.takeLog(msg)
	case ranks.Told:
		return m.takeRanks(msg)
	case metricAdded:
		if msg.done.err == nil && m.ses != nil {
			m.openDialog(m.keepDialog(msg.name, msg.regex))
		}
		return m.finish(msg.done)
	case endRead:
		m.takeEnd(msg)
	case browserless:
		return m.noBrowser(msg.url)
	case addressMade:
		return m.useAddress(msg)
	case listed:
		return m.askForwards(msg)
	case questioned:
		m.takeQuestion(msg)
	case taskDone:
		return m.finish(msg)
	}
	return nil
}

// begin starts a profile and shows its steps from the first moment.
func (m *Model) begin(path string) tea.Cmd {
	m.openSession("")
	m.ses.ProfilePath = path
	m.goTo(atSteps)
	return m.start(path)
}

// begun learns which cluster a started profile became.
func (m *Model) begun(msg started) tea.Cmd {
	s := m.ses
	if s == nil || s.ProfilePath != msg.path || s.Cluster != "" {
		return nil
	}
	if u := trust.Of(msg.err); u != nil { // it has changed since its plan was shown
		m.path = m.path[:1]
		return tea.Batch(m.showPlan(msg.path), m.askTrust(msg.path, u))
	}
	if msg.err != nil {
		f := session.FaultOf("start "+msg.path, msg.err)
		s.State.Failed = &f
		return nil
	}
	s.Cluster, s.State.Cluster = msg.cluster, msg.cluster
	return m.subscribe(s, false)
}

// look opens a cluster. Its training is shown when it has some.
func (m *Model) look(cluster, profilePath string, running bool) tea.Cmd {
	m.openSession(cluster)
	m.ses.ProfilePath = profilePath
	m.goTo(atSteps)
	if running {
		m.path[len(m.path)-1] = atTrain
	}
	return m.subscribe(m.ses, true)
}

// lookBack opens the record of a past run.
func (m *Model) lookBack(r event.RunInfo) tea.Cmd {
	m.openSession(r.Cluster)
	m.ses.Past, m.ses.Follow = true, false
	m.goTo(atTrain)
	return m.readRun(m.ses, r.ID)
}

// openSession looks at something else: charts and heatmap begin as they are.
func (m *Model) openSession(cluster string) {
	m.leaveSession()
	m.gens++
	m.ses = session.New(m.gens, cluster, m.now)
	m.charts, m.heat = chart.View{Of: m.ses}, nodes.Heat{}
}

// leaveSession ends the stream of what was looked at. News that is still on
// its way carries the old number and is dropped.
func (m *Model) leaveSession() {
	m.keepResult()
	if m.feed != nil {
		m.feed.Close()
	}
	m.ses, m.feed, m.charts = nil, nil, chart.View{}
}

func (m *Model) hear(msg subscribed) tea.Cmd {
	s := m.ses
	if s == nil || s.Gen != msg.gen {
		if msg.feed != nil {
			msg.feed.Close()
		}
		return nil
	}
	if msg.err != nil {
		s.Lost = oneLine(msg.err)
		return nil
	}
	m.feed = msg.feed
	return m.readFeed(s)
}

// take folds a batch of events in, and follows what happens until a person
// has chosen where to be.
func (m *Model) take(msg gathered) tea.Cmd {
	s := m.ses
	if s == nil || s.Gen != msg.gen {
		return nil
	}
	if msg.err != nil {
		s.Lost = oneLine(msg.err)
		return nil
	}
	m.now = m.clock.Now()
	if s.Past { // its whole record, maybe once more
		s.State = session.NewState(s.Cluster)
	}
	notices := len(s.State.Notices)
	if s.Apply(msg.events) {
		m.charts.Anew()
	}
	if !s.Past && s.State.Phase() == event.PhaseGone {
		m.gone[s.Cluster] = s.State.LastAt
	}
	m.moveAlong(s)
	cmds := []tea.Cmd{m.readLogs(), m.tryAgain(), m.compareRanks()}
	if !msg.ended {
		cmds = append(cmds, m.feedLater(s))
	}
	if n := s.State.Notices; len(n) > notices && !s.Past && m.now.Sub(s.State.NoticeAt) < noteStays {
		last := n[len(n)-1]
		cmds = append(cmds, m.say(last.Level, sign.WithNext(last.Text, last.Next)))
		m.note.notice = true
	}
	return tea.Batch(cmds...)
}

// moveAlong shows the screen that the present state calls for.
func (m *Model) moveAlong(s *session.Session) {
	here := m.here()
	switch {
	case !s.Follow:
	case s.State.Receipt != nil && s.State.Receipt.Proven && s.State.Run == "" && s.Failed() != nil:
		// Nothing ran: why not matters more than what is gone, and says both.
		if here.inSession() {
			m.path[len(m.path)-1] = atSteps
		}
	case s.State.Receipt != nil && here.inSession():
		m.path[len(m.path)-1] = atReceipt
	case here == atReceipt && s.State.Receipt == nil, here == atTrain && s.State.Launched == nil && len(s.State.Steps) > 0:
		m.path[len(m.path)-1] = atSteps
	case here == atSteps && s.State.Launched != nil && s.State.Phase() != event.PhaseStopping:
		m.path[len(m.path)-1] = atTrain
	}
}

func (m *Model) takeLog(msg logRead) tea.Cmd {
	s := m.ses
	if s == nil || s.Gen != msg.gen || s.State.Run != msg.run {
		return nil
	}
	t := s.Output(msg.rank)
	t.Reading = false
	if msg.err != nil {
		return m.say("warning", "can't read the log of "+session.RankName(msg.rank)+": "+oneLine(msg.err))
	}
	t.Log.Append(msg.bytes)
	t.Off += int64(len(msg.bytes))
	if len(msg.bytes) == 0 {
		// The announced size was not there to read: believe the reader, or
		// this would ask for ever.
		s.State.LogSizes[msg.rank] = t.Off
	}
	return m.readLogs()
}

// finish ends a wish: what it said, or a dialog with what went wrong.
func (m *Model) finish(msg taskDone) tea.Cmd {
	text := m.doing[msg.task].text
	delete(m.doing, msg.task)
	if msg.err != nil {
		m.dialogs = append(m.dialogs, m.faultDialog(session.FaultOf(text, msg.err)))
		return nil
	}
	cmds := []tea.Cmd{m.say("info", msg.text)}
	if msg.url != "" && m.opts.OpenURL != nil {
		cmds = append(cmds, m.openURL(msg.url))
	}
	cmds = append(cmds, m.reread())
	if s := m.ses; s != nil && s.Past && s.State.Run != "" { // nothing else tells what is new of it
		cmds = append(cmds, m.readRun(s, s.State.Run))
	}
	return tea.Batch(cmds...)
}
