package environment

import (
	"context"
	_ "embed" // the script
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
)

// pythonShell finds or installs a version of Python.
//
//go:embed scripts/python.sh
var pythonShell string

// uvPin is the uv that is installed on a node which has none and is asked for a
// Python that it does not have.
const uvPin = "uv==0.13.9"

var versionForm = pattern.New(`^3(?:\.[0-9]{1,3}){0,2}$`)

// IsVersion reports whether the Python of a profile is a version, such as 3.12,
// and no path or name of an interpreter.
func IsVersion(python string) bool { return versionForm.MatchString(python) }

// is reports whether an interpreter has a version: 3.12.4 has 3.12.
func (i interpreter) is(version string) bool {
	return i.Version == version || strings.HasPrefix(i.Version, version+".")
}

// withVersion makes the version that is asked for the one that is wanted: an
// interpreter that is on the node, else one that uv finds or installs there.
func (p preparer) withVersion(ctx context.Context, n node) (node, error) {
	want := p.spec.Python
	if !IsVersion(want) || n.wanted != nil && n.wanted.is(want) {
		return n, nil
	}
	for _, i := range n.pythons {
		if i.is(want) {
			n.wanted = &i
			return n, nil
		}
	}
	n.wanted = nil
	if p.onlyLook {
		return n, nil
	}
	if err := p.findVersion(ctx, n); err != nil {
		return n, err
	}
	again, err := p.probe(ctx)
	if err == nil && (again.wanted == nil || !again.wanted.is(want)) {
		err = again.notThere(want)
	}
	return again, err
}

// findVersion runs python.sh, which keeps what it finds where probe.sh looks.
func (p preparer) findVersion(ctx context.Context, n node) error {
	var line strings.Builder
	for _, v := range [][2]string{{"want", p.spec.Python}, {"uv", n.uv}, {"base", n.ableBase()}, {"pin", uvPin}} {
		fmt.Fprintf(&line, "%s=%s\n", v[0], shellword.Quote(v[1]))
	}
	p.progress("looking for Python " + p.spec.Python)
	exit, errs, err := p.stream(ctx, line.String()+pythonShell, func(said string) {
		if text, ok := strings.CutPrefix(said, "|"); ok {
			p.progress(text)
		}
	})
	if err != nil {
		return fmt.Errorf("environment: looking for Python %s: %w", p.spec.Python, err)
	}
	if exit == 0 {
		return nil
	}
	f := n.notThere(p.spec.Python)
	f.ExitCode, f.LastLines = exit, readable(lastLines(errs), "", "")
	switch exit {
	case 3:
		f.Why += ", and there is no uv that could install it"
	case 4:
		f.Command, f.Why = "pip install "+uvPin, f.Why+", and uv, which could install it, can't be installed there"
	default:
		f.Command, f.Why = "uv python install "+p.spec.Python, f.Why+", and uv could not install it"
	}
	return f
}

// ableBase is an interpreter that can make a virtual environment for uv.
func (n node) ableBase() string {
	for _, i := range n.pythons {
		if i.Venv {
			return i.Exe
		}
	}
	return ""
}

// stream runs a line and hands on each line of its output, at once where the
// runner can.
func (p preparer) stream(ctx context.Context, line string, hear func(string)) (exit int, errs []byte, err error) {
	if s, ok := p.run.(Streamer); ok {
		return s.Stream(ctx, line, hear)
	}
	exit, out, errs, err := p.run.Exec(ctx, line)
	for said := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n"), "\n") {
		hear(said)
	}
	return exit, errs, err
}
