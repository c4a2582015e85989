// Package gitread asks git about a repository of which nothing is trusted.
//
// A repository's own settings can name programs in a dozen ways (filters, hooks,
// fsmonitor, text conversion, a remote that is asked for missing objects, and
// whatever a later git adds), and an attacker chooses the names. So git never
// reads them: for each question dlwb makes a git directory of its own, whose
// settings it has written, with HEAD and a copy of the index of the repository,
// and the repository's objects beside it. What is not in these settings does
// not exist: a .gitattributes may name a filter, and no program belongs to it.
// Nothing is written into the repository.
package gitread

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
)

// limit bounds a call of git.
const limit = 20 * time.Second

// Repo is a repository, for reading. Close it.
type Repo struct {
	place
	Commit string // of HEAD
	Branch string // empty: detached
	Prefix string // where below the top the directory is: "", "sub/dir"
	Remote string // the address of origin, as its settings have it
	work   string // where git runs: the directory that was opened
	own    string // the git directory that dlwb made
}

// Open finds the repository of a directory. ErrNone: it is in none.
func Open(ctx context.Context, dir string) (*Repo, error) {
	p, err := locate(dir)
	if err != nil {
		return nil, err
	}
	return p.open(ctx, dir)
}

func (p place) open(ctx context.Context, dir string) (*Repo, error) {
	r := &Repo{place: p}
	var err error
	if r.Commit, r.Branch, err = p.head(); err != nil {
		return nil, err
	}
	if r.work, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	prefix, err := filepath.Rel(p.top, r.work)
	if err != nil {
		return nil, err
	}
	if prefix != "." {
		r.Prefix = filepath.ToSlash(prefix)
	}
	if r.own, err = os.MkdirTemp("", "dlwb-git-"); err != nil {
		return nil, err
	}
	if err := r.fill(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close removes what was made to read the repository.
func (r *Repo) Close() error { return os.RemoveAll(r.own) }

// fill makes the git directory that git is shown.
func (r *Repo) fill(ctx context.Context) error {
	for _, dir := range []string{"objects", "refs", "info", "home"} {
		if err := os.Mkdir(filepath.Join(r.own, dir), 0o700); err != nil {
			return err
		}
	}
	err := os.WriteFile(filepath.Join(r.own, "HEAD"), []byte(r.Commit+"\n"), 0o600)
	if err == nil {
		err = r.configure(ctx)
	}
	for _, name := range []string{"info/exclude", "info/attributes"} {
		if err == nil {
			err = copyRegular(filepath.Join(r.common, name), filepath.Join(r.own, name))
		}
	}
	if err == nil {
		err = r.copyIndex()
	}
	return err
}

// copyIndex copies the index, and the files that a split one consists of.
func (r *Repo) copyIndex() error {
	names := []string{"index"}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "sharedindex.") {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if err := copyRegular(filepath.Join(r.dir, name), filepath.Join(r.own, name)); err != nil {
			return err
		}
	}
	return nil
}

// copyRegular copies a file with its time, by which git tells a file that was
// changed in the second in which the index was written. None is no error.
func copyRegular(from, to string) error {
	in, err := openRegular(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// Git runs git on the repository and returns what it prints.
func (r *Repo) Git(ctx context.Context, in []byte, args ...string) ([]byte, error) {
	return r.run(ctx, r.work, r.environ(r.top), in, args...)
}

// environ is what git is told by variables: that its settings are ours, where
// the working tree is, and to ask nobody.
func (r *Repo) environ(tree string) []string {
	objects := filepath.Join(r.common, "objects")
	if strings.ContainsAny(objects, string(os.PathListSeparator)+"\"\n") {
		objects = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(objects) + `"`
	}
	env := append(withoutGit(os.Environ()),
		"GIT_DIR="+r.own, "GIT_WORK_TREE="+tree, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objects)
	return append(env, r.alone()...)
}

// alone are the variables by which git finds no settings but those in its git
// directory. Those before 2.32 look for them in the home directory.
func (r *Repo) alone() []string {
	home := filepath.Join(r.own, "home")
	return []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull,
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_EDITOR=false", "LC_ALL=C",
	}
}

// withoutGit leaves out the variables that change what git does.
func withoutGit(environ []string) (kept []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case strings.HasPrefix(strings.ToUpper(name), "GIT_"), name == "SSH_ASKPASS", name == "PAGER", name == "EDITOR", name == "VISUAL":
		default:
			kept = append(kept, v)
		}
	}
	return kept
}

// guards are said again on the command line: each would hold by itself.
var guards = []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.quotePath=false",
	"-c", "core.untrackedCache=false", "-c", "protocol.allow=never", "-c", "safe.bareRepository=explicit"}

func (r *Repo) run(ctx context.Context, dir string, env []string, in []byte, args ...string) ([]byte, error) {
	ctx, cancel := waits.Within(ctx, waits.Wait{On: "git", What: "to tell the state of the code", Limit: limit})
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append(append([]string{}, guards...), args...)...)
	cmd.Dir, cmd.WaitDelay, cmd.Env = dir, time.Second, env
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil {
		if said := lastLine(errs.String()); said != "" {
			return nil, fmt.Errorf("git %s: %s", args[0], said)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
