package gitread

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// project is a git repository made by git itself.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T, args ...string) project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT RUN: there is no git here")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	p := project{t, t.TempDir()}
	p.git(append([]string{"init", "-q", "-b", "main"}, args...)...)
	p.write("train.py", "print(1)\n")
	p.write("sub/x.py", "x = 1\n")
	p.commit()
	return p
}

func (p project) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = p.dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

func (p project) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) commit() {
	p.git("add", "-A")
	p.git("commit", "-q", "-m", "state")
}

// changes opens a directory of the project and says what is not committed.
func (p project) changes(dir string) (*Repo, Changes) {
	p.t.Helper()
	r, err := Open(context.Background(), filepath.Join(p.dir, dir))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = r.Close() })
	c, err := r.Changes(context.Background(), Rules{Secret: func(path string) bool { return strings.HasSuffix(path, ".key") }, NewMost: 1 << 20, NewCount: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	return r, c
}

// clean holds that a project is at its commit, and that nothing differs.
func (p project) clean(dir string) *Repo {
	p.t.Helper()
	r, c := p.changes(dir)
	if c.Dirty || len(c.Diff) > 0 || len(c.Left) > 0 {
		p.t.Errorf("nothing was changed: %+v\n%s", c, c.Diff)
	}
	if want := p.git("rev-parse", "HEAD"); r.Commit != want {
		p.t.Errorf("at %s, want %s", r.Commit, want)
	}
	return r
}

// dirty holds that the diff is what git itself prints.
func (p project) dirty(dir string) (*Repo, Changes) {
	p.t.Helper()
	r, c := p.changes(dir)
	if want := p.git("diff", "--binary", "HEAD", "--", dir); !c.Dirty || strings.TrimSpace(string(c.Diff)) != want || want == "" {
		p.t.Errorf("the diff is\n%s\nand git says\n%s", c.Diff, want)
	}
	return r, c
}

func TestARepositoryIsReadAsGitReadsIt(t *testing.T) {
	for name, make := range map[string]func(p project) project{
		"plain": func(p project) project { return p },
		"packed": func(p project) project {
			p.git("pack-refs", "--all")
			p.git("gc", "-q")
			return p
		},
		"shared": func(p project) project {
			to := project{p.t, filepath.Join(p.t.TempDir(), "it's: \"shared\"")}
			p.git("clone", "-q", "--shared", ".", to.dir)
			return to
		},
		"shallow": func(p project) project {
			p.write("train.py", "print(2)\n")
			p.commit()
			to := project{p.t, filepath.Join(p.t.TempDir(), "x")}
			p.git("clone", "-q", "--depth", "1", "file://"+p.dir, to.dir)
			return to
		},
		"partial": func(p project) project {
			p.git("config", "uploadpack.allowFilter", "true")
			to := project{p.t, filepath.Join(p.t.TempDir(), "x")}
			p.git("clone", "-q", "--filter=blob:none", "file://"+p.dir, to.dir)
			return to
		},
		"a linked working tree": func(p project) project {
			to := project{p.t, filepath.Join(p.t.TempDir(), "x")}
			p.git("worktree", "add", "-q", "-b", "two", to.dir)
			return to
		},
		"a split index": func(p project) project {
			p.git("update-index", "--split-index")
			return p
		},
		"an index with a cache": func(p project) project {
			p.git("update-index", "--untracked-cache")
			p.git("status")
			return p
		},
		"a sparse checkout": func(p project) project {
			p.write("left/out", "x\n")
			p.commit()
			p.git("sparse-checkout", "set", "sub")
			return p
		},
		"a submodule": func(p project) project {
			from := project{p.t, filepath.Join(p.dir, "more")}
			from.write("f", "x\n")
			from.git("init", "-q")
			from.commit()
			to := project{p.t, p.t.TempDir()}
			to.git("init", "-q")
			to.git("submodule", "add", "-q", "file://"+from.dir, "below/it")
			to.commit()
			in := project{p.t, filepath.Join(to.dir, "below", "it")}
			in.write("train.py", "print(0)\n")
			in.write("sub/x.py", "")
			in.commit()
			return in
		},
		"line ends of another system": func(p project) project {
			p.git("config", "core.autocrlf", "true")
			p.write("train.py", "print(1)\r\n")
			p.git("add", "-A")
			return p
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := make(newProject(t))
			p.clean(".")
			p.clean("sub")
			p.write("sub/x.py", "x = 2\n")
			p.write("train.py", "print(3)\n")
			before := p.git("status", "--porcelain")
			p.dirty(".")
			r, c := p.dirty("sub")
			if r.Prefix != "sub" || strings.Contains(string(c.Diff), "train.py") {
				t.Errorf("below %q:\n%s", r.Prefix, c.Diff)
			}
			if branch := p.git("rev-parse", "--abbrev-ref", "HEAD"); r.Branch != branch {
				t.Errorf("on %s, want %s", r.Branch, branch)
			}
			if after := p.git("status", "--porcelain"); after != before {
				t.Errorf("it was changed: %q, %q", before, after)
			}
			p.git("checkout", "-q", "--detach")
			if r, _ := p.changes("."); r.Branch != "" {
				t.Errorf("detached, and on %s", r.Branch)
			}
		})
	}
}

func TestARepositoryOfTheOtherHashIsRead(t *testing.T) {
	p := newProject(t, "--object-format=sha256")
	p.clean(".")
	p.write("train.py", "print(3)\n")
	p.dirty(".")
}

func TestNothingIsWrittenIntoARepository(t *testing.T) {
	p := newProject(t)
	p.write("train.py", "print(3)\n")
	p.write("new.py", "")
	look := func() string {
		out, err := exec.Command("find", p.dir, "-printf", "%p %s %T@ %C@\n").Output()
		if err != nil {
			t.Skip("NOT RUN: find can't print here")
		}
		return string(out)
	}
	before := look()
	r, c := p.changes(".")
	if _, err := r.CheckOut(context.Background(), t.TempDir(), r.Commit); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(c.Diff), "new.py") {
		t.Errorf("the new file is not in\n%s", c.Diff)
	}
	if after := look(); after != before {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(r.own); !os.IsNotExist(err) {
		t.Errorf("%s is left", r.own)
	}
}

// lfs gives a project files that a filter keeps as pointers, as Git LFS does.
func (p project) lfs() {
	script := filepath.Join(p.t.TempDir(), "clean")
	if err := testprogram.Write(script, []byte("#!/bin/sh\nf=$(mktemp); cat > $f\n"+
		`printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %s\n' $(sha256sum < $f | cut -c1-64) $(wc -c < $f); rm $f`+"\n"), 0o755); err != nil {
		p.t.Fatal(err)
	}
	p.git("config", "filter.lfs.clean", script)
	p.git("config", "filter.upper.clean", "tr a-z A-Z")
	p.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n*.up filter=upper\n")
	p.write("w.bin", "weights\n")
	p.write("n.up", "notes\n")
	// A file as young as the index is compared whatever its time says.
	if err := os.Chtimes(filepath.Join(p.dir, "n.up"), long, long); err != nil {
		p.t.Fatal(err)
	}
	p.commit()
}

var long = time.Now().Add(-time.Hour)

func TestFilesOfGitLFSAreComparedWithoutItsProgram(t *testing.T) {
	p := newProject(t)
	p.lfs()
	p.clean(".")
	p.write("w.bin", "weights\n") // another time, the same content
	p.clean(".")
	p.write("train.py", "print(4)\n")
	_, one := p.changes(".")
	p.write("w.bin", "other weights\n")
	_, two := p.changes(".")
	if two.Hash == one.Hash || !strings.Contains(strings.Join(two.Left, " "), "w.bin (kept by the filter lfs)") {
		t.Errorf("a file of LFS was changed: %+v", two)
	}
	if strings.Contains(string(two.Diff), "weights") || !strings.Contains(string(two.Diff), "print(4)") {
		t.Errorf("the diff is\n%s", two.Diff)
	}
	p.write("w.bin", "weights\n")
	p.write("n.up", "notes\n")
	if _, c := p.changes("."); !strings.Contains(strings.Join(c.Left, " "), "n.up (it may be unchanged: git compares it by the filter upper, which is not run)") {
		t.Errorf("a file of another filter: %+v", c)
	}
}

func TestSubmodulesAreComparedByTheirCommits(t *testing.T) {
	p := newProject(t)
	from := project{t, t.TempDir()}
	from.git("init", "-q")
	from.write("f", "1\n")
	from.commit()
	p.git("submodule", "add", "-q", "file://"+from.dir, "dep")
	p.commit()
	p.clean(".")
	in := project{t, filepath.Join(p.dir, "dep")}
	in.write("f", "2\n")
	_, one := p.changes(".")
	if !one.Dirty || !strings.Contains(strings.Join(one.Left, " "), "the submodule dep (has changes of its own)") {
		t.Errorf("changed within: %+v", one)
	}
	in.commit()
	if _, c := p.changes("."); !c.Dirty || c.Hash == one.Hash || !strings.Contains(strings.Join(c.Left, " "), "is recorded") {
		t.Errorf("at another commit: %+v", c)
	}
}

func TestTheUsersOwnIgnoredFilesAreNoChanges(t *testing.T) {
	p := newProject(t)
	p.write(".DS_Store", "x")
	p.write("mine", "x")
	if _, c := p.changes("."); !c.Dirty {
		t.Error("two new files are a change")
	}
	home := os.Getenv("HOME")
	if err := os.WriteFile(filepath.Join(home, "ignored"), []byte(".DS_Store\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[core]\n\texcludesFile = ~/ignored\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, ".git", "info", "exclude"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.clean(".")
}

func TestSecretsAreInNoDiff(t *testing.T) {
	p := newProject(t)
	p.write("a.key", "old\n")
	p.commit()
	p.write("a.key", "hidden\n")
	p.git("add", "a.key") // staged too
	p.write("b.key", "hidden\n")
	_, c := p.changes(".")
	if said := strings.Join(c.Left, " "); !c.Dirty || strings.Contains(string(c.Diff), "hidden") || !strings.Contains(said, "a.key") || !strings.Contains(said, "b.key") {
		t.Errorf("%v\n%s", c.Left, c.Diff)
	}
}

func TestAGitFileIsFollowedOnlyWhereItIsNamedInTurn(t *testing.T) {
	private, p := newProject(t), project{t, t.TempDir()}
	other := filepath.Join(private.dir, ".git")
	for name, files := range map[string]map[string]string{
		"another's directory": {".git": "gitdir: " + other + "\n"},
		"a forged working tree": {".git": "gitdir: meta/worktrees/w\n", "meta/worktrees/w/gitdir": filepath.Join(p.dir, ".git") + "\n",
			"meta/worktrees/w/commondir": other + "\n", "meta/worktrees/w/HEAD": "ref: refs/heads/main\n"},
		"a directory that borrows": {".git/HEAD": "ref: refs/heads/main\n", ".git/commondir": other + "\n", ".git/objects/x": "", ".git/refs/x": ""},
		"one that is nowhere":      {".git": "gitdir: none\n"},
		"nonsense":                 {".git": "x\n"},
	} {
		if err := os.RemoveAll(filepath.Join(p.dir, ".git")); err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			p.write(file, text)
		}
		r, err := Open(context.Background(), p.dir)
		if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), ".git") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestACheckoutIsARepositoryOfItsOwn(t *testing.T) {
	p := newProject(t)
	p.lfs()
	p.git("remote", "add", "origin", "https://example.com/x.git")
	old := p.git("rev-parse", "HEAD")
	p.write("train.py", "print(9)\n")
	_, c := p.changes(".")
	p.commit()
	r, err := Open(context.Background(), p.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	to := project{t, t.TempDir()}
	kept, err := r.CheckOut(context.Background(), to.dir, old)
	if err != nil || fmt.Sprint(kept) != "[n.up w.bin]" {
		t.Fatalf("kept by filters: %v, %v", kept, err)
	}
	to.clean(".")
	at, err := Open(context.Background(), to.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if err := at.Apply(context.Background(), c.Diff); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to.dir, "train.py")); string(text) != "print(9)\n" || at.Remote != "https://example.com/x.git" {
		t.Errorf("%q, %v, of %s", text, err, at.Remote)
	}
	sum := sha256.Sum256([]byte("weights\n"))
	if pointer, _ := os.ReadFile(filepath.Join(to.dir, "w.bin")); !strings.Contains(string(pointer), fmt.Sprintf("%x", sum)) {
		t.Errorf("w.bin is %q", pointer)
	}
	if _, err := r.CheckOut(context.Background(), t.TempDir(), "--help"); err == nil {
		t.Error("an option was taken for a commit")
	}
}
