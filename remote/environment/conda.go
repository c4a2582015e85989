package environment

import (
	"context"
	_ "embed" // the scripts
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
)

// condaShell makes a conda environment, or tells what there is of one.
//
//go:embed scripts/conda.sh
var condaShell string

// activatePython tells what activating an environment sets.
//
//go:embed scripts/activate.py
var activatePython string

// The micromamba that is fetched where a node has no conda of any kind: one file
// for each processor, known by its SHA-256.
const (
	micromambaHost   = "github.com"
	micromambaURL    = "https://" + micromambaHost + "/mamba-org/micromamba-releases/releases/download/2.8.1-0/micromamba-"
	micromambaSum64  = "9689782d863c05a1bf5d2d371ba527104e7a4eb4310c1637d8653b751aed9c82"
	micromambaSumARM = "e5ba23b5945aa49dfd11022e592a510d2686a8feee810e00140b73c9fdf0ba2a"
)

// micromamba is where one is fetched from, and the SHA-256 that it has to have.
type micromamba struct{ url, sum64, sumARM string }

// known is the micromamba that is fetched where nothing else is asked for.
func (m micromamba) known() micromamba {
	if m == (micromamba{}) {
		return micromamba{micromambaURL, micromambaSum64, micromambaSumARM}
	}
	return m
}

// prefix is where the conda environment of the cluster lies, below the home
// directory. Its packages hold that path: it can't be moved.
func (p preparer) prefix() string { return "dlwb/" + p.spec.Cluster + "/conda" + p.spec.suffix() }

func (p preparer) condaKey() string { return digest("conda 1", p.spec.Content) }

// conda gives the interpreter of the cluster's conda environment, which it makes
// anew when its file changed: what a file no longer asks for must not stay.
func (p preparer) conda(ctx context.Context) (Result, error) {
	if p.spec.Python != "" {
		return Result{}, fmt.Errorf("environment: Python %s can't be chosen beside a conda environment: write python=%[1]s into %s", p.spec.Python, p.file())
	}
	p.progress("looking for the conda environment")
	n, _, err := p.condaCommand(ctx, "")
	if err != nil {
		return Result{}, err
	}
	if n.venv != nil && n.installed == p.condaKey() && !p.spec.Force {
		return p.condaResult(ctx, n, fmt.Sprintf("%s; %s did not change since it was installed", n.venv, p.file()), true)
	}
	if err := p.upload(ctx, p.condaFile(), p.spec.Content); err != nil {
		return Result{}, err
	}
	how := "yes"
	if p.spec.Force {
		how = "force"
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	n, shared, err := p.condaCommand(limited, how)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = p.overdue()
	}
	if err != nil {
		return Result{}, err
	}
	text := fmt.Sprintf("%s; %s installed in %s", n.venv, p.file(), units.Duration(time.Since(began)))
	if shared {
		text = fmt.Sprintf("%s; another node that shares the directory installed %s", n.venv, p.file())
	}
	return p.condaResult(ctx, n, text, shared)
}

// overdue is the failure of what was not done in time.
func (p preparer) overdue() *Failure {
	return &Failure{Why: fmt.Sprintf("installing %s was not done within %s", p.file(), units.Duration(p.limit)),
		Next: "install it on the node beforehand, or choose packages that are smaller or nearer"}
}

func (p preparer) condaFile() string { return "dlwb/" + p.spec.Cluster + "/environment.yml" }

func (p preparer) condaResult(ctx context.Context, n node, text string, skipped bool) (Result, error) {
	r := Result{Kind: Conda, Text: text, Skipped: skipped}
	if err := json.Unmarshal([]byte(n.env), &r.Env); err != nil {
		return Result{}, fmt.Errorf("environment: the conda environment said nothing of its variables: %w", err)
	}
	return p.finish(ctx, n, *n.venv, r)
}

// condaCommand runs conda.sh: with make empty it only looks.
func (p preparer) condaCommand(ctx context.Context, how string) (n node, shared bool, err error) {
	fetched := p.fetched.known()
	var line strings.Builder
	for _, v := range [][2]string{
		{"prefix", p.prefix()}, {"key", p.condaKey()}, {"probe", probePython}, {"activate", activatePython}, {"make", how},
		{"file", p.condaFile()}, {"url", fetched.url}, {"sum64", fetched.sum64}, {"sumarm", fetched.sumARM},
	} {
		fmt.Fprintf(&line, "%s=%s\n", v[0], shellword.Quote(v[1]))
	}
	var said []string
	var last tail
	exit, errs, err := p.stream(ctx, line.String()+condaShell, func(text string) {
		if strings.HasPrefix(text, "dlwb\t") {
			said = append(said, text)
		} else if text, ok := strings.CutPrefix(text, "|"); ok && strings.TrimSpace(text) != "" {
			last.add(text)
			if !bar.MatchString(text) {
				p.progress(news(text))
			}
		}
	})
	if err != nil {
		return node{}, false, fmt.Errorf("environment: making the conda environment: %w", err)
	}
	out := strings.Join(said, "\n")
	n = readNode([]byte(out))
	if exit == 0 && (how == "" || n.venv != nil) {
		return n, strings.Contains(out, "dlwb\tshared\t"), nil
	}
	return n, false, p.condaFailure(said, exit, append(last, lastLines(errs)...))
}

// bar is a progress bar.
var bar = pattern.New(`\d%\|`)

// condaFailure says why there is no environment.
func (p preparer) condaFailure(said []string, exit int, last []string) *Failure {
	f := &Failure{ExitCode: exit, LastLines: readable(last, "", "")}
	step := ""
	for _, line := range said {
		if command, ok := strings.CutPrefix(line, "dlwb\tcommand\t"); ok {
			f.Command = command
		}
		if word, ok := strings.CutPrefix(line, "dlwb\tstep\t"); ok {
			step = word
		}
	}
	switch step {
	case "fetch":
		f.Command = "fetch micromamba"
		f.Why = "there is no conda, mamba or micromamba on the node, and micromamba can't be fetched"
		f.Next = "install one of them there, such as Miniforge in ~/miniforge3, or let the node reach " + micromambaHost
		return f
	case "python":
		f.Why, f.Next = "there is no Python in the environment that "+p.file()+" makes", "add python to its dependencies"
		return f
	}
	text := strings.Join(f.LastLines, "\n")
	for _, r := range append(condaReasons, reasons...) {
		if m := r.pattern.FindStringSubmatch(text); m != nil {
			words := strings.NewReplacer("$line", "a line of "+p.file(), "$file", p.file(), "$version", "of this environment", "$1", group(m, 1))
			f.Why, f.Next = words.Replace(r.why), words.Replace(r.next)
			return f
		}
	}
	f.Why, f.Next = fmt.Sprintf("the conda environment could not be made from %s (exit code %d)", p.file(), exit), "see its last lines, or run it by hand on the node"
	return f
}

// condaReasons are the ways in which conda, mamba and micromamba fail, in their words.
var condaReasons = []reason{
	{
		pattern.New(`No space left on device|Disk quota exceeded`),
		"the node's disk is full, or its quota is used up",
		"look with `df -h ~` on the node, and make room (conda clean --all)",
	},
	{
		pattern.New(`Terms of Service have not been accepted`),
		"the channels of $file ask that their terms of service are accepted",
		"use conda-forge alone (channels: [conda-forge, nodefaults]), or accept them on the node: conda tos accept",
	},
	{
		pattern.New(`(?:PackagesNotFound\w*Error|ResolvePackageNotFound)[^\n]*\n(?:[^\n]*\n){0,4}?\s*- +([^\s]+)`),
		"there is no $1 in the channels of $file for this kind of machine",
		"correct the name or the version, or add the channel that has it",
	},
	{
		pattern.New(`(?:─ |nothing provides (?:requested )?)(__[^\n]+?)(?: \*)?(?:, which is missing on the system| needed by |\n|$)`),
		"what $file asks for needs $1, and the node has none",
		"choose builds for what the node has (__cuda is the driver of its GPUs, __glibc its C library)",
	},
	{
		pattern.New(`─ ([^\n]+?)(?: =\*)?(?: \*)?(?:, which)? does not exist \(perhaps`),
		"there is no $1 in the channels of $file for this kind of machine",
		"correct the name or the version, or add the channel that has it",
	},
	{
		pattern.New(`(?:nothing provides requested|package) ([^\n]+?)(?: does not exist| is not available)`),
		"there is no $1 in the channels of $file for this kind of machine",
		"correct the name or the version, or add the channel that has it",
	},
	{
		pattern.New(`nothing provides (?:requested )?([^\n]+)`),
		"there is no $1 in the channels of $file for this kind of machine",
		"correct the name or the version, or add the channel that has it",
	},
	{
		pattern.New(`UnsatisfiableError|LibMambaUnsatisfiableError|Could not solve for environment specs|RattlerUnsatisfiableError`),
		"the packages in $file exclude each other",
		"loosen one of their versions; where the last lines don't name them, as those of conda's classic solver, mamba and micromamba do",
	},
	{
		pattern.New(`CondaSSLError|SSL certificate problem|SSL peer certificate|CERTIFICATE_VERIFY_FAILED`),
		"the channels of $file have a certificate that the node does not trust",
		"check the node's clock and certificates (ca-certificates)",
	},
	{
		pattern.New(`CondaHTTPError|Could not resolve host|Couldn't resolve host|Download error|Failed to establish a new connection|UnavailableInvalidChannel|Connection(?:Refused|Reset)?Error`),
		"the channels of $file can't be reached from the node",
		"check the node's network, or name channels that it can reach",
	},
	{
		pattern.New(`(?:Transfer finalized, status: |Could not load repodata\.json for )([^\n]+)`),
		"a channel of $file does not answer as one: $1",
		"correct its address; one that asks for a login needs it on the node",
	},
	{
		pattern.New(`Found incorrect downloads|ChecksumMismatchError`),
		"a package came damaged from the channels of $file",
		"try again; if it stays, the channel itself has it so",
	},
	{
		pattern.New(`(?:EnvironmentFileNotValid|Failed to parse environment specification|EnvironmentSectionNotValid|SpecNotFound|InvalidMatchSpec|could not (?:load|parse)|error parsing|YAML|yaml-cpp: error)[^\n]*`),
		"$file is no environment file that conda understands",
		"see its last lines; https://docs.conda.io has the format",
	},
}

// upload writes a text to a file below the node's home, in pieces that a command
// line can hold.
func (p preparer) upload(ctx context.Context, name, text string) error {
	dir := name[:strings.LastIndexByte(name, '/')]
	for arrow := ">"; text != "" || arrow == ">"; arrow = ">>" {
		piece := text[:min(inLine, len(text))]
		text = text[len(piece):]
		line := fmt.Sprintf(`umask 077; mkdir -p "$HOME"/%s && printf %%s %s %s"$HOME"/%s`,
			shellword.Quote(dir), shellword.Quote(piece), arrow, shellword.Quote(name))
		exit, _, errs, err := p.run.Exec(ctx, line)
		if err != nil {
			return fmt.Errorf("environment: sending %s: %w", p.file(), err)
		}
		if exit != 0 {
			f := &Failure{Command: "write ~/" + name, ExitCode: exit, LastLines: lastLines(errs)}
			f.explain("files", node{}, p.file(), interpreter{})
			return f
		}
	}
	return nil
}
