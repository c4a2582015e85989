package environment

import (
	"context"
	"crypto/sha256"
	_ "embed" // the driver
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

// venvPython runs on the node, under the interpreter to start from, and makes
// the virtual environment there.
//
//go:embed scripts/venv.py
var venvPython string

// checkPython runs under the new interpreter and spares pip where all that is
// asked for is there.
//
//go:embed scripts/check.py
var checkPython string

// venv gives the interpreter of the cluster's virtual environment, which it
// makes or updates if need be.
func (p preparer) venv(ctx context.Context, n node, base interpreter) (Result, error) {
	if p.spec.Joins && n.installed != "" {
		return p.join(ctx, n)
	}
	if n.installed == p.key(base) && n.venv != nil && !p.spec.Force {
		text := fmt.Sprintf("%s; %s did not change since it was installed", n.venv, p.file())
		return p.finish(ctx, n, *n.venv, p.venvResult(n, *n.venv, text, true))
	}
	if p.spec.Optional && !p.spec.Force && base.meets(p.spec.Content) {
		r := p.systemResult(n, base)
		r.Skipped = true
		r.Text = fmt.Sprintf("%s, which already has what %s asks for%s", base, p.file(), n.whyNotFirst(base))
		return p.finish(ctx, n, base, r)
	}
	began := time.Now()
	a, err := p.make(ctx, n, base)
	var failure *Failure
	if errors.As(err, &failure) && p.spec.Optional {
		return p.fallBack(ctx, n, base, failure)
	}
	if err != nil {
		return Result{}, err
	}
	return p.installed(ctx, n, a, time.Since(began))
}

// join uses the virtual environment that another node has made on a disk that this one
// sees too.
func (p preparer) join(ctx context.Context, n node) (Result, error) {
	if n.venv != nil {
		text := fmt.Sprintf("%s; another node that shares the directory installed %s", n.venv, p.file())
		return p.finish(ctx, n, *n.venv, p.venvResult(n, *n.venv, text, true))
	}
	f := &Failure{Why: "the virtual environment that another node has made in ~/" + p.venvDir() + ", which both share, does not run here",
		Next: "have the same Python on both, or give a version of Python that is installed in the shared home, such as python: 3.12"}
	for _, b := range n.broken {
		if b.role == "venv" {
			f.LastLines = []string{b.why}
		}
	}
	return Result{}, f
}

// installed takes what the new interpreter said of itself. Where it did not, as
// when another node made it, the node is looked at again.
func (p preparer) installed(ctx context.Context, n node, a answer, took time.Duration) (Result, error) {
	n.venv = readNode([]byte(strings.Join(a.Said, "\n"))).venv
	if n.venv == nil {
		var err error
		if n, err = p.probe(ctx); err != nil {
			return Result{}, err
		}
	}
	if n.venv == nil {
		f := &Failure{Why: "the new virtual environment does not run", Next: "look at ~/" + p.venvDir() + " on the node"}
		for _, b := range n.broken {
			if b.role == "venv" {
				f.LastLines = []string{b.why}
			}
		}
		return Result{}, f
	}
	text := fmt.Sprintf("%s; %s installed in %s", n.venv, p.file(), units.Duration(took))
	if a.Skipped {
		text = fmt.Sprintf("%s; another node that shares the directory installed %s", n.venv, p.file())
	}
	return p.finish(ctx, n, *n.venv, p.venvResult(n, *n.venv, text, a.Skipped))
}

func (p preparer) venvResult(n node, py interpreter, text string, skipped bool) Result {
	dir := n.home + "/" + p.venvDir()
	return Result{
		Kind: Venv, Text: text, Skipped: skipped,
		Env: []string{"VIRTUAL_ENV=" + dir, "PATH=" + joinPaths(dir+"/bin", n.path)},
	}
}

// fallBack goes on with the interpreter that is there.
func (p preparer) fallBack(ctx context.Context, n node, base interpreter, f *Failure) (Result, error) {
	r := p.systemResult(n, base)
	r.Text = fmt.Sprintf("%s, as it is on the node, because %s could not be installed: %s", base, p.file(), f.Why)
	if f.Next != "" {
		r.Notes = append([]string{f.Next}, r.Notes...)
	}
	return p.finish(ctx, n, base, r)
}

func (p preparer) file() string {
	if p.spec.File == "" {
		return "requirements.txt"
	}
	return p.spec.File
}

// baseKey changes when the environment has to be made anew; key also when
// something else has to be installed.
func baseKey(base interpreter) string {
	return digest("base 1", base.Exe, base.Version, fmt.Sprint(base.Torch != ""))
}

func (p preparer) key(base interpreter) string {
	return digest("key 1", baseKey(base), p.spec.Content)
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// job is what venv.py is told.
type job struct {
	Dir     string  `json:"dir"`
	Key     string  `json:"key"`
	BaseKey string  `json:"base_key"`
	Content string  `json:"content,omitempty"`
	Upload  string  `json:"upload,omitempty"`
	System  bool    `json:"system"`
	UV      string  `json:"uv"`
	Force   bool    `json:"force"`
	Limit   float64 `json:"limit"`
	Check   string  `json:"check"`
	Probe   string  `json:"probe"`
	Look    *look   `json:"look"`
	Pause   bool    `json:"pause"`
	Made    bool    `json:"made"`
	Wheels  string  `json:"wheels"`
	Fetch   bool    `json:"fetch"`
}

// look is what venv.py keeps for the next look at the node, as probe.sh does.
type look struct {
	Key    string   `json:"key"`
	Said   []string `json:"said"`
	Watch  []string `json:"watch"`
	Stamp  string   `json:"stamp"`
	Wanted string   `json:"wanted"`
	Dirs   string   `json:"dirs"`
}

func (p preparer) look(n node) *look {
	if !n.steady {
		return nil
	}
	l := &look{Key: p.lookKey(), Said: n.said, Watch: n.watch, Stamp: stampShell, Dirs: p.dirs}
	if n.wanted != nil {
		l.Wanted = n.wanted.Path
	}
	return l
}

// answer is what venv.py says at last.
type answer struct {
	OK      bool     `json:"ok"`
	Skipped bool     `json:"skipped"`
	Step    string   `json:"step"`
	Code    int      `json:"code"`
	Lines   []string `json:"lines"`
	Command []string `json:"command"`
	Said    []string `json:"said"` // of the new interpreter, as probe.sh says it
	Kind    string   `json:"kind"` // of a node that pauses: what it shares wheels with
	Made    bool     `json:"made"`
}

// make has the virtual environment made on the node. Skipped means that it was
// there by the time it was this node's turn.
func (p preparer) make(ctx context.Context, n node, base interpreter) (answer, error) {
	uv := n.uvFor(base)
	if !base.Venv && uv == "" {
		return answer{}, &Failure{
			Why:  fmt.Sprintf("Python %s (%s) can't make virtual environments: its venv or ensurepip module is missing", base.Version, base.Exe),
			Next: n.installVenv(base),
		}
	}
	j := job{
		Dir: p.venvDir(), Key: p.key(base), BaseKey: baseKey(base),
		System: base.Torch != "", UV: uv,
		// What was installed into an interpreter that no longer runs is lost.
		Force: p.spec.Force || n.installed != "" && n.venv == nil,
		Limit: p.limit.Seconds(),
		Check: checkPython, Probe: probePython, Look: p.look(n),
	}
	if p.spec.Group == nil || !sharable(p.spec.Content) {
		return p.command(ctx, n, base, j, nil)
	}
	return p.together(ctx, n, base, j)
}

// command runs venv.py on the node. fetched may be nil.
func (p preparer) command(ctx context.Context, n node, base interpreter, j job, fetched func(wheels)) (answer, error) {
	if err := p.send(ctx, &j); err != nil {
		return answer{}, err
	}
	argument, err := json.Marshal(j)
	if err != nil {
		return answer{}, fmt.Errorf("environment: %w", err)
	}
	switch {
	case j.Pause:
		p.progress(fmt.Sprintf("making a virtual environment of %s", base))
	case j.Fetch:
		p.progress("fetching " + p.file() + " for the nodes of this kind")
	case j.UV != "":
		p.progress(fmt.Sprintf("installing %s with uv for %s", p.file(), base))
	default:
		p.progress(fmt.Sprintf("installing %s for %s", p.file(), base))
	}
	a, exit, errs, err := p.drive(ctx, shellword.Quote(base.Exe)+" -I -c "+shellword.Quote(venvPython)+" "+shellword.Quote(string(argument)), fetched)
	if err != nil {
		return answer{}, fmt.Errorf("environment: installing %s: %w", p.file(), err)
	}
	if a == nil {
		a = &answer{Step: "driver", Code: exit, Lines: lastLines(errs)}
	}
	if a.OK {
		return *a, nil
	}
	return answer{}, p.failure(*a, n, base)
}

// uvFor is the uv that installs for an interpreter; empty: pip does. uv does not
// see the packages of the base: where PyTorch is among them it would install
// another one over it.
func (n node) uvFor(base interpreter) string {
	if base.Torch != "" || !base.Modules {
		return ""
	}
	return n.uv
}

// inLine is how much goes along in the command line, which may be 128 KiB in
// all on Linux; more is sent ahead in pieces of that size.
const inLine = 48 << 10

func (p preparer) send(ctx context.Context, j *job) error {
	text := base64.StdEncoding.EncodeToString([]byte(p.spec.Content))
	if len(text) <= inLine {
		j.Content = text
		return nil
	}
	j.Upload = "dlwb/" + p.spec.Cluster + "/.requirements.part"
	for arrow := ">"; text != ""; arrow = ">>" {
		piece := text[:min(inLine, len(text))]
		text = text[len(piece):]
		line := fmt.Sprintf(`umask 077; mkdir -p "$HOME"/%s && printf %%s %s %s"$HOME"/%s`,
			shellword.Quote("dlwb/"+p.spec.Cluster), piece, arrow, shellword.Quote(j.Upload))
		exit, _, errs, err := p.run.Exec(ctx, line)
		if err != nil {
			return fmt.Errorf("environment: sending %s: %w", p.file(), err)
		}
		if exit != 0 {
			f := &Failure{Command: "write ~/" + j.Upload, ExitCode: exit, LastLines: lastLines(errs)}
			f.explain("files", node{}, p.file(), interpreter{})
			return f
		}
	}
	return nil
}

// drive runs venv.py and hands on its news, at once where the runner can.
func (p preparer) drive(ctx context.Context, line string, fetched func(wheels)) (a *answer, exit int, errs []byte, err error) {
	hear := func(said string) {
		switch {
		case strings.HasPrefix(said, "|"):
			if text := news(said[1:]); text != "" {
				p.progress(text)
			}
		case strings.HasPrefix(said, "="):
			var got answer
			if json.Unmarshal([]byte(said[1:]), &got) == nil {
				a = &got
			}
		case strings.HasPrefix(said, "+") && fetched != nil:
			var got wheels
			if json.Unmarshal([]byte(said[1:]), &got) == nil {
				fetched(got)
			}
		}
	}
	exit, errs, err = p.stream(ctx, line, hear)
	return a, exit, errs, err
}

// news is what of pip's output is worth telling while it goes on.
func news(line string) string {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "Requirement already satisfied") {
		return ""
	}
	return credentials.ReplaceAllString(line, "$1****@")
}

func (p preparer) failure(a answer, n node, base interpreter) *Failure {
	path := n.home + "/" + p.venvDir() + "/requirements.txt"
	f := &Failure{
		Command:   strings.Join(readable(a.Command, path, p.file()), " "),
		ExitCode:  a.Code,
		LastLines: readable(a.Lines, path, p.file()),
	}
	f.explain(a.Step, n, p.file(), base)
	if a.Step == "limit" {
		f.Why = fmt.Sprintf("installing %s was not done within %s", p.file(), units.Duration(p.limit))
		f.Next = "install it on the node beforehand, or choose packages that are smaller or nearer"
	}
	return f
}
