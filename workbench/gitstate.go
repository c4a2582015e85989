package workbench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/profiles"
)

// GitState is what git says of a code directory.
type GitState struct {
	Commit string `json:"commit"`
	Branch string `json:"branch,omitempty"` // empty: detached
	Remote string `json:"remote,omitempty"` // of origin, without credentials
	// Prefix is where in the repository the code directory is: "", "sub/dir".
	Prefix string `json:"prefix,omitempty"`
	Dirty  bool   `json:"dirty"`
	// Diff is what was not committed, new files included, as git apply takes
	// it; DiffHash tells diffs apart.
	Diff     string `json:"diff,omitempty"`
	DiffHash string `json:"diff_hash,omitempty"`
	// Partial says that not all of it is in Diff: Notes of the recipe say what
	// was left out.
	Partial bool `json:"partial,omitempty"`
}

const (
	// gitLimit bounds a call of git.
	gitLimit = 20 * time.Second
	// longestDiff bounds the diff that is kept.
	longestDiff = 2 << 20
	// A new file longer than this, or more than so many, are not in a diff.
	longestNew, mostNew = 256 << 10, 300
)

// gitState reads the state of a code directory. It changes nothing there, and
// runs nothing that the repository's settings name.
func gitState(ctx context.Context, dir string) (*GitState, []string) {
	git := gitIn(dir)
	if _, err := git.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return nil, []string{"the code is in no git repository (" + err.Error() + "): only its profile can tell what ran"}
	}
	g := &GitState{}
	var err error
	if g.Commit, err = git.line(ctx, "rev-parse", "--verify", "HEAD"); err != nil {
		return nil, []string{"the git repository of the code has no commit yet"}
	}
	g.Branch, _ = git.line(ctx, "symbolic-ref", "--short", "-q", "HEAD")
	prefix, _ := git.line(ctx, "rev-parse", "--show-prefix")
	g.Prefix = strings.TrimSuffix(prefix, "/")
	if remote, err := git.line(ctx, "remote", "get-url", "origin"); err == nil {
		g.Remote = withoutCredentials(remote)
	}
	return g, git.uncommitted(ctx, g)
}

// uncommitted fills in what is not committed below the code directory.
func (r gitRepo) uncommitted(ctx context.Context, g *GitState) (notes []string) {
	status, err := r.run(ctx, nil, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".")
	if err != nil {
		return []string{"what was not committed could not be read: " + err.Error()}
	}
	if g.Dirty = len(status) > 0; !g.Dirty {
		return nil
	}
	index, done, err := r.copyIndex(ctx)
	if err != nil {
		return []string{"what was not committed could not be read: " + err.Error()}
	}
	defer done()
	env := []string{"GIT_INDEX_FILE=" + index}
	added, left := r.newFiles(ctx)
	if len(added) > 0 {
		args := append([]string{"add", "-N", "--"}, added...)
		if _, err := r.run(ctx, append([]string{"GIT_LITERAL_PATHSPECS=1"}, env...), args...); err != nil {
			left = append(left, "new files ("+err.Error()+")")
		}
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--src-prefix=a/", "--dst-prefix=b/", "--binary", "HEAD", "--", "."}
	for _, p := range secretFiles {
		args = append(args, ":(exclude,glob)**/"+p)
	}
	diff, err := r.run(ctx, env, args...)
	if err != nil {
		return []string{"what was not committed could not be read: " + err.Error()}
	}
	sum := sha256.Sum256(diff)
	g.DiffHash = hex.EncodeToString(sum[:6])
	if len(diff) > longestDiff {
		left = append(left, fmt.Sprintf("the rest of a diff of %s", bytesText(int64(len(diff)))))
		diff = diff[:bytes.LastIndexByte(diff[:longestDiff], '\n')+1]
	}
	g.Diff = profiles.MaskSecrets(string(diff))
	if g.Diff != string(diff) {
		left = append(left, "what looks like secrets")
	}
	if g.Partial = len(left) > 0; g.Partial {
		notes = []string{"of what was not committed, these are not in the recipe: " + strings.Join(left, ", ")}
	}
	return notes
}

// secretFiles are names of files that hold secrets; they are in no diff.
var secretFiles = []string{".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*", "*credentials*", ".netrc", ".npmrc", ".pypirc"}

// newFiles lists the files that git does not know and does not ignore, and says
// which are left out.
func (r gitRepo) newFiles(ctx context.Context) (added, left []string) {
	out, err := r.run(ctx, nil, "ls-files", "--others", "--exclude-standard", "-z", "--", ".")
	if err != nil {
		return nil, []string{"new files"}
	}
	more := 0
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.dir, filepath.FromSlash(name)))
		switch {
		case err != nil || info.IsDir():
			continue
		case looksSecret(path.Base(name)), info.Size() > longestNew, len(added) >= mostNew:
			if more++; more <= 5 {
				left = append(left, name)
			}
		default:
			added = append(added, name)
		}
	}
	if more > 5 {
		left = append(left, fmt.Sprintf("%d more new files", more-5))
	}
	return added, left
}

func looksSecret(base string) bool {
	for _, p := range secretFiles {
		if ok, _ := path.Match(p, base); ok {
			return true
		}
	}
	return false
}

// gitRepo calls git in a directory.
type gitRepo struct{ dir string }

func gitIn(dir string) gitRepo { return gitRepo{dir} }

// run runs git and returns what it prints.
func (r gitRepo) run(ctx context.Context, env []string, args ...string) ([]byte, error) {
	return r.feed(ctx, nil, env, args...)
}

func (r gitRepo) feed(ctx context.Context, in []byte, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.quotePath=false"}, args...)...)
	cmd.Dir, cmd.WaitDelay = r.dir, time.Second
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &errs
	if err := cmd.Run(); err != nil {
		if said := lastLines(errs.String(), 1); len(said) > 0 {
			return nil, fmt.Errorf("git %s: %s", args[0], said[0])
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}

func (r gitRepo) line(ctx context.Context, args ...string) (string, error) {
	out, err := r.run(ctx, nil, args...)
	return strings.TrimRight(string(out), "\r\n"), err
}

// copyIndex makes a copy of the index, for questions that need one of their own.
func (r gitRepo) copyIndex(ctx context.Context) (name string, done func(), err error) {
	from, err := r.line(ctx, "rev-parse", "--git-path", "index")
	if err != nil {
		return "", nil, err
	}
	if !filepath.IsAbs(from) {
		from = filepath.Join(r.dir, from)
	}
	dir, err := os.MkdirTemp("", "dlwb-index-")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) }
	name = filepath.Join(dir, "index")
	// A file that was changed in the second in which the index was written is
	// told by the index's own time: the copy has it too.
	info, err := os.Stat(from)
	var b []byte
	if err == nil {
		b, err = os.ReadFile(from)
	}
	if err == nil {
		err = os.WriteFile(name, b, 0o600)
	}
	if err == nil {
		err = os.Chtimes(name, info.ModTime(), info.ModTime())
	}
	if err != nil && !os.IsNotExist(err) {
		done()
		return "", nil, err
	}
	return name, done, nil
}

// withoutCredentials is the address of a repository without what logs in there.
func withoutCredentials(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.User == nil || u.Host == "" {
		return profiles.MaskSecrets(remote)
	}
	if u.Scheme == "ssh" {
		u.User = url.User(u.User.Username())
	} else {
		u.User = nil
	}
	u.RawQuery = ""
	return profiles.MaskSecrets(u.String())
}
