package transfer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ignoreCases are rules and the files that they are asked about. Git itself
// says what is right.
var ignoreCases = []struct{ name, rules, paths string }{
	{"names", "a\nb.txt\n", "a b.txt c/a c/b.txt ab"},
	{"stars", "*.log\n", "x.log d/x.log x.logs .log log"},
	{"negation", "*.log\n!keep.log\n", "x.log keep.log d/keep.log"},
	{"a later rule wins", "!a\na\n!b\n", "a b"},
	{"nothing brings back what is in an ignored directory", "d/\n!d/keep\n", "d/keep d/x"},
	{"all but one", "d/*\n!d/keep\n", "d/keep d/x"},
	{"anchored", "/a\nd/b\n", "a c/a d/b c/d/b"},
	{"directories only", "a/\n", "a b/a c/a/x"},
	{"a directory", "a/\n", "a/x b/a/y"},
	{"leading double star", "**/a\n**/b/c\n", "a x/a x/y/a b/c x/b/c b/x/c"},
	{"trailing double star", "a/**\n", "a/x a/y/z b/a/x"},
	{"inner double star", "a/**/b\n", "a/b a/x/b a/x/y/b ab a/xb"},
	{"double star that is no component", "a**b\nd**/e\n", "ab a/b axb d/x/e dx/e dx/y/e d/e"},
	{"star and slash", "a/*\n", "a/x a/y/z b/a/x"},
	{"question mark", "a?c\nd/?/e\n", "abc ac a/c d/x/e d/xy/e"},
	{"classes", "[ab]\n[!x]1\n[^y]2\n[a-c]3\n[]]4\n[]-]5\n", "a b c x1 z1 y2 q2 b3 d3 ]4 a4 -5 ]5 a5"},
	{"named classes", "[[:digit:]]\n[[:upper:][:space:]]x\n[[:nope:]]y\n", "1 a Ax ax 1y"},
	{"odd classes", "[a\n[a-\n[[:x\n[\\]]z\n[a\\-c]w\n[[a]v\n", "[a a [a- ]z az bw -w [v av"},
	{"escapes", "\\#a\n\\!b\na\\*c\nd\\\n", "#a !b a*c abc d d\\"},
	{"comments and empty lines", "# a\n\n#b\nc#d\n", "a b c#d #b"},
	{"trailing spaces", "a  \nb\\ \nc\\  \nd d\n", "a b b\\  d"},
	{"carriage returns", "a\r\n*.b\r\n", "a x.b"},
	{"byte order mark", "\ufeffa\n", "a"},
	{"slashes alone", "/\n//\n!\n!/\n", "a b/c"},
	{"two slashes at the end", "a//\n", "a/x a"},
	{"star alone", "*\n!*.py\n!d/\n", "a b.py d/e.py d/f"},
	{"star slash", "*/\n!d/\n", "a b/c d/e"},
	{"unicode", "ä*\n[ö]x\n", "äb ab öx"},
	{"hidden", ".*\n!.keep\n", ".a .keep d/.b"},
	{"last line without an end", "a\nb", "a b c"},
}

func TestIgnoreRulesSayWhatGitSays(t *testing.T) {
	repo := newGitRepo(t)
	for _, c := range ignoreCases {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{gitIgnoreFile: c.rules}
			for p := range strings.FieldsSeq(c.paths) {
				// A path may be a directory in one rule set and a file in another.
				if !slices.ContainsFunc(strings.Fields(c.paths), func(q string) bool { return strings.HasPrefix(q, p+"/") }) {
					files[p] = ""
				}
			}
			repo.fill(t, files)
			repo.compare(t)
		})
	}
}

func TestIgnoreFilesInDirectoriesSayWhatGitSays(t *testing.T) {
	repo := newGitRepo(t)
	repo.fill(t, map[string]string{
		".gitignore": "*.log\n/top\nd/e/deep\n!*.py\n", "a.log": "", "top": "", "d/top": "", "d/e/deep": "", "d/e/x.log": "",
		"d/.gitignore": "!*.log\n/own\n*.py\ne/x.py\n", "d/b.log": "", "d/own": "", "d/e/own": "", "d/c.py": "", "c.py": "",
		"d/e/.gitignore": "b.log\n!x.py\n/f/\n", "d/e/b.log": "", "d/e/x.py": "", "d/e/f/g": "", "d/e/q/f/g": "", "d/e/q/y.py": "",
	})
	repo.compare(t)
}

// TestGeneratedIgnoreFilesSayWhatGitSays makes rules and names out of the same
// few pieces, so that they meet often.
func TestGeneratedIgnoreFilesSayWhatGitSays(t *testing.T) {
	repo := newGitRepo(t)
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "c", "/", "/", "*", "**", "?", "[ab]", "[!a]", "[a-c]", `\a`, `\*`, " ", "-", "!", "[", "]", "a*"})
	rule := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "", "!", "/"}).Draw(t, "front") +
			strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "") +
			rapid.SampledFrom([]string{"", "", "/", "/**", " "}).Draw(t, "back")
	})
	rules := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rule, 0, 5).Draw(t, "rules"), "\n")
	})
	name := rapid.SampledFrom([]string{"a", "b", "c", "ab", "abc", "aab", "*", "a-b", "ba", "]", "a b"})
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{gitIgnoreFile: rules.Draw(t, "top")}
		for range rapid.IntRange(1, 12).Draw(t, "files") {
			parts := rapid.SliceOfN(name, 1, 4).Draw(t, "path")
			files[strings.Join(parts, "/")] = ""
			if len(parts) > 1 && rapid.IntRange(0, 4).Draw(t, "nested") == 0 {
				files[parts[0]+"/"+gitIgnoreFile] = rules.Draw(t, "below")
			}
		}
		repo.fill(t, files)
		repo.compare(t)
	})
}

func TestDlwbignoreAndExcludesStandOnTop(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		".gitignore": "*.csv\nout/\n", ".dlwbignore": "!small.csv\nbig/\n*.tmp\n", "d/.gitignore": "small.csv\n", "d/.dlwbignore": "!*.tmp\n",
		"x.csv": "", "small.csv": "", "d/small.csv": "", "out/o": "", "big/b": "", "a.tmp": "", "d/a.tmp": "", "d/no.tmp": "", "train.py": "",
	})
	tree := scanTest(t, dir, "no.*", "!a.tmp")
	want := []string{".gitignore", "a.tmp", "d", "d/.gitignore", "d/a.tmp", "d/small.csv", "small.csv", "train.py"}
	if got := treePaths(tree); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPartOfARepositoryObeysTheFilesAbove(t *testing.T) {
	repo := newGitRepo(t)
	repo.fill(t, map[string]string{
		".gitignore": "*.log\n/sub/own\n/own2\nsub/\n", "sub/own": "", "sub/own2": "", "sub/x.log": "", "sub/d/y.log": "", "sub/train.py": "",
		"sub/.gitignore": "!y.log\n",
	})
	if err := os.WriteFile(filepath.Join(repo.dir, ".git", "info", "exclude"), []byte("train.*\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", "d", "d/y.log", "own2"}
	if got := treePaths(scanTest(t, filepath.Join(repo.dir, "sub"))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheNearerOfTheFilesAboveIsStronger(t *testing.T) {
	repo := newGitRepo(t)
	repo.fill(t, map[string]string{
		".gitignore": "a\n!b\nc\n/d/e/f/g\n", "d/.gitignore": "!a\nb\n/e/f/h\n", "d/e/.gitignore": "!b\nf/i\n!c\n", "d/e/f/.gitignore": "c\n",
		"d/e/f/a": "", "d/e/f/b": "", "d/e/f/c": "", "d/e/f/g": "", "d/e/f/h": "", "d/e/f/i": "", "d/e/f/x/a": "", "d/e/f/x/g": "",
	})
	part := &gitRepo{dir: filepath.Join(repo.dir, "d", "e", "f"), env: repo.env}
	part.compare(t)
}

func FuzzGlobNeverPanics(f *testing.F) {
	f.Add("a**/[[:alpha:]-z]\\", "a/b")
	f.Add("[]-a]*", "]x")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		for _, r := range parseIgnore(pattern) {
			if name != "" {
				r.matches(name, true)
			}
		}
	})
}

func BenchmarkHardGlob(b *testing.B) {
	g, _ := compileGlob(strings.Repeat("*a", 30) + "b")
	name := strings.Repeat("a", 200)
	for b.Loop() {
		g.match(name)
	}
}

// gitRepo is a repository whose files are replaced again and again.
type gitRepo struct {
	dir string
	env []string
}

func newGitRepo(t *testing.T) *gitRepo {
	t.Helper()
	r := &gitRepo{dir: t.TempDir()}
	// Nobody's own settings may have a say.
	r.env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "HOME="+r.dir, "XDG_CONFIG_HOME="+r.dir)
	r.git(t, "init", "-q")
	return r
}

type fataler interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

func (r *gitRepo) git(t fataler, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("git %q: %w: %s", args, err, stderr.String()))
	}
	return out
}

// fill replaces all files. What can't be made, because one file is in another,
// is left out.
func (r *gitRepo) fill(t fataler, files map[string]string) {
	t.Helper()
	old, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range old {
		if e.Name() != ".git" {
			if err := os.RemoveAll(filepath.Join(r.dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for p, text := range files {
		full := filepath.Join(r.dir, p)
		if os.MkdirAll(filepath.Dir(full), 0o755) == nil {
			_ = os.WriteFile(full, []byte(text), 0o644)
		}
	}
}

// compare holds what Scan finds against what git does not ignore.
func (r *gitRepo) compare(t fataler) {
	t.Helper()
	var want []string
	for p := range strings.SplitSeq(string(r.git(t, "ls-files", "--others", "--exclude-standard", "-z")), "\x00") {
		if p != "" {
			want = append(want, p)
		}
	}
	slices.Sort(want)
	tree, err := Scan(tContext(), r.dir, Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tree.entries {
		if e.kind != kindDir {
			got = append(got, e.path)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("we send %q, git knows %q", got, want)
	}
}
