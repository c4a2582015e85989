package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/ui/line"
	"github.com/dlwb/dlwb/ui/session"
	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/workbench/event"
)

// forwardsScreen is every open tunnel.
func forwardsScreen() screen {
	return screen{at: atForwards, name: "forwards", page: (*Model).drawForwards, move: (*Model).moveForwards}
}

// pickedForward is the tunnel that the cursor is on.
func (m *Model) pickedForward() session.Forward {
	f := m.ses.State.Forwards
	return f[text.Clamp(m.scroll[atForwards], 0, len(f)-1)]
}

func (m *Model) drawForwards(w int) []string { return m.watch().Forwards(m.scroll[atForwards], w) }

// forwarder makes the command that opens a tunnel to something by name.
func forwarder(what string) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd { return m.forward(what) }
}

// askForward asks for ports and names; see askForwards.
func (m *Model) askForward() tea.Cmd {
	cluster := m.ses.Cluster
	return func() tea.Msg {
		what, _ := m.bench.ListedForwards(cluster) // none is no fault here
		return listed{cluster, what}
	}
}

// askForwards shows the question. What the profile lists stands there already,
// so that enter opens all of it.
func (m *Model) askForwards(msg listed) tea.Cmd {
	if m.ses == nil || m.ses.Cluster != msg.cluster || !m.here().inSession() || m.ask != nil || len(m.dialogs) > 0 {
		return nil
	}
	text := sanitize.Line(strings.Join(msg.what, " "))
	m.ask = &prompt{label: "forward, such as 8265 6006/http node1:jupyter", line: line.New(text), done: func(m *Model, text string) tea.Cmd {
		what := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' })
		switch len(what) {
		case 0:
			return nil
		case 1:
			return m.forward(what[0])
		}
		return m.forwardAll(what)
	}}
	return nil
}

func (m *Model) forwardAll(what []string) tea.Cmd {
	cluster := m.ses.Cluster
	m.goTo(atForwards)
	return m.task("opening "+strings.Join(what, ", "), func() (string, string, error) {
		opened, err := m.bench.ForwardAll(m.ctx, cluster, what)
		return text.Plural(len(opened), "tunnel") + " open", "", err
	})
}

// refreshed opens the picked tunnel's address, or copies it: a fresh one where
// the old one may have been used.
func (m *Model) refreshed(then func(*Model, string) tea.Cmd) tea.Cmd {
	f := m.pickedForward()
	if f.Kind != event.ForwardHTTP {
		return then(m, f.URL)
	}
	cluster := m.ses.Cluster
	return func() tea.Msg {
		fresh, err := m.bench.Forward(m.ctx, cluster, f.Name)
		return addressMade{text.Word(fresh.Address()), err, then}
	}
}

func (m *Model) useAddress(msg addressMade) tea.Cmd {
	if msg.err != nil {
		return m.say("warning", oneLine(msg.err))
	}
	return msg.then(m, msg.url)
}

// openAddress shows an address in the browser.
func (m *Model) openAddress(url string) tea.Cmd {
	switch {
	case url == "":
		return m.say("info", "a reverse forward has no address here")
	case m.opts.OpenURL == nil:
		return m.say("info", "no browser here; y copies "+url)
	}
	return m.openURL(url)
}

func (m *Model) closePicked() tea.Cmd {
	f := m.pickedForward()
	cluster := m.ses.Cluster
	return m.task("close port "+fmt.Sprint(f.LocalPort), func() (string, string, error) {
		m.bench.CloseForward(cluster, f.LocalPort)
		return fmt.Sprintf("port %d is closed", f.LocalPort), "", nil
	})
}

func (m *Model) forward(what string) tea.Cmd {
	cluster := m.ses.Cluster
	doing := "opening a tunnel to " + what
	node, name, named := strings.Cut(what, ":")
	if !named {
		node, name = session.NodeName(0), what
	}
	if name == "jupyter" || name == "tensorboard" {
		doing = "starting " + name + " on " + node + " and opening a tunnel to it"
	}
	return m.task(doing, func() (string, string, error) {
		f, err := m.bench.Forward(m.ctx, cluster, what)
		if err != nil {
			return "", "", err
		}
		said := fmt.Sprintf("%s listens on port %d", what, f.LocalPort)
		if f.URL != "" {
			said = what + ": " + text.Word(f.URL)
		}
		if f.Note != "" {
			said += "; " + text.Word(f.Note)
		}
		return said, f.Address(), nil
	})
}

func (m *Model) noForward() string {
	if m.ses == nil || len(m.ses.State.Forwards) == 0 {
		return "no tunnel is open"
	}
	return ""
}

func (m *Model) openURL(url string) tea.Cmd {
	return func() tea.Msg {
		if err := m.opts.OpenURL(url); err != nil {
			return browserless{text.Word(url)}
		}
		return nil
	}
}

// noBrowser shows an address where it can be read and copied whole.
func (m *Model) noBrowser(url string) tea.Cmd {
	if !m.here().inSession() || len(m.dialogs) > 0 {
		return m.say("info", "no browser here; the address is "+url)
	}
	m.ses.Follow = false
	m.goTo(atForwards)
	m.ses.State.ShowEntry(url, func(i int) { m.scroll[atForwards] = i })
	return m.say("info", "no browser could be opened here; y copies the address")
}

func (m *Model) moveForwards(d int) {
	m.scroll[atForwards] = text.Clamp(m.scroll[atForwards]+d, 0, max(len(m.ses.State.Forwards)-1, 0))
}
