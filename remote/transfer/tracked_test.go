package transfer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// compareAll holds what Scan finds against what git tracks or does not ignore.
func (r *gitRepo) compareAll(t fataler) {
	t.Helper()
	var want []string
	for p := range strings.SplitSeq(string(r.git(t, "ls-files", "--cached", "--others", "--exclude-standard", "-z")), "\x00") {
		if info, err := os.Lstat(filepath.Join(r.dir, p)); err == nil && p != "" && !info.IsDir() {
			want = append(want, p)
		}
	}
	slices.Sort(want)
	if got := sentFiles(t, r.dir); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("we send %q, git knows %q", got, want)
	}
}

func sentFiles(t fataler, dir string) (files []string) {
	t.Helper()
	tree, err := Scan(tContext(), dir, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range tree.entries {
		if e.kind != kindDir {
			files = append(files, e.path)
		}
	}
	return files
}

func TestWhatGitTracksIsSentAlsoWhereAnIgnoreFileNamesIt(t *testing.T) {
	repo := newGitRepo(t)
	files := map[string]string{
		".gitignore": "*.csv\ndata/\nout/*\n!out/keep\n/lib\n", "a.csv": "", "b.csv": "", "data/a": "", "data/b": "", "data/deep/c": "", "data/deep/d": "",
		"data/.gitignore": "!b\n", "out/keep": "", "out/x": "", "out/y": "", "lib/x/z": "", "train.py": "", "link.csv": "",
	}
	repo.fill(t, files)
	repo.git(t, "add", "--force", "a.csv", "data/a", "data/deep/c", "out/x", "link.csv")
	repo.compareAll(t)
	if got := sentFiles(t, repo.dir); !slices.Contains(got, "a.csv") || !slices.Contains(got, "data/deep/c") || slices.Contains(got, "data/b") {
		t.Errorf("sent are %q", got)
	}
	(&gitRepo{dir: filepath.Join(repo.dir, "out"), env: repo.env}).compareAll(t)
	// What is tracked and gone leaves no directory.
	if err := os.RemoveAll(filepath.Join(repo.dir, "data/deep/c")); err != nil {
		t.Fatal(err)
	}
	if tree := treePaths(scanTest(t, repo.dir)); slices.Contains(tree, "data/deep") {
		t.Errorf("an empty directory is sent: %q", tree)
	}
}

func TestDlwbsOwnRulesStandOnTopOfWhatGitTracks(t *testing.T) {
	repo := newGitRepo(t)
	repo.fill(t, map[string]string{".gitignore": "data/\n*.csv\n", ".dlwbignore": "data/large\nb.csv\n", "data/large": "", "data/small": "", "a.csv": "", "b.csv": "", "c.csv": "", "x.pyc": ""})
	repo.git(t, "add", "--force", ".")
	if got := treePaths(scanTest(t, repo.dir, "c.*")); !slices.Equal(got, []string{".gitignore", "a.csv", "data", "data/small"}) {
		t.Errorf("sent are %q", got)
	}
}

func TestGeneratedRepositoriesSendWhatGitTracks(t *testing.T) {
	repo := newGitRepo(t)
	name := rapid.SampledFrom([]string{"a", "b", "ab", "c"})
	rule := rapid.SampledFrom([]string{"a", "a/", "/a", "*", "b/*", "!b", "!a", "c/**", "a*", "**/b"})
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{gitIgnoreFile: strings.Join(rapid.SliceOfN(rule, 0, 4).Draw(t, "rules"), "\n")}
		for range rapid.IntRange(1, 12).Draw(t, "files") {
			parts := rapid.SliceOfN(name, 1, 4).Draw(t, "path")
			files[strings.Join(parts, "/")] = ""
			if len(parts) > 1 && rapid.IntRange(0, 4).Draw(t, "nested") == 0 {
				files[parts[0]+"/"+gitIgnoreFile] = rule.Draw(t, "below")
			}
		}
		_ = os.Remove(filepath.Join(repo.dir, ".git/index"))
		repo.fill(t, files)
		for p := range files {
			if info, err := os.Lstat(filepath.Join(repo.dir, p)); err == nil && info.Mode().IsRegular() && rapid.Bool().Draw(t, "tracked") {
				repo.git(t, "add", "--force", p)
			}
		}
		repo.compareAll(t)
	})
}

func TestTheUsersOwnListOfIgnoredFilesHolds(t *testing.T) {
	repo := newGitRepo(t)
	repo.fill(t, map[string]string{".gitignore": "!kept.swp\n", "a.swp": "", "kept.swp": "", "d/b.swp": "", "d/top": "", "top": "", "x.tmp": "", "tracked.swp": ""})
	repo.git(t, "add", "--force", "tracked.swp")
	list := filepath.Join(t.TempDir(), "ignored")
	config := filepath.Join(t.TempDir(), "config")
	for path, text := range map[string]string{list: "*.swp\n/top\n*.tmp\n", config: "[core]\n\texcludesFile = " + list + "\n",
		filepath.Join(repo.dir, ".git/info/exclude"): "!*.tmp\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	repo.env = append(repo.env, "GIT_CONFIG_GLOBAL="+config)
	repo.compareAll(t)
	if got := sentFiles(t, repo.dir); slices.Contains(got, "a.swp") || !slices.Contains(got, "tracked.swp") || !slices.Contains(got, "x.tmp") {
		t.Errorf("sent are %q", got)
	}
	seen, err := LookAtProject(tContext(), repo.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range seen.IgnoreFiles {
		if f.Path == list {
			t.Error("the user's own list is taken for the project's")
		}
	}
	repo.git(t, "config", "core.excludesFile", list)
	if seen, err = LookAtProject(tContext(), repo.dir, nil); err != nil || !slices.ContainsFunc(seen.IgnoreFiles, func(f IgnoreFile) bool { return f.Path == list }) {
		t.Errorf("a list that the repository names is not told: %v", err)
	}
}

func TestWorkingTreesAndSubmodulesHaveTheirOwnIndex(t *testing.T) {
	repo, other := newGitRepo(t), newGitRepo(t)
	other.fill(t, map[string]string{".gitignore": "*.csv\n", "tracked.csv": "", "own.csv": "", "m.py": ""})
	other.git(t, "add", "--force", "tracked.csv", "m.py", ".gitignore")
	identity := []string{"-c", "user.name=a", "-c", "user.email=a@b"}
	other.git(t, append(identity, "commit", "-q", "-m", "x")...)
	repo.fill(t, map[string]string{".gitignore": "*.bin\nlibs/\n", "a.bin": "", "b.bin": ""})
	repo.git(t, "add", "--force", "a.bin", ".gitignore")
	repo.git(t, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--force", other.dir, "libs/module")
	repo.git(t, append(identity, "commit", "-q", "-m", "x")...)
	for _, name := range []string{"libs/own", "libs/module/own.csv", "libs/module/new.py"} {
		if err := os.WriteFile(filepath.Join(repo.dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{".gitignore", ".gitmodules", "a.bin", "libs/module/.gitignore", "libs/module/m.py", "libs/module/new.py", "libs/module/tracked.csv"}
	if got := sentFiles(t, repo.dir); !slices.Equal(got, want) {
		t.Errorf("sent are %q, want %q", got, want)
	}
	module := &gitRepo{dir: filepath.Join(repo.dir, "libs/module"), env: repo.env}
	module.compareAll(t)

	linked := &gitRepo{dir: filepath.Join(t.TempDir(), "linked"), env: repo.env}
	repo.git(t, "worktree", "add", "-q", linked.dir)
	for name, text := range map[string]string{"c.bin": "", "d.bin": "", "notes": ""} {
		if err := os.WriteFile(filepath.Join(linked.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(repo.dir, ".git/info/exclude"), []byte("notes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	linked.git(t, "add", "--force", "c.bin")
	linked.compareAll(t)
	if got := sentFiles(t, linked.dir); !slices.Contains(got, "c.bin") || slices.Contains(got, "notes") || slices.Contains(got, "d.bin") {
		t.Errorf("of a linked working tree are sent %q", got)
	}
}

func TestAnIndexThatCantBeReadIsTold(t *testing.T) {
	repo := newGitRepo(t)
	repo.fill(t, map[string]string{".gitignore": "*.csv\n", "a.csv": "", "b": ""})
	repo.git(t, "add", "--force", ".")
	if err := os.WriteFile(filepath.Join(repo.dir, ".git/index"), []byte("DIRC and nothing more"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree := scanTest(t, repo.dir)
	if !strings.Contains(fmt.Sprint(tree.Warnings), "What git tracks is not known") || slices.Contains(treePaths(tree), "a.csv") {
		t.Errorf("%q, warnings %q", treePaths(tree), tree.Warnings)
	}
}
