package gitread

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
)

// Rules say what of the changes may be in a diff.
type Rules struct {
	// Secret reports whether a path, as seen from the top, is one of a file
	// that holds secrets.
	Secret func(path string) bool
	// NewMost is the size of the largest new file, NewCount their number.
	NewMost  int64
	NewCount int
}

// Changes is what of a directory is not committed.
type Changes struct {
	Dirty bool
	// Diff is what git apply takes, new files included. Hash tells changes
	// apart, those too that are not in the diff.
	Diff []byte
	Hash string
	// Left are what could not be put into the diff, as phrases.
	Left []string
}

// change is one line of git status. Its path is seen from the top.
type change struct {
	index, tree byte
	path        string
}

func (c change) isNew() bool { return c.index == '?' }

// excludesMost is how many paths can be kept out of a diff.
const excludesMost = 2000

// Changes works out what is not committed below the directory.
func (r *Repo) Changes(ctx context.Context, rules Rules) (Changes, error) {
	c := &comparison{repo: r, rules: rules, sum: sha256.New()}
	list, err := r.status(ctx)
	if err != nil {
		return Changes{Dirty: true}, err
	}
	if list, err = c.withoutFiltered(ctx, list); err != nil {
		return Changes{Dirty: true}, err
	}
	c.submodules(ctx)
	if c.Dirty = c.Dirty || len(list) > 0; !c.Dirty {
		return c.Changes, nil
	}
	if err := c.takeNew(ctx, list); err != nil {
		return c.Changes, err
	}
	return c.Changes, c.diff(ctx, list)
}

// comparison is one Changes under way.
type comparison struct {
	Changes
	repo    *Repo
	rules   Rules
	sum     hash.Hash // of what is not in the diff
	exclude []string  // paths
	aside   bool      // something went into sum
	more    int       // new files that are not named in Left
}

// status lists what differs from HEAD. Submodules are looked at by themselves:
// git would run itself in them, with their settings.
func (r *Repo) status(ctx context.Context) ([]change, error) {
	out, err := r.Git(ctx, nil, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all", "--", ".")
	if err != nil {
		return nil, err
	}
	var list []change
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if len(line) > 3 {
			list = append(list, change{line[0], line[1], line[3:]})
		}
	}
	return list, nil
}

// takeNew lets the diff know of the new files that may be in it.
func (c *comparison) takeNew(ctx context.Context, list []change) error {
	var added []string
	for _, f := range list {
		if !f.isNew() {
			continue
		}
		info, err := os.Lstat(filepath.Join(c.repo.top, filepath.FromSlash(f.path)))
		switch {
		case err != nil:
		case info.IsDir(): // a repository within this one
			c.leave(f.path)
		case c.rules.Secret(f.path), info.Size() > c.rules.NewMost, len(added) >= c.rules.NewCount:
			c.leave(f.path)
		default:
			added = append(added, f.path)
		}
	}
	if c.more > 0 {
		c.Left = append(c.Left, fmt.Sprintf("%d more new files", c.more))
	}
	if len(added) == 0 {
		return nil
	}
	args := append([]string{"--literal-pathspecs", "add", "--intent-to-add", "--"}, added...)
	if _, err := c.repo.run(ctx, c.repo.top, c.repo.environ(c.repo.top), nil, args...); err != nil {
		return fmt.Errorf("list the new files: %w", err)
	}
	return nil
}

// newNamed is how many new files that are left out are named.
const newNamed = 5

func (c *comparison) leave(path string) {
	if len(c.Left) >= newNamed {
		c.more++
		return
	}
	c.Left = append(c.Left, path)
}

// diff fills in the diff and its hash.
func (c *comparison) diff(ctx context.Context, list []change) error {
	for _, f := range list {
		if !f.isNew() && c.rules.Secret(f.path) {
			c.exclude = append(c.exclude, f.path)
			c.Left = append(c.Left, "changes of "+f.path)
		}
	}
	if len(c.exclude) > excludesMost {
		return fmt.Errorf("%d files are kept by filters or hold secrets, and %d are the most", len(c.exclude), excludesMost)
	}
	args := []string{"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-relative", "--ignore-submodules=all",
		"--src-prefix=a/", "--dst-prefix=b/", "--binary", "HEAD", "--", "."}
	for _, path := range c.exclude {
		args = append(args, ":(exclude,top,literal)"+path)
	}
	diff, err := c.repo.Git(ctx, nil, args...)
	if err != nil {
		return err
	}
	c.Diff = diff
	if c.aside {
		diff = c.sum.Sum(bytes.Clone(diff))
	}
	sum := sha256.Sum256(diff)
	c.Hash = hex.EncodeToString(sum[:6])
	return nil
}

// note puts something into the hash that is not in the diff.
func (c *comparison) note(path, state string) {
	c.aside = true
	_, _ = fmt.Fprintf(c.sum, "%q %q\n", path, state) // a hash takes all
}
