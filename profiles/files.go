package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/dockerfile"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/plainfile"
)

// CodeDir is the absolute path of the directory that is copied to the nodes.
func (p *Profile) CodeDir() string {
	dir := filepath.FromSlash(p.Code.Dir)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(filepath.Dir(p.Path), dir)
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// ResultsTo is the absolute path of the directory that the results of a run are
// brought to; "" when the profile names none. A link on the way that leads out
// of the profile's directory is an error: whose files lie there, it can't know.
func (p *Profile) ResultsTo(run string) (string, error) {
	if p.Results.To == "" {
		return "", nil
	}
	root, err := filepath.Abs(filepath.Dir(p.Path))
	if err != nil {
		return "", err
	}
	to := filepath.Join(root, filepath.FromSlash(strings.ReplaceAll(p.Results.To, "{run}", run)))
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	for at := to; at != root; at = filepath.Dir(at) {
		there, err := filepath.EvalSymlinks(at)
		if os.IsNotExist(err) {
			continue
		}
		if rel, relErr := filepath.Rel(real, there); err != nil || relErr != nil || !filepath.IsLocal(rel) {
			return "", p.Fault("results.to", quote(p.Results.To), "it leads out of the directory of the profile, to "+there, "",
				"name a directory inside it; dlwb pull RUN DIR brings results anywhere")
		}
		break
	}
	return to, nil
}

// EnvironmentFile is the absolute path of the file the environment is made
// from; "" when there is none.
func (p *Profile) EnvironmentFile() string {
	e := p.Environment
	if e.File == "" || e.IsImage() || e.IsNamed() {
		return ""
	}
	return inside(p.CodeDir(), e.File)
}

// ImageFile is the absolute path of the Dockerfile that the image of a job is built from
// here; "" when there is none.
func (p *Profile) ImageFile() string {
	if !dockerfile.Is(p.Machines.Image) || !providers.Named(p.Provider).Has("machines.repository") {
		return ""
	}
	return inside(p.CodeDir(), p.Machines.Image)
}

// IsImage reports whether the environment is an image that exists, and is not
// built from a file.
func (e Environment) IsImage() bool {
	return e.Kind == "docker" && !dockerfile.Is(e.File) && !isCondaFile(e.File)
}

// IsNamed reports whether the environment is one of conda's that is on the nodes
// already, by its name or path.
func (e Environment) IsNamed() bool { return e.Kind == "conda" && isCondaName(e.File) }

// condaName is what conda calls an environment, or where one lies on a node.
var condaName = pattern.New(`^(?:~?/[^\n]+|[A-Za-z0-9_][A-Za-z0-9_.+-]*)$`)

func isCondaName(text string) bool { return condaName.MatchString(text) && !isCondaFile(text) }

func isCondaFile(name string) bool {
	return strings.HasSuffix(name, ".yml") || strings.HasSuffix(name, ".yaml")
}

// inside is a path of a profile as one of this machine.
func inside(dir, name string) string {
	if file := filepath.FromSlash(name); filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

// Hash identifies the path and the content of a profile: what a person trusts
// when they trust it.
func (p *Profile) Hash() string {
	sum := sha256.Sum256([]byte(p.Path + "\x00" + p.Source))
	return hex.EncodeToString(sum[:])
}

// Gives reports whether the file that the profile was read from has a key, so
// that its value is no default.
func (p *Profile) Gives(key string) bool {
	_, ok := p.marks[key]
	return ok
}

// Fault makes an error about a key of the profile that is found only later; it
// names the line and column of the key's value, when the profile has one.
func (p *Profile) Fault(key, what, why, nearest, next string) *Error {
	e := &Error{Path: p.Path, Key: key, What: what, Why: why, Nearest: nearest, Next: next, width: 1}
	if m, ok := p.marks[key]; ok {
		e.Line, e.Column, e.width = m.line, m.column, max(1, m.width)
		if m.quoted {
			e.width += 2
		}
		e.source = newSource(p.Path, []byte(strings.TrimPrefix(p.Source, "\uFEFF"))).show(e.Line)
	}
	return e
}

// CheckProvider tells by an error that the provider has a name in the format and
// no code in this dlwb. The format is wider than any one dlwb, so that reading
// such a profile is no fault; acting on it is.
func (p *Profile) CheckProvider() error {
	nearest := providers.Named(p.Provider).Planned
	if nearest == "" {
		return nil
	}
	return Errors{p.Fault("provider", "provider "+quote(p.Provider), "this dlwb can make no clusters with it yet", nearest,
		"one of "+strings.Join(Usable, ", "))}
}

// CheckFiles looks whether the files and directories that the profile names
// are there: the code directory, the file of the environment, and the training
// script. What is missing comes at once, as Errors.
func (p *Profile) CheckFiles() error {
	dir := p.CodeDir()
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		what := quote(p.Code.Dir)
		if err == nil {
			return Errors{p.Fault("code.dir", what, "it is no directory", "", "name the directory that the training runs in")}
		}
		near := nearestFile(filepath.Dir(dir), filepath.Base(dir), nil)
		return Errors{p.Fault("code.dir", what, "it does not exist", near, "name the directory that the training runs in")}
	}
	var errs Errors
	if file := p.EnvironmentFile(); file != "" {
		errs = append(errs, p.checkFile(dir, "environment."+p.Environment.Kind, p.Environment.File)...)
	}
	if script := Script(p.Run.Command); script != "" {
		errs = append(errs, p.checkFile(dir, "run.command", script)...)
	} else if p.Environment.Kind != "docker" { // an image has a PATH and tools of its own
		errs = append(errs, p.checkProgram(dir)...)
	}
	errs = append(errs, p.checkInputs()...)
	if len(errs) == 0 {
		return nil
	}
	slices.SortStableFunc(errs, func(a, b *Error) int { return a.Line - b.Line })
	return errs
}

func (p *Profile) checkFile(dir, key, name string) Errors {
	file := inside(dir, name)
	st, err := os.Stat(file)
	switch {
	case err == nil && st.Mode().IsRegular():
		return nil
	case err == nil:
		return Errors{p.Fault(key, quote(name), "it is no file", "", "name a file in "+dir)}
	case !os.IsNotExist(err):
		return Errors{p.Fault(key, quote(name), err.Error(), "", "make it readable")}
	}
	ext := filepath.Ext(file)
	near := nearestFile(filepath.Dir(file), filepath.Base(file), func(n string) bool { return filepath.Ext(n) == ext })
	if near != "" {
		near = path.Join(path.Dir(name), near)
	} else {
		near = elsewhere(dir, path.Base(name))
	}
	e := p.Fault(key, quote(name), "it does not exist in "+dir, near, "")
	if near == "" {
		e.Next = "paths are relative to the code directory; make the file, or name another"
	}
	if key == "run.command" {
		e.point(name)
	}
	return Errors{e}
}

// point narrows a fault to a piece of its value, where that stands in the line
// as it is.
func (e *Error) point(piece string) {
	line := []rune(e.source)
	from := min(max(e.Column-1, 0), len(line))
	if before, _, ok := strings.Cut(string(line[from:]), piece); ok {
		e.Column += utf8.RuneCountInString(before)
		e.width = utf8.RuneCountInString(piece)
	}
}

// maxListed is how many names of a directory are looked at for a likely one.
const maxListed = 2000

func nearestFile(dir, name string, ok func(string) bool) string {
	var names []string
	for _, n := range list(dir) {
		if ok == nil || ok(n) {
			names = append(names, n)
		}
	}
	return nearword.Nearest(name, names)
}

// elsewhere looks for a file of this name one directory further down.
func elsewhere(dir, name string) string {
	for _, sub := range list(dir) {
		if st, err := os.Stat(filepath.Join(dir, sub, name)); err == nil && st.Mode().IsRegular() && !strings.HasPrefix(sub, ".") {
			return path.Join(sub, name)
		}
	}
	return ""
}

func list(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(maxListed) // what could be read is enough for a guess
	slices.Sort(names)
	return names
}

// readBounded reads at most limit bytes of a file.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := plainfile.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// launchers are programs that take a training script as an argument.
var launchers = pattern.New(`^(python[0-9.]*|torchrun|accelerate|deepspeed|horovodrun|env|nohup)$`)

// Script is the training script that a command names, as a path relative to
// the code directory; "" when it names none, or one outside.
func Script(command string) string {
	words := words(command)
	for i, w := range words {
		if strings.HasSuffix(w, ".py") && !strings.HasPrefix(w, "-") {
			clean := path.Clean(w)
			if path.IsAbs(clean) || strings.HasPrefix(clean, "..") || strings.HasPrefix(clean, "~") || strings.ContainsAny(w, `$*\`) {
				return ""
			}
			return w
		}
		if i == 0 && !launchers.MatchString(path.Base(w)) || w == "-m" || w == "-c" {
			return ""
		}
	}
	return ""
}

// words splits a command at spaces; quotes group.
func words(command string) (all []string) {
	var word strings.Builder
	open, started := rune(0), false
	for _, r := range command + " " {
		switch {
		case open != 0 && r == open:
			open = 0
		case open == 0 && (r == '"' || r == '\''):
			open, started = r, true
		case open == 0 && (r == ' ' || r == '\t'):
			if started {
				all = append(all, word.String())
				word.Reset()
			}
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	return all
}
