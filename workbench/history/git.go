package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/gitread"
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
	// longestDiff bounds the diff that is kept.
	longestDiff = 2 << 20
	// A new file longer than this, or more than so many, are not in a diff.
	longestNew, mostNew = 256 << 10, 300
)

// ReadGit reads the state of a code directory. It changes nothing there, and
// runs nothing that the repository's settings name.
func ReadGit(ctx context.Context, dir string) (*GitState, []string) {
	repo, err := gitread.Open(ctx, dir)
	switch {
	case errors.Is(err, gitread.ErrNone):
		return nil, []string{"the code is in no git repository (" + err.Error() + "): only its profile can tell what ran"}
	case err != nil:
		return nil, []string{"the git repository of the code could not be read: " + err.Error()}
	}
	defer func() { _ = repo.Close() }()
	g := &GitState{Commit: repo.Commit, Branch: repo.Branch, Prefix: repo.Prefix, Remote: withoutCredentials(repo.Remote)}
	return g, g.uncommitted(ctx, repo)
}

// uncommitted fills in what is not committed below the code directory.
func (g *GitState) uncommitted(ctx context.Context, repo *gitread.Repo) (notes []string) {
	changes, err := repo.Changes(ctx, gitread.Rules{Secret: looksSecret, NewMost: longestNew, NewCount: mostNew})
	g.Dirty = changes.Dirty
	if err != nil {
		g.Partial = true
		return []string{"what was not committed could not be read: " + err.Error()}
	}
	diff, left := changes.Diff, changes.Left
	g.DiffHash = changes.Hash
	if len(diff) > longestDiff {
		left = append(left, fmt.Sprintf("the rest of a diff of %s", units.Bytes(int64(len(diff)))))
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

func looksSecret(file string) bool { return secretfile.ByName(file) != "" }

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

// CodeDiffers says in what the code now is not that of then.
func CodeDiffers(then, now *GitState) []string {
	switch {
	case then == nil && now == nil:
		return []string{"the code is in no git repository: whether it is as it was can't be told"}
	case then == nil:
		return []string{"the code was in no git repository then: whether it is as it was can't be told"}
	case now == nil:
		return []string{"the code is in no git repository now; it was commit " + then.Short()}
	}
	var differs []string
	if then.Commit != now.Commit {
		differs = append(differs, fmt.Sprintf("the commit is %s, and was %s", now.Short(), then.Short()))
	}
	if then.DiffHash != now.DiffHash {
		differs = append(differs, fmt.Sprintf("not committed are %s, and were %s", orNone(now.diffText()), orNone(then.diffText())))
	}
	return differs
}
