package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
)

var answersSeed = flag.Uint64("answers-seed", 14, "what the states of TestNoTwoPlacesAnswerOneQuestionDifferently are drawn with")

// facts are the answers of one place to the questions that several answer; what
// a place does not say is not in it.
type facts map[string]float64

// paidWorld is a provider of machines that cost money, and that are as a state
// says.
type paidWorld struct {
	cloud.Provider
	states []cloud.State
}

func (p *paidWorld) Kind() string { return "ec2" }

func (p *paidWorld) Probe(context.Context, cloud.Cluster) ([]cloud.Status, error) {
	out := make([]cloud.Status, len(p.states))
	for i, s := range p.states {
		out[i].State = s
	}
	return out, nil
}

// drawn is one state: a cluster with its events, as the store has them.
type drawn struct {
	name   string
	began  time.Time
	nodes  int
	price  float64
	events []event.Event
	states []cloud.State
	phase  event.Phase
}

// half is so many minutes and a half: no text of minutes turns while the test
// looks.
func half(minutes int) time.Duration { return time.Duration(minutes)*time.Minute + 30*time.Second }

// draw draws a state: how long ago it began, which bounds its nodes told of,
// what was run, which of its machines are gone.
func draw(r *rand.Rand, i int, now time.Time) drawn {
	d := drawn{name: fmt.Sprintf("lm%d", i), nodes: 1 + r.IntN(4), price: float64(r.IntN(4000)) / 100, phase: event.PhaseReady}
	age := half(40 + r.IntN(2000))
	d.began = now.Add(-age)
	at := d.began
	tell := func(after time.Duration, b event.Body) {
		at = at.Add(after)
		d.events = append(d.events, event.Event{Time: at, Cluster: d.name, Body: b})
	}
	nodes := make([]cloud.Node, d.nodes)
	for n := range nodes {
		nodes[n] = cloud.Node{Index: n, Name: fmt.Sprintf("node%d", n), Addr: "10.0.0.1:22", User: "ubuntu"}
		d.states = append(d.states, cloud.Alive)
	}
	tell(0, event.PlanMade{Profile: d.name, Provider: "ec2", Nodes: d.nodes, Engine: "plain", Command: "train.py", PricePerHour: d.price, Steps: event.Steps})
	tell(0, event.StepStarted{Step: event.StepCluster})
	ends := now.Add(half(r.IntN(3000) - 500))
	tell(2*time.Minute, event.ClusterUp{Provider: "ec2", Region: "us-east-1", Instance: "g5.xlarge", Nodes: nodes, PricePerHour: d.price, Ends: ends})
	tell(0, event.StepEnded{Step: event.StepCluster, OK: true})
	if bound := []string{"", "idle", "budget", "bootstrap"}[r.IntN(4)]; bound != "" {
		sooner := now.Add(half(r.IntN(600) - 20))
		for n := range nodes {
			tell(time.Second, event.LeaseChanged{Node: n, Bound: bound, Ends: sooner})
		}
	}
	switch r.IntN(4) {
	case 0: // its machines were taken down by their lease, and somebody looked
		for n := range nodes {
			tell(time.Second, event.NodeChanged{Node: n, State: cloud.Gone})
			d.states[n] = cloud.Gone
		}
	case 1: // one of them is gone, and nobody was told of it yet
		d.states[0] = cloud.Gone
	case 2:
		d.phase = event.PhaseStopped
		tell(30*time.Minute, event.ClusterStopped{PricePerHour: 0.05})
		d.states = make([]cloud.State, d.nodes)
	}
	return d
}

// put writes a state into the store as dlwb does.
func (d drawn) put(t *testing.T, db *store.Store) {
	t.Helper()
	up := d.events[2].Body.(event.ClusterUp)
	data, err := json.Marshal(map[string]any{"cluster": cloud.Cluster{Name: d.name, Provider: "ec2", Nodes: up.Nodes, PricePerHour: d.price,
		ExpiresAt: up.Ends, Region: up.Region, Instance: up.Instance}})
	if err != nil {
		t.Fatal(err)
	}
	life, err := db.BeginCluster(store.Cluster{Name: d.name, Provider: "ec2", Phase: string(d.phase), Profile: d.name, CreatedAt: d.began, PricePerHour: d.price, Data: data})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range d.events {
		body, err := json.Marshal(e.Body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Append(store.Event{Time: e.Time, Cluster: d.name, Life: life, Name: e.Body.EventName(), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
}

var (
	perHourText = regexp.MustCompile(`\$([0-9.]+)/h`)
	soFarText   = regexp.MustCompile(`\$([0-9.]+) so far`)
	endsInText  = regexp.MustCompile(`(ends in|overdue) ((?:\d+[dhms])+)`)
	partText    = regexp.MustCompile(`(\d+)([dhms])`)
	phases      = []event.Phase{event.PhaseReady, event.PhaseEnded, event.PhaseStopped}
)

// span reads a duration as units writes it, in seconds.
func span(text string) (sum float64) {
	for _, m := range partText.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		sum += n * map[string]float64{"d": 86400, "h": 3600, "m": 60, "s": 1}[m[2]]
	}
	return sum
}

// take notes what a text says by an expression with one number.
func (f facts) take(what string, pattern *regexp.Regexp, text string) {
	if m := pattern.FindStringSubmatch(text); m != nil {
		f[what], _ = strconv.ParseFloat(m[1], 64)
	}
}

// takeEnds notes when a text says that the machines end.
func (f facts) takeEnds(text string) {
	if m := endsInText.FindStringSubmatch(text); m != nil {
		if f["ends in"] = span(m[2]); m[1] == "overdue" {
			f["ends in"] *= -1
		}
	}
}

func (f facts) takePhase(text string) {
	for i, p := range phases {
		if strings.Contains(text, string(p)) {
			f["phase"] = float64(i)
		}
	}
}

// whole is a duration in seconds, cut as units does it to the unit it shows.
func whole(d time.Duration) float64 { return d.Seconds() }

// places asks every place that answers: JSON, text, the home screen, the
// session's corner, the question before a teardown.
func places(t *testing.T, w *workbench.Workbench, d drawn) map[string]facts {
	t.Helper()
	out := map[string]facts{}
	var all bytes.Buffer
	a := newApp(strings.NewReader(""), &all, &all)
	a.json = true
	if err := a.list(t.Context(), w, nil); err != nil {
		t.Fatal(err)
	}
	var listed clustersAnswer
	if err := json.Unmarshal(all.Bytes(), &listed); err != nil {
		t.Fatal(err, all.String())
	}
	now := time.Now()
	for _, c := range listed.Clusters {
		if c.Name != d.name {
			continue
		}
		f := facts{"per hour": c.PricePerHour, "spent": c.Spent, "lived": c.Lived}
		if c.Next != nil {
			f["ends in"] = whole(c.Next.At.Sub(now))
		}
		f.takePhase(string(c.Phase))
		out["ls --json"] = f
	}
	all.Reset()
	a.json = false
	if err := a.list(t.Context(), w, nil); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(all.String()) {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		if cells[0] != d.name {
			continue
		}
		f := facts{}
		f["per hour"], _ = strconv.ParseFloat(cells[len(cells)-2], 64)
		f["spent"], _ = strconv.ParseFloat(cells[len(cells)-1], 64)
		f["lived"] = span(cells[5])
		f.takePhase(cells[1])
		if ends := cells[6]; ends != "-" {
			f.takeEnds("ends in " + ends)
			f.takeEnds(ends)
		}
		out["ls"] = f
	}
	home, err := w.Home(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out["home"] = homeFacts(t, home, d, now)
	out["session"] = sessionFacts(w, d, now)
	left, err := w.Removal(d.name)
	if err != nil {
		t.Fatal(err)
	}
	q := left.Question()
	f := facts{}
	for _, fact := range q.Facts {
		f.take("per hour", perHourText, fact.Text)
		if fact.Label == "so far" {
			f.take("spent", regexp.MustCompile(`\$([0-9.]+)`), fact.Text)
		}
	}
	out["question"] = f
	return out
}

// homeFacts reads the row of a cluster on the home screen.
func homeFacts(t *testing.T, home event.Home, d drawn, now time.Time) facts {
	t.Helper()
	s := scenes.NewStage(200, 40, ui.Options{}, func(s *scenes.Stage) { s.HomeIs = home; s.From(now) })
	defer s.Close()
	f := facts{}
	for line := range strings.Lines(ansi.Strip(s.Model.Frame())) {
		if !strings.Contains(line, d.name+" ") || f["seen"] == 1 {
			continue
		}
		f["seen"] = 1
		f.take("per hour", perHourText, line)
		f.take("spent", regexp.MustCompile(`/h +\$([0-9.]+)`), line)
		f.takeEnds(line)
		f.takePhase(line)
	}
	return f
}

// sessionFacts reads the screen of a cluster.
func sessionFacts(w *workbench.Workbench, d drawn, now time.Time) facts {
	s := scenes.NewStage(160, 40, ui.Options{Cluster: d.name}, func(s *scenes.Stage) { s.From(now) })
	defer s.Close()
	sub := w.Subscribe(d.name)
	events := sub.Waiting()
	sub.Close()
	s.Play(events...)
	text := ansi.Strip(s.Model.Frame())
	f := facts{"seen": 1}
	f.take("per hour", perHourText, text)
	f.take("spent", soFarText, text)
	f.takeEnds(text)
	s.Press("t")
	f.takePhase(ansi.Strip(s.Model.Frame()))
	return f
}

// near reports whether two answers are the same but for how they are rounded:
// money to cents, durations to the two units that are shown. Between the first answer
// and the last so many seconds went by, which cost something.
func near(what string, a, b, took, perHour float64) bool {
	switch what {
	case "lived", "ends in":
		unit := 3.0
		if m := max(math.Abs(a), math.Abs(b)); m >= 2*86400 {
			unit = 3600
		} else if m >= 3600 {
			unit = 60
		}
		return math.Abs(a-b) <= unit+took
	case "spent":
		return math.Abs(a-b) <= 0.02+took*perHour/3600
	}
	return math.Abs(a-b) <= 0.0051
}

// Many states are drawn by chance, every place that answers is asked, and what
// two of them answer to one question is the same.
func TestNoTwoPlacesAnswerOneQuestionDifferently(t *testing.T) {
	t.Logf("-answers-seed=%d", *answersSeed)
	r := rand.New(rand.NewPCG(*answersSeed, 0))
	asked := map[string]int{}
	for i := range 200 {
		dir := t.TempDir()
		world := &paidWorld{}
		w, err := workbench.Open(workbench.Options{Dir: dir, Providers: []cloud.Provider{world}})
		if err != nil {
			t.Fatal(err)
		}
		db, err := store.Open(filepath.Join(dir, "dlwb.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		d := draw(r, i, time.Now())
		world.states = d.states
		d.put(t, db)
		began := time.Now()
		answers := places(t, w, d)
		for what, n := range differing(answers, time.Since(began).Seconds(), d.price) {
			if asked[what] += n; n < 0 {
				t.Errorf("state %d, %q: %v", i, what, answers)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_ = db.Close()
	}
	for _, what := range []string{"per hour", "spent", "ends in", "phase", "lived"} {
		if asked[what] < 150 {
			t.Errorf("%q was compared %d times only", what, asked[what])
		}
	}
}

// differing counts how many pairs of places answer a question; it is negative
// where two of them differ.
func differing(answers map[string]facts, took, perHour float64) map[string]int {
	out := map[string]int{}
	for p, a := range answers {
		for q, b := range answers {
			for what, v := range a {
				other, said := b[what]
				switch {
				case p >= q || what == "seen" || !said:
				case !near(what, v, other, took, perHour):
					out[what] = -1000
				default:
					out[what]++
				}
			}
		}
	}
	return out
}
