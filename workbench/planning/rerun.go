package planning

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/gitread"
	"github.com/dlwb/dlwb/workbench/history"
)

// Rerun is a run that is to be done again.
type Rerun struct {
	Run  string
	Plan *Plan
	// Differs says what is not as it was then. Packages are known only when
	// the run is launched: an event tells of them.
	Differs []string
	// Checkout is the directory that the code of then was put into; empty when
	// the code directory is used as it is.
	Checkout string
}

// Close removes what was checked out.
func (r *Rerun) Close() error {
	if r.Checkout == "" {
		return nil
	}
	err := os.RemoveAll(r.Checkout)
	r.Checkout = ""
	if err != nil {
		return fmt.Errorf("remove the checkout of run %s: %w", r.Run, err)
	}
	return nil
}

// PlanRerun plans a run once more from its recipe. With checkout the code is
// that of then: where the code directory differs, the commit is checked out
// into a directory of its own with what was not committed on top. Close it when
// the code is on the nodes.
func (m *Maker) PlanRerun(ctx context.Context, run string, checkout bool) (*Rerun, error) {
	recipe, err := m.owner.History.Recipe(run)
	if err != nil {
		return nil, err
	}
	if recipe.Profile == "" {
		return nil, &event.Fault{What: "do run " + run + " again", Node: -1, Why: "its profile is not on record"}
	}
	path := recipe.ProfilePath
	if path == "" {
		path = filepath.Join(recipe.CodeDir, profiles.FileName)
	}
	p, err := profiles.Parse(path, []byte(recipe.Profile))
	if err != nil {
		return nil, err
	}
	// With the code as it is now the profile must be trusted as it is now, before
	// git looks at that code. What is checked out is what ran then.
	let := m.owner.Gate.Own(p)
	if !checkout {
		if let, err = m.owner.Gate.Check(ctx, p); err != nil {
			return nil, err
		}
	}
	r := &Rerun{Run: run, Differs: []string{}}
	if was := recipe.ProfileHash; was != "" && FileHash(recipe.ProfilePath) != was {
		r.Differs = append(r.Differs, "the profile "+recipe.ProfilePath+" is not as it was; the one of then is used")
	}
	now, _ := history.ReadGit(ctx, p.CodeDir())
	differs := history.CodeDiffers(recipe.Git, now)
	switch {
	case checkout && recipe.Git == nil:
		return nil, &event.Fault{What: "check out the code of run " + run, Node: -1, Why: "it is not known which commit it ran: " + strings.Join(recipe.Notes, "; "),
			Next: "leave --checkout out to use the code as it is now"}
	case checkout && len(differs) == 0:
		if let, err = m.owner.Gate.Check(ctx, p); err != nil {
			return nil, err
		}
	case checkout:
		if err := r.checkout(ctx, m, p.CodeDir(), recipe); err != nil {
			return nil, err
		}
		p.Code.Dir = filepath.Join(r.Checkout, filepath.FromSlash(recipe.Git.Prefix))
	default:
		r.Differs = append(r.Differs, differs...)
	}
	if recipe.Git != nil && recipe.Git.Partial {
		r.Differs = append(r.Differs, recipe.Notes...)
	}
	if r.Plan, err = m.trusted(ctx, let); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	for _, name := range recipe.Secrets {
		if !slices.Contains(r.Plan.Secrets, name) {
			r.Differs = append(r.Differs, "the secret "+name+" was given to it by --secret, and is not now")
		}
	}
	if r.Plan.Engine != recipe.Engine && traits(recipe.Provider).SharedHost {
		r.Differs = append(r.Differs, fmt.Sprintf("the engine is %s, and was %s", r.Plan.Engine, recipe.Engine))
	}
	return r, nil
}

// checkout puts the code of a recipe into a directory of its own.
func (r *Rerun) checkout(ctx context.Context, m *Maker, codeDir string, recipe history.Recipe) error {
	g := recipe.Git
	fail := func(err error) error {
		f := &event.Fault{What: "check out the code of run " + r.Run, Node: -1, Why: err.Error(), Next: "leave --checkout out to use the code as it is now"}
		if g.Remote != "" {
			f.Next = "git fetch " + g.Remote + " may bring commit " + g.Short() + "; or " + f.Next
		}
		return errors.Join(f, r.Close())
	}
	parent := filepath.Join(m.owner.Dir, "worktrees")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp(parent, r.Run+"-")
	if err != nil {
		return fail(err)
	}
	r.Checkout = dir
	m.checkouts.Store(dir, true)
	if err := r.fill(ctx, codeDir, g); err != nil {
		return fail(err)
	}
	return nil
}

// fill puts a commit into the directory of the checkout, with what was not
// committed on top.
func (r *Rerun) fill(ctx context.Context, codeDir string, g *history.GitState) error {
	repo, err := gitread.Open(ctx, codeDir)
	if err != nil {
		return err
	}
	defer func() { _ = repo.Close() }()
	kept, err := repo.CheckOut(ctx, r.Checkout, g.Commit)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		r.Differs = append(r.Differs, fmt.Sprintf("%d files are kept by a filter of git (such as Git LFS), and are checked out as they are kept: %s",
			len(kept), strings.Join(kept[:min(3, len(kept))], ", ")))
	}
	if g.Diff == "" {
		return nil
	}
	out, err := gitread.Open(ctx, r.Checkout)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if err := out.Apply(ctx, []byte(g.Diff)); err != nil {
		return fmt.Errorf("what was not committed can't be applied: %w", err)
	}
	return nil
}
