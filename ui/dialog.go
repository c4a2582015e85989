package ui

import (
	"sort"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/sign"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// dialog asks something over the screen. The topmost one gets the keys.
type dialog interface {
	draw(m *Model, w, h int) text.Block
	key(m *Model, k tea.KeyPressMsg) tea.Cmd
}

// typedAhead is how long a question ignores keys: they were meant for what
// was there before it. Until then its focus is drawn as a point.
const typedAhead = 400 * time.Millisecond

// heeded comes when the topmost question begins to take keys.
type heeded struct{}

// heedLater draws a question anew when it begins to take keys.
func (m *Model) heedLater() tea.Cmd {
	return m.clock.Tick(typedAhead, func(time.Time) tea.Msg { return heeded{} })
}

// focusSign stands before the answer that enter gives, once keys are taken.
func (m *Model) focusSign(takesKeys bool) string {
	if takesKeys {
		return "› "
	}
	return "· "
}

// choice asks for one of a few answers. The first is the harmless one and has
// the focus.
type choice struct {
	title   string
	body    func(m *Model, w int) []string
	answers []answer
	focus   int
	opened  time.Time
	swallow bool
	// name must be typed before the last answer can be given; empty where
	// picking it is enough.
	name  string
	typed line.Line
	gen   int  // of the question that fills it; 0 for none
	waits bool // for that question: nothing can be agreed to yet
}

type answer struct {
	name string
	do   func(m *Model) tea.Cmd // nil: only closes
}

// meantBefore reports whether a key came so soon after a question was opened that
// it was meant for what was there before. Ctrl-C agrees to nothing, and is never
// made to wait.
func (m *Model) meantBefore(k tea.KeyPressMsg, opened time.Time) bool {
	return k.String() != "ctrl+c" && !m.heeds(opened)
}

// heeds reports whether a question takes keys by now.
func (m *Model) heeds(opened time.Time) bool { return m.clock.Now().Sub(opened) >= typedAhead }

func (m *Model) openDialog(d dialog) { m.dialogs = append(m.dialogs, d) }

func (m *Model) closeDialog() { m.dialogs = m.dialogs[:len(m.dialogs)-1] }

func (c *choice) key(m *Model, k tea.KeyPressMsg) tea.Cmd {
	if c.swallow && m.meantBefore(k, c.opened) {
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
	case "left", "shift+tab", "up":
		c.turn(-1)
	case "right", "tab", "down":
		c.turn(1)
	case "enter":
		m.closeDialog()
		if do := c.answers[c.focus].do; do != nil {
			return do(m)
		}
	default:
		return c.letter(m, k)
	}
	return nil
}

// letter takes a key that stands for a letter: part of a name where one is to
// be typed, else the keys that move as arrows do.
func (c *choice) letter(m *Model, k tea.KeyPressMsg) tea.Cmd {
	if c.name != "" {
		c.typed.Key(k)
		c.focus = 0
		if c.agreed() {
			c.focus = len(c.answers) - 1
		}
		return nil
	}
	switch k.String() {
	case "h", "k":
		c.turn(-1)
	case "l", "j":
		c.turn(1)
	case "y":
		return m.say("info", "arrows pick an answer, enter gives it, esc leaves everything as it is")
	}
	return nil
}

// agreed reports whether the name was typed that the last answer needs.
func (c *choice) agreed() bool { return !c.waits && (c.name == "" || c.typed.Text() == c.name) }

// turn moves the focus; what is not agreed to can't be reached.
func (c *choice) turn(d int) {
	n := len(c.answers)
	if !c.agreed() {
		n--
	}
	c.focus = (c.focus + d + n) % n
}

func (c *choice) draw(m *Model, w, h int) text.Block {
	inner := text.Clamp(w-8, 1, 64)
	lines := []string{m.styles.Strong.Of(text.Cut(c.title, inner)), ""}
	body := c.body(m, inner)
	room := h - 7
	if c.name != "" {
		room -= 2
	}
	if len(body) > room && room > 0 {
		body = append(body[:room-1:room-1], m.styles.Dim.Of("…"))
	}
	lines = append(lines, body...)
	if c.name != "" {
		lines = append(lines, "", text.Cut(m.styles.Dim.Of("type ")+m.styles.Strong.Of(c.name)+m.styles.Dim.Of(" to agree  ")+
			c.typed.Draw(&m.styles, max(inner-text.Wide(c.name)-15, 1)), inner))
	}
	lines = append(lines, "", c.buttons(m))
	return boxed(m, lines, inner)
}

// buttons draws the answers. The focus is a sign and a reversal, not a colour.
func (c *choice) buttons(m *Model) string {
	parts := make([]string, len(c.answers))
	for i, a := range c.answers {
		if i == c.focus {
			parts[i] = m.styles.Cursor.Of(m.focusSign(!c.swallow || m.heeds(c.opened)) + a.name + " ")
		} else {
			parts[i] = m.styles.Dim.Of("  " + a.name + " ")
		}
	}
	return strings.Join(parts, "  ")
}

// boxed sets lines into a thin frame with air on every side.
func boxed(m *Model, lines []string, inner int) text.Block {
	edge := m.styles.Faint.Of
	w := inner + 6
	out := []string{edge("╭" + strings.Repeat("─", w-2) + "╮")}
	row := func(s string) { out = append(out, edge("│")+"  "+text.Fit(s, inner)+"  "+edge("│")) }
	for _, l := range lines {
		row(l)
	}
	out = append(out, edge("╰"+strings.Repeat("─", w-2)+"╯"))
	return text.Block{W: w, Lines: out}
}

// faultDialog shows what went wrong with a wish.
func (m *Model) faultDialog(f event.Fault) dialog {
	return &choice{
		title:   "That did not work",
		body:    func(m *Model, w int) []string { return sign.Fault(m.looks(), f, w) },
		answers: []answer{{name: "Close"}},
		opened:  m.clock.Now(), swallow: true,
	}
}

func (m *Model) nothingToRemove() string {
	if m.here() == atHome {
		if m.home.Cluster() == nil {
			return "pick a cluster first"
		}
		return ""
	}
	switch {
	case m.ses.Past:
		return "this is a past run; its cluster is not open here"
	case m.ses.Cluster == "" || !m.ses.State.Exists():
		return "there is no cluster"
	case m.ses.State.Phase() == event.PhaseStopping:
		return "it is being torn down"
	}
	return ""
}

func (m *Model) tearDown(cluster string) tea.Cmd {
	if m.ses != nil {
		m.ses.Follow = true
	}
	cmd := m.task("tear down "+cluster, func() (string, string, error) {
		return cluster + " is gone, and that is proven", "", m.bench.Down(m.ctx, cluster)
	})
	if m.here() == atHome {
		return tea.Batch(m.look(cluster, "", false), cmd)
	}
	m.goTo(atSteps)
	return cmd
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
			out := text.Wrap("Clusters stay, and what runs goes on without it:", w)
			for _, name := range going {
				out = append(out, "  "+m.styles.Strong.Of(text.Cut(name, w-2)))
			}
			return append(append(out, ""), text.Wrap("Come back with  dlwb attach "+going[0], w)...)
		},
		answers: []answer{{name: "Stay"}, {name: "Quit", do: (*Model).quit}},
		opened:  m.clock.Now(),
	})
	return nil
}

// going lists the clusters that go on when the screen is closed.
func (m *Model) going() []string {
	seen := map[string]bool{}
	for _, c := range m.home.Clusters() {
		seen[c.Name] = c.Phase != event.PhaseGone && !m.gone[c.Name].After(c.CreatedAt)
	}
	if s := m.ses; s != nil && !s.Past && s.Cluster != "" {
		seen[s.Cluster] = s.State.Exists()
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
