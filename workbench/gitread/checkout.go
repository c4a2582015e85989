package gitread

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CheckOut makes a working tree of a commit in an empty directory: a repository
// of its own that takes its objects from this one. Of filters it knows none, so
// what they keep (such as files of Git LFS) is there as it is kept; these paths
// are returned.
func (r *Repo) CheckOut(ctx context.Context, dir, commit string) (kept []string, err error) {
	if !hashForm.MatchString(commit) {
		return nil, fmt.Errorf("%q names no commit", commit)
	}
	if _, err := r.Git(ctx, nil, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return nil, fmt.Errorf("commit %s is not in the repository", commit)
	}
	at, err := r.clone(dir, commit)
	if err != nil {
		return nil, err
	}
	// The clone's own settings are ours, and the environment sees to it that
	// no others are read.
	if _, err := at.run(ctx, dir, at.environ(dir), nil, "read-tree", "--reset", "-u", commit); err != nil {
		return nil, err
	}
	return at.keptByFilters(ctx)
}

// clone makes a git directory in a directory, with the objects of this one.
func (r *Repo) clone(dir, commit string) (*Repo, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	own := filepath.Join(dir, ".git")
	for _, name := range []string{own, filepath.Join(own, "objects"), filepath.Join(own, "objects", "info"), filepath.Join(own, "refs"), filepath.Join(own, "home")} {
		if err := os.Mkdir(name, 0o700); err != nil {
			return nil, err
		}
	}
	settings, err := os.ReadFile(filepath.Join(r.own, "config"))
	if err != nil {
		return nil, err
	}
	text := string(settings)
	if r.Remote != "" {
		text += "[remote \"origin\"]\n\turl = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(r.Remote) + "\"\n"
	}
	objects := filepath.Join(r.common, "objects")
	if strings.Contains(objects, "\n") {
		return nil, errors.New("the repository's path has a line break")
	}
	for name, content := range map[string]string{"HEAD": commit + "\n", "config": text, filepath.Join("objects", "info", "alternates"): objects + "\n"} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	p := place{top: dir, dir: own, common: own}
	return &Repo{place: p, Commit: commit, work: dir, own: own}, nil
}

// keptByFilters lists the files of a commit that are there as a filter keeps
// them.
func (r *Repo) keptByFilters(ctx context.Context) ([]string, error) {
	out, err := r.Git(ctx, nil, "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	var list []change
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if path != "" {
			list = append(list, change{path: path})
		}
	}
	filters, err := r.filters(ctx, list)
	var kept []string
	for _, f := range list {
		if filters[f.path] != "" {
			kept = append(kept, f.path)
		}
	}
	return kept, err
}

// Apply puts a diff of Changes on top of what is in the directory.
func (r *Repo) Apply(ctx context.Context, diff []byte) error {
	_, err := r.Git(ctx, diff, "apply", "--binary", "--whitespace=nowarn", "-")
	return err
}
