package gitfiles

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs the real one in a directory, without anybody's settings.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

func put(t testing.TB, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tracked holds what is read against what git lists.
func tracked(t *testing.T, top, below string) {
	t.Helper()
	want := strings.Split(strings.TrimSuffix(git(t, filepath.Join(top, below), "ls-files", "--cached", "-z"), "\x00"), "\x00")
	want = slices.DeleteFunc(want, func(name string) bool { return name == "" || strings.HasPrefix(name, "module") })
	slices.Sort(want)
	r, ok := At(top)
	if !ok {
		t.Fatal("no repository is found")
	}
	x, err := r.Tracked(below)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(x.files, slices.Compact(want)) {
		t.Errorf("below %q git tracks %q, read were %q", below, want, x.files)
	}
}

func TestWhatIsTrackedIsWhatGitLists(t *testing.T) {
	names := []string{"a", "ab", "a/b", "b/c/d", "b/c/e", "b/cc", "b ü/\xff", strings.Repeat("long/", 60) + strings.Repeat("n", 200), "z", "new"}
	for _, version := range []string{"2", "3", "4"} {
		for _, format := range []string{"sha1", "sha256"} {
			for _, split := range []bool{false, true} {
				t.Run(fmt.Sprint(version, format, split), func(t *testing.T) {
					top := t.TempDir()
					git(t, top, "init", "-q", "--object-format="+format)
					git(t, top, "config", "splitIndex.maxPercentChange", "100")
					put(t, top, names[1:]...) // a is a directory
					for i := range 100 {
						put(t, top, fmt.Sprintf("many/%d", i))
					}
					git(t, top, "add", ".")
					git(t, top, "update-index", "--index-version", version)
					if split {
						git(t, top, "update-index", "--split-index")
					}
					if version == "3" {
						put(t, top, "later")
						git(t, top, "add", "--intent-to-add", "later")
					}
					tracked(t, top, "")
					tracked(t, top, "b")
					if err := os.WriteFile(filepath.Join(top, "many/7"), []byte("changed"), 0o644); err != nil {
						t.Fatal(err)
					}
					put(t, top, "b/more", "many/1000")
					git(t, top, "rm", "-q", "--cached", "many/70", "many/5", "b/cc")
					git(t, top, "add", "many/7", "b/more")
					tracked(t, top, "")
					tracked(t, top, "many")
					if parts, _ := filepath.Glob(filepath.Join(top, ".git/sharedindex.*")); (len(parts) > 0) != split {
						t.Errorf("the parts of a split index: %q", parts)
					}
				})
			}
		}
	}
}

func TestOfASubmoduleItsDirectoryIsTracked(t *testing.T) {
	other, top := t.TempDir(), t.TempDir()
	git(t, other, "init", "-q")
	put(t, other, "in/it")
	git(t, other, "add", ".")
	git(t, other, "commit", "-q", "-m", "x")
	git(t, top, "init", "-q")
	git(t, top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", other, "d/module")
	r, ok := At(top)
	x, err := r.Tracked("")
	if !ok || err != nil || !x.Module("d/module") || !x.Below("d") || x.Has("d/module") || !x.Has(".gitmodules") {
		t.Errorf("%v, %v, %+v", ok, err, x)
	}
	if x, err := r.Tracked("d"); err != nil || !x.Module("module") {
		t.Errorf("%v, %+v", err, x)
	}
	tracked(t, filepath.Join(top, "d/module"), "")
	tracked(t, filepath.Join(top, "d/module"), "in")
}

func TestALinkedWorkingTreeHasAnIndexOfItsOwn(t *testing.T) {
	top, linked := t.TempDir(), filepath.Join(t.TempDir(), "linked")
	git(t, top, "init", "-q")
	put(t, top, "a")
	git(t, top, "add", ".")
	git(t, top, "commit", "-q", "-m", "x")
	git(t, top, "worktree", "add", "-q", linked)
	put(t, linked, "b")
	git(t, linked, "add", "b")
	tracked(t, linked, "")
	tracked(t, top, "")
	a, _ := At(top)
	b, ok := At(linked)
	if !ok || !same(t, a.Exclude(), b.Exclude()) {
		t.Errorf("%q and %q", a.Exclude(), b.Exclude())
	}
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	one, err := os.Stat(a)
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

func TestTheUsersOwnListIsTheOneThatGitUses(t *testing.T) {
	top, home := t.TempDir(), t.TempDir()
	git(t, top, "init", "-q")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	config := filepath.Join(home, ".config/git/config")
	own := filepath.Join(top, ".git/config")
	write := func(file, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ xdg, global, repo, want string }{
		{"", "", "", home + "/.config/git/ignore"},
		{"[core]\n\texcludesFile = ~/one\n", "", "", home + "/one"},
		{"[core]\n\texcludesFile = ~/one\n", "[user]\n name = x # [core]\n[CORE] ExcludesFile=\"/a b#c\" ; d\n", "", "/a b#c"},
		{"", "[core]\nexcludesfile = /x\\\n/y\n", "", "/x/y"},
		{"", "[core \"sub\"]\nexcludesfile = /no\n[core]\n\teditor = vi\n", "", home + "/.config/git/ignore"},
		{"", "[core]\nexcludesfile = /a\n", "[core]\n\texcludesfile = mine/\\\"list\\\"\n", top + `/mine/"list"`},
		{"", "[core]\nexcludesfile = a   b  # c\n", "", top + "/a   b"},
		{"", "[core]\nexcludesfile =\n", "", ""},
	} {
		write(config, c.xdg)
		write(filepath.Join(home, ".gitconfig"), c.global)
		write(own, string(was)+c.repo)
		r, _ := At(top)
		got, byRepo := r.UserExclude()
		if got != c.want || byRepo != (c.repo != "") {
			t.Errorf("%+v: %q, by the repository: %v", c, got, byRepo)
		}
		if cmd := exec.Command("git", "config", "--path", "core.excludesfile"); c.want != home+"/.config/git/ignore" {
			cmd.Dir = top
			said, err := cmd.Output()
			theirs := strings.TrimSuffix(string(said), "\n")
			if theirs != "" {
				theirs = from(top, theirs)
			}
			if err != nil || theirs != got {
				t.Errorf("git says %q, %v; read was %q", said, err, got)
			}
		}
	}
	t.Setenv("XDG_CONFIG_HOME", home+"/xdg")
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	write(own, string(was))
	r, _ := At(top)
	if got, _ := r.UserExclude(); got != home+"/xdg/git/ignore" {
		t.Errorf("%q", got)
	}
}

func TestABrokenIndexIsAnError(t *testing.T) {
	top := t.TempDir()
	git(t, top, "init", "-q")
	put(t, top, "a", "b/c")
	git(t, top, "add", ".")
	r, _ := At(top)
	file := filepath.Join(top, ".git/index")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 3, 11, 40, 80, 150} {
		if err := os.WriteFile(file, text[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if x, err := r.Tracked(""); err == nil {
			t.Errorf("%d bytes of it: %+v", n, x)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if x, err := r.Tracked(""); err != nil || x.Has("a") {
		t.Errorf("without one: %+v, %v", x, err)
	}
}

func FuzzIndex(f *testing.F) {
	top := f.TempDir()
	git(f, top, "init", "-q")
	put(f, top, "a", "b/c", "b/d")
	git(f, top, "add", ".")
	for _, args := range [][]string{{"--index-version", "2"}, {"--index-version", "4"}, {"--split-index"}} {
		git(f, top, append([]string{"update-index"}, args...)...)
		text, err := os.ReadFile(filepath.Join(top, ".git/index"))
		if err != nil {
			f.Fatal(err)
		}
		shared := text
		if parts, _ := filepath.Glob(filepath.Join(top, ".git/sharedindex.*")); len(parts) > 0 {
			shared, _ = os.ReadFile(parts[0])
		}
		f.Add(text, shared, false)
	}
	f.Fuzz(func(t *testing.T, text, shared []byte, long bool) {
		x := &reading{size: 20, shared: func(string) ([]byte, error) { return shared, nil }}
		if long {
			x.size = 32
		}
		if found, err := x.all(text); err == nil && !slices.IsSorted(found.files) {
			t.Errorf("%q", found.files)
		}
	})
}

func FuzzSettings(f *testing.F) {
	f.Add("[core]\n\texcludesFile = \"~/a b\" # c\n[x \"y]\"] z = \\\n q\n")
	file := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		readSettings(file, map[string]string{})
	})
}
