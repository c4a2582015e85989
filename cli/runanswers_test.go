package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/dlwb/dlwb/cli/told"
	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

// said is what one place says of a run or a receipt, as text: a number in JSON
// is written as units writes it. What a place does not say is not in it.
type said map[string]string

// drawnRun is a run of the past with the teardown of its cluster, drawn by
// chance. Its end comes later than it says that it took.
type drawnRun struct {
	id, cluster string
	price, loss float64
	step        int64
	began       time.Time
	ended       event.RunEnded
	results     event.ResultsFetched
	receipt     event.ReceiptMade
}

func drawRun(r *rand.Rand, i int, dir string, now time.Time) drawnRun {
	verdicts := []event.Verdict{event.Succeeded, event.ExitedBad, event.Killed, event.Hung, event.Stopped, event.Lost}
	v := verdicts[i%len(verdicts)]
	took := float64(1+r.IntN(90)) + r.Float64()
	if i%3 == 0 {
		took *= 400
	}
	d := drawnRun{id: fmt.Sprintf("lm%d-0101-0101", i), cluster: fmt.Sprintf("lm%d", i), price: float64(r.IntN(9000)) / 100, loss: 1 + r.Float64(), step: int64(1 + r.IntN(600))}
	code := map[event.Verdict]int{event.Succeeded: 0, event.ExitedBad: 3, event.Killed: 137, event.Hung: 124, event.Stopped: 130, event.Lost: 1}[v]
	d.began = now.Add(-time.Duration(took+30+r.Float64()*9000) * time.Second)
	d.ended = event.RunEnded{ExitCode: code, Verdict: v, Cause: "it came to its end", Rank: -1, Node: -1, Duration: took}
	d.results = event.ResultsFetched{Files: 2 + r.IntN(2000), Bytes: r.Int64N(1e11), Dir: filepath.Join(dir, "runs", d.id, "results")}
	d.receipt = event.ReceiptMade{Proven: true, ProcessesLeft: r.IntN(5) + 2, FilesLeft: r.IntN(20) + 2, Lived: took + float64(r.IntN(200_000)), Cost: r.Float64() * 200,
		Resources: []cloud.Resource{{Kind: "instance", ID: "i-1", State: cloud.Gone, Proof: "seen terminated"}}}
	return d
}

// put writes the run as dlwb does; how it ended is in its events only, as when
// dlwb was killed behind the last of them.
func (d drawnRun) put(t *testing.T, db *store.Store) {
	t.Helper()
	c := store.Cluster{Name: d.cluster, Provider: "ec2", Phase: string(event.PhaseReady), CreatedAt: d.began}
	life, err := db.BeginCluster(c)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"nodes": 1, "price_per_hour": d.price})
	if err != nil {
		t.Fatal(err)
	}
	run := store.Run{ID: d.id, Cluster: d.cluster, Life: life, Profile: "lm", Engine: "plain", Command: "train.py", WorldSize: 1, StartedAt: d.began, Data: data}
	if err := db.PutRun(run); err != nil {
		t.Fatal(err)
	}
	if err := db.AddPoints(d.id, []store.Point{{Name: "loss", Step: &d.step, Value: d.loss}}); err != nil {
		t.Fatal(err)
	}
	over := d.began.Add(time.Duration((d.ended.Duration + 2.7) * float64(time.Second)))
	for _, b := range []struct {
		at   time.Time
		run  string
		body event.Body
	}{
		{d.began, "", event.PlanMade{Profile: "lm", Provider: "ec2", Nodes: 1, Engine: "plain", Command: "train.py", PricePerHour: d.price, Steps: event.Steps}},
		{d.began, "", event.ClusterUp{Provider: "ec2", Region: "us-east-1", Instance: "g5.xlarge", Nodes: make([]cloud.Node, 1), PricePerHour: d.price}},
		{d.began.Add(time.Second), d.id, event.RunStarted{Engine: "plain", WorldSize: 1, Nodes: 1, Command: "train.py", Ranks: make([]event.RankInfo, 1)}},
		{over, d.id, d.ended},
		{over.Add(time.Second), d.id, d.results},
		{over.Add(2 * time.Second), d.id, event.StepEnded{Step: event.StepFetch, OK: true}},
		{over.Add(9 * time.Second), "", d.receipt},
	} {
		body, err := json.Marshal(b.body)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Append(store.Event{Time: b.at, Cluster: d.cluster, Life: life, Run: b.run, Name: b.body.EventName(), Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	keep(t, d.results)
	gone := over.Add(9 * time.Second)
	c.ID, c.Phase, c.EndedAt = life, string(event.PhaseGone), &gone
	if _, err := db.PutCluster(c); err != nil {
		t.Fatal(err)
	}
}

// keep makes a file without content that is as large as the results are told
// to be.
func keep(t *testing.T, r event.ResultsFetched) {
	t.Helper()
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.Dir, "model.pt")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, r.Bytes)); err != nil {
		t.Fatal(err)
	}
}

// asks runs dlwb in this process on the state that DLWB_HOME names.
func asks(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	newApp(strings.NewReader(""), &out, &errs).run(t.Context(), args)
	if errs.Len() > 0 {
		t.Fatalf("dlwb %v: %s", args, errs.String())
	}
	return out.String()
}

// reads parses the JSON that a command answers with.
func reads[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// find notes what a text says by an expression, whose first group is it.
func (s said) find(what, pattern, text string) {
	if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
		s[what] = strings.TrimSpace(m[1])
	}
}

// has notes what the values of a run are.
func (s said) has(verdict event.Verdict, took, cost float64) said {
	s["verdict"], s["took"], s["cost"] = string(verdict), units.Seconds(took), units.USD(cost)
	return s
}

func lossText(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

const spanPattern = `((?:\d+d)?(?:\d+h)?(?:\d+m)?(?:[\d.]+s)?)`

// runPlaces asks every place that answers for runs of the past.
func runPlaces(t *testing.T, w *workbench.Workbench, all []drawnRun) map[string]map[string]said {
	t.Helper()
	out := map[string]map[string]said{}
	for _, d := range all {
		out[d.id] = map[string]said{}
	}
	table := reads[history.Table](t, asks(t, "runs", "--json"))
	for _, r := range table.Runs {
		s := said{"loss": lossText(*r.LastLoss), "exit": fmt.Sprint(*r.ExitCode)}
		out[r.ID]["runs --json"] = s.has(r.Verdict, r.Duration, r.Cost)
	}
	for line := range strings.Lines(asks(t, "runs")) {
		if c := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1); out[c[0]] != nil {
			out[c[0]]["runs"] = said{"verdict": c[1], "exit": c[2], "took": c[6], "loss": c[7]}
		}
	}
	for _, d := range all {
		out[d.id]["attach --json"] = pastJSON(t, asks(t, "attach", d.id, "--json"))
		out[d.id]["attach"] = pastText(asks(t, "attach", d.id, "--plain"))
		out[d.id]["rm --dry-run"] = said{}
		out[d.id]["rm --dry-run"].find("bytes", `results ([\d.]+ \w+)`, asks(t, "rm", d.id, "--dry-run"))
		gone := reads[rmAnswer](t, asks(t, "rm", d.id, "--dry-run", "--json"))
		out[d.id]["rm --dry-run --json"] = said{"bytes": units.Bytes(gone.Runs[0].Results)}
		end := told.Event(d.ended)
		s := said{"exit": fmt.Sprint(d.ended.ExitCode)}
		s.find("verdict", `^run (\w+)`, end)
		s.find("took", `in `+spanPattern+`:`, end)
		s.find("exit", `exit code (\d+)`, end)
		out[d.id]["the end of dlwb run"] = s
		s = said{}
		book := asks(t, "runbook", d.id)
		s.find("took", `Took\W+`+spanPattern, book)
		s.find("cost", `Cost\W+(\$[\d.]+)`, book)
		s.find("verdict", `Came to\W+(\w+)`, book)
		out[d.id]["runbook"] = s
	}
	comparePlaces(t, all, out)
	listPlaces(t, w, table, out)
	for _, d := range all {
		sessionPlaces(t, w, d, table, out[d.id])
	}
	return out
}

func pastJSON(t *testing.T, text string) said {
	past := reads[pastAnswer](t, text)
	s := said{"loss": lossText(*past.Run.LastLoss), "exit": fmt.Sprint(*past.Run.ExitCode), "files": fmt.Sprint(past.Results.Files), "bytes": units.Bytes(past.Results.Bytes)}
	return s.has(past.Run.Verdict, past.Run.Duration, past.Run.Cost)
}

func pastText(text string) said {
	s := said{}
	s.find("verdict", `(?m)^ended +(\w+):`, text)
	s.find("took", `(?m)^took +(\S+)$`, text)
	s.find("cost", `(?m)^cost +(\S+)$`, text)
	s.find("loss", `(?m)^loss +(\S+)$`, text)
	s.find("files", `(?m)^results +([\d ]+) files`, text)
	s.find("bytes", `(?m)^results +[\d ]+ files, ([\d.]+ \w+)`, text)
	return s
}

func comparePlaces(t *testing.T, all []drawnRun, out map[string]map[string]said) {
	ids := []string{"compare"}
	for _, d := range all {
		ids = append(ids, d.id)
	}
	c := reads[history.Comparison](t, asks(t, append(ids, "--json")...))
	for _, r := range c.Runs {
		out[r.ID]["compare --json"] = said{}.has(r.Verdict, r.Duration, r.Cost)
	}
	for line := range strings.Lines(asks(t, ids...)) {
		cells := regexp.MustCompile(` {2,}`).Split(strings.TrimSpace(line), -1)
		if len(cells) != len(ids) || !slices.Contains([]string{"verdict", "took", "cost"}, cells[0]) {
			continue
		}
		for i, d := range all {
			if out[d.id]["compare"] == nil {
				out[d.id]["compare"] = said{}
			}
			out[d.id]["compare"][cells[0]] = cells[i+1]
		}
	}
}

// listPlaces reads the home screen and the screen of all runs.
func listPlaces(t *testing.T, w *workbench.Workbench, table history.Table, out map[string]map[string]said) {
	t.Helper()
	home, err := w.Home(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := scenes.NewStage(200, 80, ui.Options{}, func(s *scenes.Stage) { s.HomeIs, s.RunsAre = home, table; s.From(time.Now()) })
	defer s.Close()
	for _, at := range []string{"home screen", "screen of runs"} {
		for line := range strings.Lines(ansi.Strip(s.Model.Frame())) {
			id := regexp.MustCompile(`lm\d+-0101-0101`).FindString(line)
			if out[id] == nil || out[id][at] != nil {
				continue
			}
			f := said{}
			f.find("verdict", `[✓✗■] (\w+)`, line)
			f.find("exit", `\((\d+)\)`, line)
			f.find("loss", `(\d\.\d\d+)  `, line)
			f.find("took", `\d\.\d\d+ +`+spanPattern+` `, line)
			f.find("cost", `(\$[\d.]+)`, line)
			out[id][at] = f
		}
		s.Press("p")
	}
}

// sessionPlaces reads the screen of a past run, its steps and its receipt, and
// the other places that tell of a receipt.
func sessionPlaces(t *testing.T, w *workbench.Workbench, d drawnRun, table history.Table, out map[string]said) {
	t.Helper()
	events, err := w.RunEvents(t.Context(), d.id)
	if err != nil {
		t.Fatal(err)
	}
	var receipt event.ReceiptMade
	s := scenes.NewStage(160, 40, ui.Options{}, func(s *scenes.Stage) {
		s.Past, s.HomeIs = events, event.Home{Runs: table.Runs[slices.IndexFunc(table.Runs, func(r event.RunInfo) bool { return r.ID == d.id }):]}
		s.From(time.Now())
	})
	defer s.Close()
	f, text := said{}, ansi.Strip(s.Press("enter").Model.Frame())
	f.find("verdict", `[✓✗■] (\w+)`, text)
	f.find("exit", `\((\d+)\)`, text)
	f.find("took", `took `+spanPattern, text)
	steps := ansi.Strip(s.Press("x").Model.Frame())
	f.find("files", `results +([\d ]+) file`, steps)
	f.find("bytes", `results +[\d ]+ files?, ([\d.]+ \w+)`, steps)
	f.find("lived", `lived +`+spanPattern, steps)
	f.find("receipt", `(?m)^ +cost +(\$[\d.]+)`, steps)
	f.find("processes", `left +(\d+) process`, steps)
	f.find("files left", `(\d+) files?\b`, regexp.MustCompile(`left +\d+ processes, .*`).FindString(steps))
	out["session"] = f

	f, text = said{}, told.Event(d.receipt)
	f.find("lived", `lived `+spanPattern, text)
	f.find("receipt", `cost (\$[\d.]+)`, text)
	f.find("processes", `(\d+) process`, text)
	f.find("files left", `(\d+) files? left`, text)
	out["down"] = f
	var printed bytes.Buffer
	p := printer{w: &printed, json: true}
	if err := p.print([]event.Event{{Body: d.receipt}}); err != nil {
		t.Fatal(err)
	}
	receipt = reads[event.ReceiptMade](t, printed.String())
	out["down --json"] = said{"lived": units.Seconds(receipt.Lived), "receipt": units.USD(receipt.Cost), "processes": fmt.Sprint(receipt.ProcessesLeft), "files left": fmt.Sprint(receipt.FilesLeft)}
}

// Runs of the past and receipts are drawn by chance, every place that tells of
// one is asked, and all say the same, word for word.
func TestEveryPlaceTellsTheSameOfAPastRunAndItsReceipt(t *testing.T) {
	t.Logf("-answers-seed=%d", *answersSeed)
	dir := t.TempDir()
	t.Setenv("DLWB_HOME", dir)
	w, err := workbench.Open(workbench.Options{Dir: dir, Providers: []cloud.Provider{&paidWorld{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	db, err := store.Open(filepath.Join(dir, "dlwb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(*answersSeed, 1))
	var all []drawnRun
	for i := range 24 {
		all = append(all, drawRun(r, i, dir, time.Now()))
		all[i].put(t, db)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	compared := map[string]int{}
	for id, places := range runPlaces(t, w, all) {
		for p, a := range places {
			for q, b := range places {
				for what, v := range a {
					if other, told := b[what]; told && p < q {
						compared[what]++
						if v != other && (what != "loss" || strings.TrimRight(v, ".0") != strings.TrimRight(other, ".0")) {
							t.Errorf("%s, %s: %s says %q, %s says %q", id, what, p, v, q, other)
						}
					}
				}
			}
		}
	}
	for what, least := range map[string]int{"took": 24 * 36, "verdict": 24 * 36, "exit": 24 * 8, "cost": 24 * 10, "loss": 24 * 6,
		"files": 24 * 3, "bytes": 24 * 10, "lived": 24 * 3, "receipt": 24 * 3, "processes": 24 * 3, "files left": 24 * 3} {
		if compared[what] < least {
			t.Errorf("%q was compared %d times, want %d", what, compared[what], least)
		}
	}
}
