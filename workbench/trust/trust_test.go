//go:build unix

package trust

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/transfer"
)

// project is a git work tree with everything that a decision covers.
type project struct {
	t    *testing.T
	dir  string
	gate *Gate
}

func newProject(t *testing.T) project {
	t.Helper()
	p := project{t, t.TempDir(), New(filepath.Join(t.TempDir(), "state"))}
	for name, text := range map[string]string{
		".git/HEAD": "", ".git/info/exclude": "tmp/\n", ".gitignore": "*.bin\n", ".dlwbignore": "data/\n",
		"exp/a.yaml":   "name: a\ncode: {dir: ../src}\nenvironment: {venv: requirements.txt}\nrun: {command: train.py}\n",
		"src/train.py": "", "src/.gitignore": "out/\n", "src/.dlwbignore": "big/\n",
		"src/sub/.gitignore": "x\n", "src/sub/.dlwbignore": "y\n",
		"src/requirements.txt": "-r base.txt\n--constraint=pins.txt  # kept\nnumpy\n", "src/base.txt": "--requirement deep/more.txt\n",
		"src/pins.txt": "numpy==1\n", "src/deep/more.txt": "scipy\n-r ../base.txt\n",
	} {
		p.write(name, text)
	}
	return p
}

func (p project) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p project) write(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p project) look(name string) *Subject {
	p.t.Helper()
	s, err := p.gate.LookAt(context.Background(), p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p project) trust(name string) {
	p.t.Helper()
	if err := p.gate.Trust(p.look(name)); err != nil {
		p.t.Fatal(err)
	}
}

// loads reports whether the gate lets a profile through.
func (p project) loads(name string) bool {
	p.t.Helper()
	let, err := p.gate.Load(context.Background(), p.path(name))
	if err != nil && Of(err) == nil {
		p.t.Fatal(err)
	}
	if (err == nil) != (let.Profile() != nil) {
		p.t.Fatalf("%v and the profile %v", err, let.Profile())
	}
	return err == nil
}

func TestAChangedByteOfAnyFileThatDecidesAsksAgain(t *testing.T) {
	for _, name := range []string{
		"exp/a.yaml", ".git/info/exclude", ".gitignore", "src/.gitignore", "src/.dlwbignore", "src/sub/.gitignore", "src/sub/.dlwbignore",
		"src/requirements.txt", "src/base.txt", "src/pins.txt", "src/deep/more.txt",
	} {
		p := newProject(t)
		if p.loads("exp/a.yaml") {
			t.Fatal("a profile that nobody has trusted is let through")
		}
		p.trust("exp/a.yaml")
		if !p.loads("exp/a.yaml") {
			t.Fatal("a trusted profile is not let through")
		}
		was, err := os.ReadFile(p.path(name))
		if err != nil {
			t.Fatal(err)
		}
		p.write(name, string(was)+"#\n")
		if p.loads("exp/a.yaml") {
			t.Errorf("%s has changed, and nobody is asked", name)
		}
		if s := p.look("exp/a.yaml"); s.TrustedAt == nil || !strings.Contains(s.Since(), p.path(name)+" has changed") || len(s.Changed) != 1 {
			t.Errorf("%s: what has changed is %q", name, s.Changed)
		}
		p.write(name, string(was))
		if !p.loads("exp/a.yaml") {
			t.Errorf("%s is as it was when it was trusted, and somebody is asked", name)
		}
	}
}

func TestAFileThatComesOrGoesAsksAgain(t *testing.T) {
	p := newProject(t)
	p.trust("exp/a.yaml")
	p.write("src/new/.dlwbignore", "!*\n")
	if p.loads("exp/a.yaml") {
		t.Error("a new ignore file asks nobody")
	}
	if s := p.look("exp/a.yaml"); !strings.Contains(s.Since(), "src/new/.dlwbignore is new") {
		t.Errorf("what has changed is %q", s.Changed)
	}
	_ = os.RemoveAll(p.path("src/new"))
	_ = os.Remove(p.path("src/pins.txt"))
	if p.loads("exp/a.yaml") || !strings.Contains(p.look("exp/a.yaml").Since(), "src/pins.txt is gone") {
		t.Errorf("what has changed is %q", p.look("exp/a.yaml").Changed)
	}
}

// The code is not covered: who trusts a project runs its code.
func TestTheTrainingCodeMayChange(t *testing.T) {
	p := newProject(t)
	p.trust("exp/a.yaml")
	p.write("src/train.py", "print(2)\n")
	p.write("src/requirements.md", "-r nothing\n")
	if !p.loads("exp/a.yaml") {
		t.Error("a change of the code asks")
	}
}

func TestContentDoesNotPassForANameOrAnotherFile(t *testing.T) {
	a, b := &material{}, &material{}
	a.add(KindIgnore, "/p/x", []byte("ab"))
	a.add(KindIgnore, "/p/y", []byte("c"))
	b.add(KindIgnore, "/p/x", []byte("a"))
	b.add(KindIgnore, "/p/y", []byte("bc"))
	c := &material{}
	c.add(KindEnvironment, "/p/x", []byte("ab"))
	c.add(KindEnvironment, "/p/y", []byte("c"))
	keys := map[string]bool{a.key("/p", "/q"): true, b.key("/p", "/q"): true, c.key("/p", "/q"): true, a.key("/p/", "q"): true, a.key("/p", "/r"): true}
	if len(keys) != 5 {
		t.Errorf("%d keys of 5 different things", len(keys))
	}
}

// A profile that is reached by a link is the file itself, but what it sends lies
// beside the link.
func TestALinkToATrustedProfileIsNotTrustedElsewhere(t *testing.T) {
	p := newProject(t)
	p.write("here/dlwb.yaml", "run: {command: train.py}\n")
	p.trust("here/dlwb.yaml")
	p.write("there/train.py", "")
	if err := os.Symlink(p.path("here/dlwb.yaml"), p.path("there/dlwb.yaml")); err != nil {
		t.Fatal(err)
	}
	if p.loads("there/dlwb.yaml") {
		t.Error("a link brings a trusted profile to code that nobody has trusted")
	}
	if !p.loads("here/dlwb.yaml") {
		t.Error("the profile itself is not trusted any more")
	}
	if err := os.Symlink(p.path("here"), p.path("short")); err != nil {
		t.Fatal(err)
	}
	if !p.loads("short/dlwb.yaml") {
		t.Error("the same directory by another name asks")
	}
}

func TestTheProjectIsTheWorkTreeAndNeverTheHome(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, dir := range []string{".git", "clone/.git", "clone/deep/exp", "plain/exp"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home = realPath(home)
	for profile, want := range map[string]string{"clone/deep/exp/a.yaml": "clone", "plain/exp/a.yaml": "plain/exp", "a.yaml": ""} {
		if got := ProjectDir(filepath.Join(home, profile)); got != filepath.Join(home, want) {
			t.Errorf("%s is of the project %s", profile, got)
		}
	}
}

// What lies outside the project is named and not read.
func TestNothingOutsideTheProjectIsRead(t *testing.T) {
	p := newProject(t)
	outside := t.TempDir()
	for _, name := range []string{".gitignore", ".dlwbignore", "requirements.txt"} { // reading any of them fails, as root too
		if err := syscall.Mkfifo(filepath.Join(outside, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, p.path("linked")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "requirements.txt"), p.path("src/out.txt")); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{outside, "../linked"} {
		p.write("exp/out.yaml", "code: {dir: "+code+"}\nenvironment: {venv: requirements.txt}\nrun: {command: train.py}\n")
		said := p.look("exp/out.yaml").Text()
		if !strings.Contains(said, "a directory outside the project") || !strings.Contains(said, "requirements.txt, which is outside") {
			t.Errorf("%s:\n%s", code, said)
		}
	}
	p.write("src/requirements.txt", "-r out.txt\n-r /etc/passwd\n")
	if said := p.look("exp/a.yaml").Text(); strings.Count(said, "which is outside the project") != 2 {
		t.Errorf("what is included from outside is not named:\n%s", said)
	}
}

func TestAFifoOrAHugeFileIsAnErrorAndNoWait(t *testing.T) {
	for _, name := range []string{"exp/a.yaml", "src/requirements.txt", "src/base.txt"} {
		for what, put := range map[string]func(string) error{
			"a fifo":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"a link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
			"a directory":        func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			p := newProject(t)
			_ = os.Remove(p.path(name))
			if err := put(p.path(name)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := p.gate.Load(context.Background(), p.path("exp/a.yaml"))
				done <- err
			}()
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), filepath.Base(name)) && Of(err) == nil {
					t.Errorf("%s is %s: %v", name, what, err)
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s is %s: it waits", name, what)
			}
		}
	}
	for _, name := range []string{"src/requirements.txt", "src/.gitignore", "src/sub/.dlwbignore", ".gitignore", ".git/info/exclude"} {
		p := newProject(t)
		if err := os.Truncate(p.path(name), 1<<40); err != nil { // it has no blocks
			t.Fatal(err)
		}
		_, err := p.gate.LookAt(context.Background(), p.path("exp/a.yaml"))
		if !errors.Is(err, plainfile.ErrTooLarge) || !strings.Contains(err.Error(), filepath.Base(name)) {
			t.Errorf("%s is huge: %v", name, err)
		}
	}
}

func TestOnlyEnoughOfTheHashLetsThrough(t *testing.T) {
	p := newProject(t)
	key := p.look("exp/a.yaml").Key
	for hash, want := range map[string]bool{key[:LeastDigits-1]: false, "": false, strings.Repeat("0", 32): false, key[:8] + "ZZZZZZZZ": false,
		key[:LeastDigits]: true, key[:ShownDigits]: true, key: true} {
		gate := New(filepath.Join(t.TempDir(), "state"))
		if err := gate.Accept(hash); (err == nil) != (CheckHash(hash) == nil) {
			t.Errorf("%q: %v", hash, err)
		}
		_, err := gate.Load(context.Background(), p.path("exp/a.yaml"))
		if (err == nil) != want {
			t.Errorf("with %q: %v", hash, err)
		}
		if list, _ := gate.List(); len(list) > 0 {
			t.Error("a hash that was accepted once is kept")
		}
		if _, err := gate.TrustHash(context.Background(), p.path("exp/a.yaml"), hash); (err == nil) != want {
			t.Errorf("trusted by %q: %v", hash, err)
		}
	}
}

func TestWhatDlwbHasWrittenIsTrustedAsWrittenAndNotAsItLies(t *testing.T) {
	p := newProject(t)
	text := []byte("name: a\nrun: {command: train.py}\n")
	p.write("src/dlwb.yaml", string(text)+"forward: [8265]\n") // somebody was quicker
	if err := p.gate.TrustWritten(context.Background(), p.path("src/dlwb.yaml"), text); err != nil {
		t.Fatal(err)
	}
	if p.loads("src/dlwb.yaml") {
		t.Error("what was not written by dlwb is trusted")
	}
	p.write("src/dlwb.yaml", string(text))
	if !p.loads("src/dlwb.yaml") {
		t.Error("what was written by dlwb is not trusted")
	}
}

func TestTrustIsListedKeptFromOthersAndTakenBack(t *testing.T) {
	p := newProject(t)
	p.trust("exp/a.yaml")
	p.write("exp/a.yaml", "name: a\nrun: {command: train.py}\n")
	p.trust("exp/a.yaml")
	list, err := New(p.gate.state).List()
	if err != nil || len(list) != 1 || list[0].Count != 2 || list[0].Path != realPath(p.path("exp/a.yaml")) || list[0].Hash != p.look("exp/a.yaml").Hash() {
		t.Fatalf("%+v, %v", list, err)
	}
	dir, _ := os.Stat(p.gate.records.dir)
	file, err := os.Stat(p.gate.records.file(realPath(p.path("exp/a.yaml"))))
	if err != nil || dir.Mode().Perm() != 0o700 || file.Mode().Perm() != 0o600 {
		t.Errorf("%v %v %v", dir.Mode(), file.Mode(), err)
	}
	if was, err := p.gate.Revoke(p.path("exp/a.yaml")); !was || err != nil {
		t.Error(was, err)
	}
	if was, err := p.gate.Revoke(p.path("exp/a.yaml")); was || err != nil {
		t.Error(was, err)
	}
	if p.loads("exp/a.yaml") {
		t.Error("it is still trusted")
	}
}

func TestAProfileWhosePathIsNoUTF8IsTrusted(t *testing.T) {
	p := newProject(t)
	p.write("caf\xe9/b.yaml", "name: b\nrun: {command: train.py}\n")
	if _, err := os.Stat(p.path("caf\xe9")); err != nil {
		t.Skip("NOT RUN: this file system takes no such name:", err)
	}
	s := p.look("caf\xe9/b.yaml")
	if err := p.gate.Trust(s); err != nil {
		t.Fatal(err)
	}
	if s := p.look("caf\xe9/b.yaml"); !s.Trusted {
		t.Error("it is asked for again")
	}
	p.write("caf\xe9/b.yaml", "name: b\nrun: {command: other.py}\n")
	if s := p.look("caf\xe9/b.yaml"); s.Trusted || len(s.Changed) != 1 || !strings.HasSuffix(s.Changed[0], "caf\xe9/b.yaml has changed") {
		t.Errorf("%v, %q", s.Trusted, s.Changed)
	}
	if all, err := p.gate.List(); err != nil || len(all) != 1 || all[0].Path != s.Path {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestARecordThatIsNoneTrustsNothing(t *testing.T) {
	p := newProject(t)
	p.trust("exp/a.yaml")
	file := p.gate.records.file(realPath(p.path("exp/a.yaml")))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.ReplaceAll(string(text), filepath.ToSlash(p.dir), "/elsewhere")
	for _, bad := range []string{"", "{", "[]", "null", string(text[:len(text)/2]), other} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if p.loads("exp/a.yaml") {
			t.Errorf("trusted by %q", bad)
		}
	}
}

// A sync looks through the code once: what the gate saw is what the plan would look for.
func TestWhatTheGateSawOfTheCodeIsWhatIsSent(t *testing.T) {
	p := newProject(t)
	p.write("exp/a.yaml", "run: {command: train.py}\ncode: {exclude: [left-out]}\nresults: {paths: [outputs/]}\n")
	p.write("exp/left-out", "x")
	p.write("exp/train.py", "x")
	p.trust("exp/a.yaml")
	let, seen, err := p.gate.LoadSeen(t.Context(), p.path("exp/a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir, exclude := let.Profile().CodeDir(), let.Profile().NotSent(p.gate.state)
	if !seen.Is(dir, exclude) || seen.Is(dir, nil) || seen.Is(filepath.Dir(dir), exclude) {
		t.Fatalf("it was not seen as %s without %q", dir, exclude)
	}
	want, err := transfer.Scan(t.Context(), dir, transfer.Rules{Exclude: exclude})
	if err != nil {
		t.Fatal(err)
	}
	got, err := seen.Tree(t.Context(), transfer.Rules{Exclude: exclude})
	if err != nil || !reflect.DeepEqual(got, want) || got.Files == 0 {
		t.Errorf("%v: %+v is not %+v", err, got, want)
	}
}

func TestAVariableThatIsNotSetDoesNotHideWhatAProfileDoes(t *testing.T) {
	p := newProject(t)
	p.write("exp/a.yaml", "run: {command: train.py, env: {TOKEN: \"x${env:DLWB_TEST_NOT_SET}\"}}\n")
	if said := p.look("exp/a.yaml").Text(); !strings.Contains(said, "DLWB_TEST_NOT_SET of your shell") {
		t.Errorf("it does not say which variable is read:\n%s", said)
	}
	p.trust("exp/a.yaml")
	_, err := p.gate.Load(context.Background(), p.path("exp/a.yaml"))
	var faults profiles.Errors
	if !errors.As(err, &faults) || !strings.Contains(err.Error(), "not set") {
		t.Errorf("once trusted: %v", err)
	}
}
