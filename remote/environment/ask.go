package environment

import (
	"context"
	"errors"
	"fmt"

	"github.com/dlwb/dlwb/internal/modules"
)

// AskLine is a line of sh by which a machine that is no node yet tells which Python
// it has, for Told; empty where that does not matter. The machine stays as it is.
func (s Spec) AskLine() string {
	p := s.looker(nil)
	switch {
	case s.named():
		return modules.Line(s.Modules) + p.namedLine()
	case s.Kind == System || s.Kind == Venv:
		return modules.Line(s.Modules) + p.probeLine()
	}
	return ""
}

// Told is what the environment step would use on a machine that has printed this for
// AskLine. The error is a Failure where that step would fail.
func (s Spec) Told(printed []byte) (Result, error) {
	p := s.looker(printed)
	switch {
	case loadFailed.Match(printed):
		return Result{}, s.noModule(printed)
	case s.named():
		return p.condaNamed(context.Background())
	}
	n := readNode(printed)
	if n.home == "" {
		return Result{}, errors.New("environment: the machine did not say which Python it has")
	}
	n, err := p.withVersion(context.Background(), n)
	if err != nil {
		return Result{}, err
	}
	base, err := n.choose(s.Python)
	if IsVersion(s.Python) && err != nil && (n.uv != "" || n.ableBase() != "") {
		return Result{Kind: s.Kind, Home: n.home, Text: fmt.Sprintf("Python %s is not there; uv will install it", s.Python)}, nil
	}
	if err != nil {
		return Result{}, err
	}
	r := p.systemResult(n, base)
	r.Kind, r.Python, r.Version, r.Torch, r.Home = s.Kind, base.Exe, base.Version, base.Torch, n.home
	return r, nil
}

// looker looks and makes nothing. What a machine has printed stands for the machine.
func (s Spec) looker(printed []byte) preparer {
	return preparer{run: answered(printed), spec: s, progress: func(string) {}, dirs: usualDirs, onlyLook: true}
}

// answered is a Runner whose command has run already.
type answered []byte

// Exec gives what was printed.
func (a answered) Exec(context.Context, string) (int, []byte, []byte, error) {
	return 0, a, nil, nil
}
