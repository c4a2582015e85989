package gitread

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

const (
	// filteredMost is how many files that are kept by a filter are compared,
	// and filteredBytes how much of them is read.
	filteredMost  = 200
	filteredBytes = 4 << 30
)

// withoutFiltered takes the files that a repository keeps by a filter out of a
// list of changes: git would have to run the filter to compare them. Those of
// Git LFS are compared without it, by what their pointers say.
func (c *comparison) withoutFiltered(ctx context.Context, list []change) (rest []change, err error) {
	filters, err := c.repo.filters(ctx, list)
	if err != nil || len(filters) == 0 {
		return list, err
	}
	read, compared := int64(0), 0
	for _, f := range list {
		name := filepath.Join(c.repo.top, filepath.FromSlash(f.path))
		info, err := os.Lstat(name)
		filter := filters[f.path]
		if filter == "" || err != nil || !info.Mode().IsRegular() {
			rest = append(rest, f)
			continue
		}
		c.exclude = append(c.exclude, f.path)
		if read, compared = read+info.Size(), compared+1; read > filteredBytes || compared > filteredMost {
			c.filtered(f, filter, fmt.Sprint(info.Size(), info.ModTime()))
			continue
		}
		sum, err := fileSum(name)
		if err != nil {
			return nil, err
		}
		if filter == "lfs" && c.repo.pointsAt(ctx, f.path, sum) {
			continue // only its time has changed
		}
		c.filtered(f, filter, sum)
	}
	return rest, nil
}

// filtered records a file that is not in the diff because of a filter.
func (c *comparison) filtered(f change, filter, state string) {
	c.Dirty = true
	c.note(f.path, state)
	if f.isNew() || filter == "lfs" {
		c.Left = append(c.Left, fmt.Sprintf("%s (kept by the filter %s)", f.path, filter))
		return
	}
	c.Left = append(c.Left, fmt.Sprintf("%s (it may be unchanged: git compares it by the filter %s, which is not run)", f.path, filter))
}

// filters are the filters that the attributes of files name, by path.
func (r *Repo) filters(ctx context.Context, list []change) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var paths strings.Builder
	for _, f := range list {
		paths.WriteString(f.path + "\x00")
	}
	out, err := r.run(ctx, r.top, r.environ(r.top), []byte(paths.String()), "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	words := strings.Split(string(out), "\x00")
	for i := 0; i+2 < len(words); i += 3 {
		switch words[i+2] {
		case "unspecified", "unset", "set", "":
		default:
			found[words[i]] = words[i+2]
		}
	}
	return found, nil
}

var pointerForm = pattern.New(`^version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize [0-9]+\n?$`)

// pointsAt reports whether the committed pointer of Git LFS is that of a
// file's content.
func (r *Repo) pointsAt(ctx context.Context, path, sum string) bool {
	pointer, err := r.Git(ctx, nil, "cat-file", "blob", r.Commit+":"+path)
	m := pointerForm.FindSubmatch(pointer)
	return err == nil && m != nil && string(m[1]) == sum
}

func fileSum(name string) (string, error) {
	f, err := openRegular(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// submodulesMost is how many submodules are looked at.
const submodulesMost = 50

// submodules compares the submodules with the commits that are recorded of
// them, each by a Repo of its own. What is in them is in no diff.
func (c *comparison) submodules(ctx context.Context) {
	out, err := c.repo.Git(ctx, nil, "ls-files", "--stage", "-z", "--full-name", "--", ".")
	if err != nil {
		c.Left = append(c.Left, "submodules ("+err.Error()+")")
		return
	}
	seen := 0
	for line := range strings.SplitSeq(string(out), "\x00") {
		// "160000 COMMIT 0\tPATH"
		head, path, _ := strings.Cut(line, "\t")
		words := strings.Fields(head)
		if len(words) != 3 || words[0] != "160000" {
			continue
		}
		if seen++; seen > submodulesMost {
			c.Left = append(c.Left, "more submodules")
			return
		}
		c.submodule(ctx, path, words[1])
	}
}

func (c *comparison) submodule(ctx context.Context, path, want string) {
	dir := filepath.Join(c.repo.top, filepath.FromSlash(path))
	at, err := filepath.EvalSymlinks(dir)
	if err != nil || at != dir {
		return // it is not there, or a link was put in its place, which is a change of its own
	}
	found, err := placeAt(dir)
	if err == ErrNone {
		return // not checked out
	}
	var sub *Repo
	if err == nil {
		sub, err = found.open(ctx, dir)
	}
	if err != nil {
		c.Left = append(c.Left, "the submodule "+path+" ("+err.Error()+")")
		return
	}
	defer func() { _ = sub.Close() }()
	list, err := sub.status(ctx)
	if sub.Commit == want && len(list) == 0 && err == nil {
		return
	}
	c.Dirty = true
	state := "has changes of its own"
	switch {
	case err != nil:
		state = "could not be compared: " + err.Error()
	case sub.Commit != want:
		state = "is at " + sub.Commit[:7] + ", and " + want[:7] + " is recorded"
	}
	c.note(path, fmt.Sprint(sub.Commit, list))
	c.Left = append(c.Left, "the submodule "+path+" ("+state+")")
}
