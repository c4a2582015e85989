package planning

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/environment"
	"github.com/dlwb/dlwb/settings"
)

// inside holds a profile to its own directory: what it sends lies there or
// below, by the real paths, unless the user has allowed another place. A
// profile that no file holds is dlwb's own.
func (m *Maker) inside(p *profiles.Profile) error {
	user, err := m.owner.Settings(p.Path)
	if err != nil {
		return err
	}
	code, err := filepath.EvalSymlinks(p.CodeDir())
	if err != nil {
		return nil // what is missing is said by those who look for it
	}
	if p.Path != "" && !m.mayLieAt(code, p, user) {
		return profiles.Errors{p.Fault("code.dir", fmt.Sprintf("code.dir %q", p.Code.Dir),
			fmt.Sprintf("it is %s, outside of %s, where the profile lies: a profile may send only what lies there or below", code, filepath.Dir(p.Path)),
			"", fmt.Sprintf("move the profile up, or allow it: --allow-code %s, or code.allow in %s", shellword.Join(code), user.Path))}
	}
	if _, err := p.ResultsTo("run"); err != nil && p.Path != "" {
		return profiles.Errors{asFieldError(p, err)}
	}
	return m.environmentInside(code, p, user)
}

// asFieldError is an error about results.to as one of the profile's.
func asFieldError(p *profiles.Profile, err error) *profiles.Error {
	if e := new(profiles.Error); errors.As(err, &e) {
		return e
	}
	return p.Fault("results.to", "results.to", err.Error(), "", "name another directory")
}

// mayLieAt reports whether a profile's code may lie in a directory.
func (m *Maker) mayLieAt(code string, p *profiles.Profile, user settings.Settings) bool {
	allowed := append([]string{filepath.Dir(p.Path)}, user.AllowCode...)
	m.checkouts.Range(func(dir, _ any) bool {
		allowed = append(allowed, dir.(string))
		return true
	})
	for _, dir := range allowed {
		if below(dir, code) {
			return true
		}
	}
	return false
}

// below reports whether a real path is a directory or lies below it.
func below(dir, path string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(real, path)
	return err == nil && filepath.IsLocal(rel)
}

// environmentInside holds the file of the environment, which is sent, to the
// code directory.
func (m *Maker) environmentInside(code string, p *profiles.Profile, user settings.Settings) error {
	file := p.EnvironmentFile()
	if file == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil // CheckFiles says so
	}
	fault := func(why, next string) error {
		return profiles.Errors{p.Fault("environment."+p.Environment.Kind, fmt.Sprintf("environment.%s %q", p.Environment.Kind, p.Environment.File), why, "", next)}
	}
	if !below(code, real) && !(len(user.AllowCode) > 0 && m.mayLieAt(real, p, user)) {
		return fault(fmt.Sprintf("it is %s, outside of the code directory %s", real, code), "put it there")
	}
	if what := secretfile.ByName(filepath.ToSlash(real)); what != "" {
		return fault("by its name it holds "+what, "give the file of the environment another name")
	}
	return nil
}

// requirementsMost bounds the file of an environment.
const requirementsMost = 1 << 20

// Requirements reads the file that the environment is made from.
func (m *Maker) Requirements(p *profiles.Profile) (string, error) {
	if err := m.inside(p); err != nil {
		return "", err
	}
	name := p.EnvironmentFile()
	info, err := os.Stat(name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > requirementsMost {
		return "", fmt.Errorf("%s is no file of requirements", name)
	}
	f, err := plainfile.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, requirementsMost))
	if what := secretfile.ByContent(name, text); what != "" {
		return "", fmt.Errorf("%s is %s", name, what)
	}
	if err == nil && filepath.Base(name) == "pyproject.toml" {
		return dependencies(name, text)
	}
	if err == nil && p.Environment.Kind == environment.Venv {
		whole, err := included(p.CodeDir(), name, string(text))
		if err == nil || !p.Environment.Optional {
			return whole, err
		}
	}
	return string(text), err
}
