package ui

import (
	"fmt"
	"sort"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/workbench"
)

// dialog asks something over the screen. The topmost one gets the keys.
type dialog interface {
	draw(m *Model, w, h int) block
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
}

// typedAhead is how long a question ignores keys: they were meant for what
// was there before it.
const typedAhead = 400 * time.Millisecond

// choice asks for one of a few answers. The first is the harmless one and has
// the focus.
type choice struct {
	title   string
	body    func(m *Model, w int) []string
	answers []answer
	focus   int
	opened  time.Time
	swallow bool
}

type answer struct {
	name string
	do   func(m *Model) tea.Cmd // nil: only closes
}

func (m *Model) openDialog(d dialog) { m.dialogs = append(m.dialogs, d) }

func (m *Model) closeDialog() { m.dialogs = m.dialogs[:len(m.dialogs)-1] }

func (c *choice) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	if c.swallow && m.clock.Now().Sub(c.opened) < typedAhead {
		return nil
	}
	switch k.String() {
	case "esc":
		m.closeDialog()
	case "ctrl+c":
		m.closeDialog()
		if c.title == quitTitle { // pressed twice: meant
			return m.quit()
		}
		return m.askQuit()
	case "left", "shift+tab", "h", "up", "k":
		c.focus = (c.focus + len(c.answers) - 1) % len(c.answers)
	case "right", "tab", "l", "down", "j":
		c.focus = (c.focus + 1) % len(c.answers)
	case "y":
		return m.say("info", "arrows pick an answer, enter gives it, esc leaves everything as it is")
	case "enter":
		m.closeDialog()
		if do := c.answers[c.focus].do; do != nil {
			return do(m)
		}
	}
	return nil
}

func (c *choice) draw(m *Model, w, h int) block {
	inner := clamp(w-8, 1, 64)
	lines := []string{m.styles.Strong.of(cut(c.title, inner)), ""}
	body := c.body(m, inner)
	if room := h - 7; len(body) > room && room > 0 {
		body = append(body[:room-1:room-1], m.styles.Dim.of("…"))
	}
	lines = append(lines, body...)
	lines = append(lines, "", c.buttons(m))
	return boxed(m, lines, inner)
}

// buttons draws the answers. The focus is a sign and a reversal, not a colour.
func (c *choice) buttons(m *Model) string {
	parts := make([]string, len(c.answers))
	for i, a := range c.answers {
		if i == c.focus {
			parts[i] = m.styles.Cursor.of("› " + a.name + " ")
		} else {
			parts[i] = m.styles.Dim.of("  " + a.name + " ")
		}
	}
	return strings.Join(parts, "  ")
}

// boxed sets lines into a thin frame with air on every side.
func boxed(m *Model, lines []string, inner int) block {
	edge := m.styles.Faint.of
	w := inner + 6
	out := []string{edge("╭" + strings.Repeat("─", w-2) + "╮")}
	row := func(s string) { out = append(out, edge("│")+"  "+fit(s, inner)+"  "+edge("│")) }
	for _, l := range lines {
		row(l)
	}
	out = append(out, edge("╰"+strings.Repeat("─", w-2)+"╯"))
	return block{w: w, lines: out}
}

// faultDialog shows what went wrong with a wish.
func (m *Model) faultDialog(f workbench.Fault) dialog {
	return &choice{
		title:   "That did not work",
		body:    func(m *Model, w int) []string { return m.drawFault(f, w) },
		answers: []answer{{name: "Close"}},
		opened:  m.clock.Now(), swallow: true,
	}
}

// askTeardown asks once: what goes, what is not saved, what it costs to keep.
func (m *Model) askTeardown() tea.Cmd {
	t := m.teardownTarget()
	answers := []answer{{name: "Cancel"}, {name: "Tear down", do: func(m *Model) tea.Cmd { return m.tearDown(t.name) }}}
	m.openDialog(&choice{
		title:   "Tear down " + t.name + "?",
		body:    t.text,
		answers: answers,
		opened:  m.clock.Now(), swallow: true,
	})
	return nil
}

// target is what a teardown would remove.
type target struct {
	name, provider, run string
	nodes               int
	price               float64
	running, saved      bool
	results             *workbench.ResultsFetched
	forwards            int
}

func (m *Model) teardownTarget() target {
	if m.here() == atHome {
		c := m.home.pickedCluster()
		return target{name: c.Name, provider: c.Provider, run: c.Run, nodes: len(c.Nodes),
			price: c.PricePerHour, running: c.Phase == workbench.PhaseRunning}
	}
	s := m.ses.st
	return target{name: m.ses.cluster, provider: s.provider, run: s.run, nodes: len(s.nodes), price: s.bill.perHour,
		running: s.phase() == workbench.PhaseRunning, saved: s.results != nil, results: s.results,
		forwards: len(s.forwards)}
}

func (t target) text(m *Model, w int) []string {
	var out []string
	add := func(label, text string) {
		for i, l := range wrap(text, max(w-12, 1)) {
			if i > 0 {
				label = ""
			}
			out = append(out, m.styles.Dim.of(fit(label, 12))+l)
		}
	}
	what := plural(t.nodes, "node") + " of " + t.provider + ", with every process and file on them"
	if t.running {
		what += "; the run that is going on ends"
	}
	if t.forwards > 0 {
		what += "; " + plural(t.forwards, "tunnel")
	}
	add("goes", what)
	switch {
	case t.run == "":
		add("not saved", "nothing was run on it")
	case t.results != nil:
		add("saved", fmt.Sprintf("%s in %s", plural(t.results.Files, "result file"), t.results.Dir))
	default:
		add("not saved", "results that were not brought home: palette (:), pull results")
	}
	add("stays", "logs, curves and the record of every run")
	add("to keep", t.keep())
	return out
}

func (t target) keep() string {
	if t.price == 0 {
		return "costs nothing"
	}
	return fmt.Sprintf("%s an hour, %s a day", dollars(t.price), dollars(t.price*24))
}

func (m *Model) nothingToRemove() string {
	if m.here() == atHome {
		if m.home.pickedCluster() == nil {
			return "pick a cluster first"
		}
		return ""
	}
	switch {
	case m.ses.past:
		return "this is a past run; its cluster is not open here"
	case m.ses.cluster == "" || !m.ses.st.exists():
		return "there is no cluster"
	case m.ses.st.phase() == workbench.PhaseStopping:
		return "it is being torn down"
	}
	return ""
}

func (m *Model) tearDown(cluster string) tea.Cmd {
	if m.ses != nil {
		m.ses.follow = true
	}
	cmd := m.task("tear down "+cluster, func() (string, string, error) {
		return cluster + " was asked to go", "", m.bench.Down(m.ctx, cluster)
	})
	if m.here() == atHome {
		return tea.Batch(m.look(cluster, "", false), cmd)
	}
	m.goTo(atSteps)
	return cmd
}

// askStop asks before a run is ended.
func (m *Model) askStop() tea.Cmd {
	run := m.ses.st.run
	m.openDialog(&choice{
		title: "Stop the run?",
		body: func(m *Model, w int) []string {
			return wrap("Every rank of "+run+" is stopped. The cluster stays, with its files: R runs again.", w)
		},
		answers: []answer{{name: "Cancel"}, {name: "Stop the run", do: func(m *Model) tea.Cmd {
			return m.task("stop "+run, func() (string, string, error) {
				return run + " was asked to stop", "", m.bench.Stop(m.ctx, run)
			})
		}}},
		opened: m.clock.Now(), swallow: true,
	})
	return nil
}

const quitTitle = "Quit dlwb?"

// askQuit explains that clusters go on. With nothing going on it just quits.
func (m *Model) askQuit() tea.Cmd {
	going := m.going()
	if len(going) == 0 {
		return m.quit()
	}
	m.openDialog(&choice{
		title: quitTitle,
		body: func(m *Model, w int) []string {
			out := wrap("Clusters stay, and what runs goes on without it:", w)
			for _, name := range going {
				out = append(out, "  "+m.styles.Strong.of(cut(name, w-2)))
			}
			return append(append(out, ""), wrap("Come back with  dlwb attach "+going[0], w)...)
		},
		answers: []answer{{name: "Stay"}, {name: "Quit", do: (*Model).quit}},
		opened:  m.clock.Now(),
	})
	return nil
}

// going lists the clusters that go on when the screen is closed.
func (m *Model) going() []string {
	seen := map[string]bool{}
	for _, c := range m.home.all.Clusters {
		seen[c.Name] = c.Phase != workbench.PhaseGone
	}
	if s := m.ses; s != nil && !s.past && s.cluster != "" {
		seen[s.cluster] = s.st.exists()
	}
	var out []string
	for name, on := range seen {
		if on {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}
