package environment

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/modules"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
)

// loadFailed is what modules.Line says of a module that could not be loaded.
var loadFailed = pattern.New(`(?m)^dlwb\tmodule\t([^\t\n]*)\t([^\n]*)`)

// noModule is the failure of a module that could not be loaded.
func (s Spec) noModule(printed []byte) *Failure {
	m := loadFailed.FindStringSubmatch(string(printed))
	f := &Failure{Command: "module load " + m[1], ExitCode: 65, LastLines: []string{m[2]},
		Why:  fmt.Sprintf("the module %s can't be loaded there: %s", m[1], strings.TrimSpace(m[2])),
		Next: "see what there is: module avail"}
	if m[1] == "" {
		f.Command = "module load " + strings.Join(s.Modules, " ")
		f.Why, f.Next = "there are no modules on the node: neither Environment Modules nor Lmod is installed", "leave machines.modules out for it, or install one of the two"
	}
	return f
}

// moduled runs everything with what modules have set.
type moduled struct {
	Runner
	line string
}

// Exec runs a line with it.
func (m moduled) Exec(ctx context.Context, line string) (int, []byte, []byte, error) {
	return m.Runner.Exec(ctx, m.line+line)
}

// streamed is a moduled that streams.
type streamed struct {
	moduled
	to Streamer
}

// Stream runs a line with it.
func (s streamed) Stream(ctx context.Context, line string, stdout func(string)) (int, []byte, error) {
	return s.to.Stream(ctx, s.line+line, stdout)
}

// load finds out what the modules of a node set, and has all that follows run with
// them.
func (p *preparer) load(ctx context.Context) (env []string, err error) {
	if len(p.spec.Modules) == 0 {
		return nil, nil
	}
	p.progress("loading " + strings.Join(p.spec.Modules, ", "))
	line := modules.Line(p.spec.Modules)
	const cut = "dlwb-modules"
	exit, out, errs, err := p.run.Exec(ctx, "env -0; printf '"+cut+"\\0'\n"+line+"env -0")
	switch {
	case err != nil:
		return nil, fmt.Errorf("environment: loading modules: %w", err)
	case loadFailed.Match(afterNULs(out)):
		return nil, p.spec.noModule(afterNULs(out))
	case exit != 0:
		return nil, &Failure{Command: "module load " + strings.Join(p.spec.Modules, " "), ExitCode: exit, LastLines: lastLines(errs),
			Why: "the modules can't be loaded", Next: "try it on the node: dlwb ssh"}
	}
	before, after, _ := bytes.Cut(out, []byte(cut+"\x00"))
	env = changed(before, after)
	m := moduled{p.run, exports(env)}
	if s, can := p.run.(Streamer); can {
		p.run = streamed{m, s}
	} else {
		p.run = m
	}
	return env, nil
}

// exports are lines of sh that set variables.
func exports(env []string) string {
	var line strings.Builder
	for _, kv := range env {
		line.WriteString("export " + shellword.Quote(kv) + "\n")
	}
	return line.String()
}

// afterNULs is the report of a failure, which stands behind variables.
func afterNULs(out []byte) []byte { return out[bytes.LastIndexByte(out, 0)+1:] }

// variable is one that a command can be given: no function of a shell.
var variable = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*=[^\n]*$`)

// changed are the variables that are new in the second of two environments.
func changed(before, after []byte) []string {
	had := strings.Split(string(before), "\x00")
	env := []string{}
	for _, kv := range strings.Split(string(after), "\x00") {
		name, _, _ := strings.Cut(kv, "=")
		if variable.MatchString(kv) && !slices.Contains([]string{"_", "SHLVL", "PWD", "OLDPWD", "PS1"}, name) && !slices.Contains(had, kv) {
			env = append(env, kv)
		}
	}
	slices.Sort(env)
	return env
}
