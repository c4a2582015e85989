// Package scenes shows the screen in every situation that matters, without a
// cluster. The golden tests, the story tests and the pictures in screenshots/
// are all made from it.
package scenes

import (
	"context"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// Stage is a workbench that does what a scene says, and a hand that presses
// keys. Its clock stands still until Advance.
type Stage struct {
	HomeIs    event.Home
	PlanIs    *ui.PlanView
	PlanErr   error
	StartErr  error
	DraftErr  error
	OffersAre cloud.Offers
	OffersErr error
	Past      []event.Event
	RunsAre   history.Table
	RunsErr   error
	AskErr    error
	FactsAre  *history.Comparison
	LinesAre  map[string]history.Overlay // by the name of the series
	Refuse    error                      // what every wish is answered with, when set
	Logs      map[int]string             // by rank
	Listed    []string                   // the forwards of the profile
	Wishes    []string                   // what was asked of the workbench, in order
	Copied    string                     // what went to the clipboard last
	Opened    []string                   // addresses a browser was asked for
	Quit      bool                       // the program was asked to end

	Model *ui.Model

	mu     sync.Mutex
	at     time.Time
	timers []timer
	played []event.Event
	feed   *feed
	msgs   chan tea.Msg
	busy   sync.WaitGroup
	cancel context.CancelFunc
}

type timer struct {
	due  time.Time
	wake func(time.Time) tea.Msg
}

// Epoch is the moment at which every scene begins.
var Epoch = time.Date(2026, 3, 14, 9, 26, 0, 0, time.UTC)

// From lets a scene begin at another moment than Epoch; for the set of NewStage.
func (s *Stage) From(at time.Time) { s.at = at }

// NewStage raises the curtain on a screen of w × h cells.
func NewStage(w, h int, opts ui.Options, set func(*Stage)) *Stage {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stage{Logs: map[int]string{}, at: Epoch, cancel: cancel, msgs: make(chan tea.Msg, 1024)}
	s.feed = &feed{wake: make(chan struct{}, 1)}
	if set != nil {
		set(s)
	}
	opts.Clock, opts.Feed = (*clock)(s), func(string) ui.Feed { return s.feed.open() }
	if opts.Theme == "" {
		opts.Theme = "dark"
	}
	if opts.OpenURL == nil {
		opts.OpenURL = func(url string) error { s.wish("open " + url); return nil }
	}
	s.Model = ui.New(ctx, s, opts)
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	s.run(s.Model.Init())
	s.Settle()
	return s
}

// Close ends everything that waits.
func (s *Stage) Close() {
	s.cancel()
	s.busy.Wait()
}

// send gives the model one message and carries out what it answers with.
func (s *Stage) send(msg tea.Msg) {
	_, cmd := s.Model.Update(msg)
	s.Model.View() // as the terminal does after every message
	s.run(cmd)
}

// run carries a command out. One that waits for events is counted idle while
// it waits.
func (s *Stage) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	s.busy.Add(1)
	s.feed.add(1)
	go func() {
		defer s.busy.Done()
		msg := cmd()
		s.msgs <- msg
	}()
}

// Settle waits until nothing is under way any more.
func (s *Stage) Settle() {
	for {
		select {
		case msg := <-s.msgs:
			s.deliver(msg)
			s.feed.add(-1)
		case <-s.feed.idle():
			if len(s.msgs) == 0 {
				return
			}
		}
	}
}

func (s *Stage) deliver(msg tea.Msg) {
	switch msg := msg.(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case tea.QuitMsg:
		s.Quit = true
	default:
		if text, ok := clipboard(msg); ok {
			s.Copied = text
			return
		}
		s.send(msg)
	}
}

// Press presses keys by name ("enter", "X", "ctrl+c") and waits until idle.
func (s *Stage) Press(keys ...string) *Stage {
	for _, k := range keys {
		s.send(Key(k))
		s.Settle()
	}
	return s
}

// Type types a text, key by key.
func (s *Stage) Type(text string) *Stage {
	for _, r := range text {
		s.Press(string(r))
	}
	return s
}

// Send gives the model any message of the terminal's.
func (s *Stage) Send(msg tea.Msg) *Stage {
	s.send(msg)
	s.Settle()
	return s
}

// Play publishes events and waits until the screen has them.
func (s *Stage) Play(events ...event.Event) *Stage {
	s.played = append(s.played, events...)
	s.feed.push(events)
	s.Settle()
	s.Advance(100 * time.Millisecond)
	s.Settle()
	return s
}

// Advance moves the clock; everything that falls due happens, in order.
func (s *Stage) Advance(d time.Duration) *Stage {
	end := s.now().Add(d)
	for {
		t, ok := s.due(end)
		if !ok {
			break
		}
		s.send(t.wake(t.due))
		s.Settle()
	}
	s.mu.Lock()
	s.at = end
	s.mu.Unlock()
	return s
}

// due takes the next timer up to a moment, and sets the clock to it.
func (s *Stage) due(end time.Time) (timer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	best := -1
	for i, t := range s.timers {
		if !t.due.After(end) && (best < 0 || t.due.Before(s.timers[best].due)) {
			best = i
		}
	}
	if best < 0 {
		return timer{}, false
	}
	t := s.timers[best]
	s.timers = append(s.timers[:best], s.timers[best+1:]...)
	if t.due.After(s.at) {
		s.at = t.due
	}
	return t, true
}

// Resize changes the size of the screen.
func (s *Stage) Resize(w, h int) *Stage {
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

// Screen is the present frame as plain text.
func (s *Stage) Screen() string {
	lines := strings.Split(ansi.Strip(s.Model.Frame()), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (s *Stage) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func (s *Stage) wish(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Wishes = append(s.Wishes, text)
	return s.Refuse
}

// clock is the stage's time.
type clock Stage

// Now implements ui.Clock.
func (c *clock) Now() time.Time { return (*Stage)(c).now() }

// Tick implements ui.Clock: it falls due in Advance.
func (c *clock) Tick(d time.Duration, wake func(time.Time) tea.Msg) tea.Cmd {
	return func() tea.Msg {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timers = append(c.timers, timer{c.at.Add(d), wake})
		return nil
	}
}

// The stage is a ui.Bench. Each wish is written down.

// Home implements ui.Bench.
func (s *Stage) Home(context.Context) (event.Home, error) { return s.HomeIs, nil }

// Plan implements ui.Bench.
func (s *Stage) Plan(_ context.Context, path string) (*ui.PlanView, error) {
	return s.PlanIs, s.PlanErr
}

// Trust implements ui.Bench.
func (s *Stage) Trust(_ context.Context, path, key string) error {
	return s.wish("trust " + path + " " + key)
}

// Start implements ui.Bench.
func (s *Stage) Start(_ context.Context, path string) (string, error) {
	s.wish("start " + path)
	return "charlm", s.StartErr
}

// Attach implements ui.Bench.
func (s *Stage) Attach(_ context.Context, cluster string) error { return s.wish("attach " + cluster) }

// Subscribe implements ui.Bench; the stage's own feed is used instead.
func (s *Stage) Subscribe(string) ui.Feed { return nil }

// RunEvents implements ui.Bench.
func (s *Stage) RunEvents(context.Context, string) ([]event.Event, error) { return s.Past, nil }

// ReadLog implements ui.Bench.
func (s *Stage) ReadLog(_ string, rank int, off int64, p []byte) (int, error) {
	text := s.Logs[rank]
	if off >= int64(len(text)) {
		return 0, io.EOF
	}
	return copy(p, text[off:]), nil
}

// AddMetric implements ui.Bench.
func (s *Stage) AddMetric(_ context.Context, run, name, regex string) (int, error) {
	return 6, s.wish("add metric " + name + ": " + regex)
}

// Stop implements ui.Bench.
func (s *Stage) Stop(_ context.Context, run string) error { return s.wish("stop " + run) }

// Down implements ui.Bench.
func (s *Stage) Down(_ context.Context, cluster string) error { return s.wish("down " + cluster) }

// Forward implements ui.Bench.
func (s *Stage) Forward(_ context.Context, cluster, what string) (event.ForwardOpened, error) {
	err := s.wish("forward " + what)
	return event.ForwardOpened{Kind: event.ForwardHTTP, Name: what, LocalPort: 8888, RemotePort: 8888, URL: "http://127.0.0.1:8888/", Entry: "http://127.0.0.1:8888/?dlwb_token=4c1f"}, err
}

// ForwardAll implements ui.Bench.
func (s *Stage) ForwardAll(_ context.Context, cluster string, what []string) ([]event.ForwardOpened, error) {
	return make([]event.ForwardOpened, len(what)), s.wish("forward " + strings.Join(what, " "))
}

// ListedForwards implements ui.Bench.
func (s *Stage) ListedForwards(string) ([]string, error) { return s.Listed, nil }

// CloseForward implements ui.Bench.
func (s *Stage) CloseForward(_ string, port int) { s.wish("close forward") }

// ShellCommand implements ui.Bench.
func (s *Stage) ShellCommand(_ string, node int) *exec.Cmd {
	s.wish("shell")
	return exec.Command("true")
}

// Pull implements ui.Bench.
func (s *Stage) Pull(_ context.Context, run, _ string) (event.ResultsFetched, error) {
	return event.ResultsFetched{Files: 3, Bytes: 4 << 20, Dir: "results/" + run}, s.wish("pull " + run)
}

// Extend implements ui.Bench.
func (s *Stage) Extend(_ context.Context, cluster string, by time.Duration) error {
	return s.wish("extend " + cluster + " " + by.String())
}

// StopMachines implements ui.Bench.
func (s *Stage) StopMachines(_ context.Context, cluster string) error {
	return s.wish("stop machines " + cluster)
}

// StartMachines implements ui.Bench.
func (s *Stage) StartMachines(_ context.Context, cluster string) error {
	return s.wish("start machines " + cluster)
}

// Key makes a key press from its name.
func Key(name string) tea.KeyPressMsg {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp,
		"down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"home": tea.KeyHome, "end": tea.KeyEnd, "backspace": tea.KeyBackspace}
	if code, ok := special[name]; ok {
		return tea.KeyPressMsg{Code: code}
	}
	switch {
	case name == " " || name == "space":
		return tea.KeyPressMsg{Code: ' ', Text: " "}
	case name == "shift+tab":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case strings.HasPrefix(name, "ctrl+"):
		return tea.KeyPressMsg{Code: rune(name[5]), Mod: tea.ModCtrl}
	}
	r, _ := utf8.DecodeRuneInString(name)
	return tea.KeyPressMsg{Code: r, Text: name}
}

// Played is every event that was published so far.
func (s *Stage) Played() []event.Event { return s.played }
