//go:build linux

package frameworks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/trusttest"
	"github.com/dlwb/dlwb/remote/engine"
)

var (
	venvs = flag.String("venvs", "", "the directory with the virtual environments of the frameworks")
	write = flag.Bool("write", false, "put what ran into results.json")
	only  = flag.String("engines", "", "the engines to try, with commas; else all")
	slice = flag.Bool("slice", false, "try every engine once instead of in all shapes")
)

// runLimit bounds one run; endLimit is how soon the others must end.
const (
	runLimit = 12 * time.Minute
	endLimit = 30 * time.Second
)

func TestEveryEngineIsTriedOrSaysWhyNot(t *testing.T) {
	var tried []string
	for _, trial := range Trials {
		tried = append(tried, trial.Engine)
		if (trial.Absent == "") == (trial.Script == "") {
			t.Errorf("%s has neither a script nor a reason, or both", trial.Engine)
		}
	}
	for _, name := range engine.Names() {
		if !slices.Contains(tried, name) {
			t.Errorf("%s is not tried: add a row to Trials", name)
		}
	}
	if len(tried) != len(engine.Names()) {
		t.Errorf("tried are %v, engines are %v", tried, engine.Names())
	}
}

func TestThePageIsMadeFromTheTableAndTheResults(t *testing.T) {
	r, err := Stored()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "engines.md"))
	if err != nil || string(page) != r.Page() {
		t.Errorf("docs/engines.md is stale (%v): go generate ./internal/frameworks", err)
	}
}

var (
	buildOnce sync.Once
	program   string
)

// dlwb builds the program once.
func dlwb(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		dir, err := os.MkdirTemp("", "dlwb-frameworks-")
		if err != nil {
			t.Fatal(err)
		}
		program = filepath.Join(dir, "dlwb")
		if out, err := exec.Command("go", "build", "-o", program, "../..").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	})
	return program
}

// limited bounds a run. The program is there before its time begins.
func limited(t *testing.T, parent context.Context) (context.Context, context.CancelFunc) {
	t.Helper()
	dlwb(t)
	return context.WithTimeout(parent, runLimit)
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if program != "" {
		_ = os.RemoveAll(filepath.Dir(program))
	}
	os.Exit(code)
}

// lab is a directory with one experiment and a state of its own.
type lab struct {
	*testing.T
	dir, state string
}

// there skips a trial whose framework has to be built and could not be.
func there(t *testing.T, trial Trial) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(*venvs, trial.Venv, "pins.txt")); err != nil {
		t.Skipf("NOT RUN: %s has no environment: %v", trial.Engine, err)
	}
}

func newLab(t *testing.T, trial Trial, s Shape, args string) lab {
	t.Helper()
	there(t, trial)
	l := lab{t, t.TempDir(), t.TempDir()}
	text, err := scripts.ReadFile("scripts/" + trial.Script)
	if err != nil {
		t.Fatal(err)
	}
	l.put(trial.Script, string(text))
	l.put("dlwb.yaml", fmt.Sprintf("name: trial\nprovider: local\nmachines: {count: %d}\nenvironment: {python: %s}\nrun:\n  engine: %s\n  command: \"%s %s %s\"\n  procs_per_node: %d\n",
		s.Nodes, filepath.Join(*venvs, trial.Venv, "bin", "python"), trial.Engine, trial.Launcher, trial.Script, args, s.Procs))
	trusttest.Trust(l.state, l.dir)
	return l
}

func (l lab) put(name, text string) {
	l.Helper()
	path := filepath.Join(l.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		l.Fatal(err)
	}
}

// add completes the profile, whose end is what is said of the run.
func (l lab) add(text string) {
	l.Helper()
	profile, err := os.ReadFile(filepath.Join(l.dir, "dlwb.yaml"))
	if err != nil {
		l.Fatal(err)
	}
	l.put("dlwb.yaml", string(profile)+text)
	trusttest.Trust(l.state, l.dir)
}

// run is dlwb run, which removes its cluster in the end.
func (l lab) run(ctx context.Context) *exec.Cmd {
	return l.dlwb(ctx, "run", "--down", "--json")
}

func (l lab) dlwb(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, dlwb(l.T), args...)
	c.Dir = l.dir
	c.Env = append(os.Environ(), "DLWB_KEEPER=off", "DLWB_HOME="+l.state)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) }
	c.WaitDelay = 20 * time.Second
	return c
}

// logs are what the ranks, and behind them the launchers, have printed.
func (l lab) logs() string {
	files, _ := filepath.Glob(filepath.Join(l.state, "runs", "*", "*.log"))
	var all strings.Builder
	for _, name := range slices.Backward(files) { // ranks first
		text, _ := os.ReadFile(name)
		fmt.Fprintf(&all, "%s\n%s\n", filepath.Base(name), text)
	}
	return all.String()
}

// ended is the event that tells the end of a run.
func ended(out []byte) (verdict, cause string) {
	for line := range bytes.Lines(out) {
		var e struct{ Verdict, Cause string }
		if json.Unmarshal(line, &e) == nil && e.Verdict != "" {
			verdict, cause = e.Verdict, e.Cause
		}
	}
	return verdict, cause
}

var summed = regexp.MustCompile(`rank (\d+) of (\d+): sum (\d+).* version (\S+)`)

// try runs a trial in one shape and gives the version of its framework.
func try(t *testing.T, trial Trial, s Shape) (version string, err error) {
	t.Helper()
	ctx, cancel := limited(t, t.Context())
	defer cancel()
	l := newLab(t, trial, s, "")
	out, runErr := l.run(ctx).CombinedOutput()
	world, seen := s.Nodes*s.Procs, map[string]bool{}
	for _, m := range summed.FindAllStringSubmatch(l.logs(), -1) {
		if m[2] != strconv.Itoa(world) || m[3] != m[2] {
			return m[4], fmt.Errorf("rank %s of %s has the sum %s, and the world size is %d", m[1], m[2], m[3], world)
		}
		seen[m[1]], version = true, m[4]
	}
	verdict, cause := ended(out)
	switch {
	case runErr != nil || verdict != "succeeded":
		return version, fmt.Errorf("%v, %s: %s\n%s\n%s", runErr, verdict, cause, tail(string(out), 15), tail(l.logs(), 120))
	case len(seen) != world:
		return version, fmt.Errorf("%d ranks of %d have told their sum:\n%s", len(seen), world, tail(l.logs(), 60))
	}
	return version, l.nothingLeft(out)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// nothingLeft holds the receipt against what is there.
func (l lab) nothingLeft(out []byte) error {
	if !bytes.Contains(out, []byte("0 processes and 0 files left")) {
		return fmt.Errorf("the receipt does not say that nothing is left:\n%s", tail(string(out), 20))
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range dirs {
		if environ, _ := os.ReadFile(name); bytes.Contains(environ, []byte(l.state)) {
			args, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
			return fmt.Errorf("a process is left: %s", bytes.ReplaceAll(args, []byte{0}, []byte{' '}))
		}
	}
	return nil
}

// TestFrameworks is the whole of make test-frameworks.
func TestFrameworks(t *testing.T) {
	if *venvs == "" {
		t.Skip("the frameworks are not installed: make test-frameworks does that")
	}
	for _, trial := range Trials {
		if trial.Absent != "" || *only != "" && !slices.Contains(strings.Split(*only, ","), trial.Engine) {
			continue
		}
		t.Run(trial.Engine, func(t *testing.T) {
			found := &Result{Cells: map[string]string{}}
			all(t, trial, found)
			t.Logf("%+v", *found)
			keep(t, func(r Results) {
				into := r.of(trial.Engine)
				// With -run some of it may not have been tried now.
				into.Version, into.Killed = cmp.Or(found.Version, into.Version), cmp.Or(found.Killed, into.Killed)
				maps.Copy(into.Cells, found.Cells)
			})
		})
	}
}

// keep puts what ran into the results and the page that shows them, where that is
// asked for. It is done after each engine: the whole takes long, and may be cut.
func keep(t *testing.T, put func(Results)) {
	if !*write {
		return
	}
	results := Results{}
	text, err := os.ReadFile("results.json")
	if err == nil {
		err = json.Unmarshal(text, &results)
	}
	if err == nil {
		put(results)
		text, err = results.Text()
	}
	if err == nil {
		err = os.WriteFile("results.json", text, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join("..", "..", "docs", "engines.md"), []byte(results.Page()), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

// all tries an engine in every shape, and with a rank that is killed. Each has a
// name, so that -run tries one of them alone: TestFrameworks/ray/killed.
func all(t *testing.T, trial Trial, into *Result) {
	for _, s := range Shapes {
		if *slice && s != (Shape{2, 1}) {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			version, err := try(t, trial, s)
			if version != "" {
				into.Version = version
			}
			into.Cells[s.String()] = "ok"
			if err != nil {
				into.Cells[s.String()] = "failed"
				t.Error(err)
			}
		})
	}
	t.Run("killed", func(t *testing.T) {
		said, err := kill(t, trial)
		if into.Killed = said; err != nil {
			into.Killed = "failed"
			t.Errorf("%s: %v", said, err)
		}
		t.Log(said)
	})
}
