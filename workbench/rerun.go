package workbench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/gitread"
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

// Goal is a goal with what doing a run again adds to it.
func (r *Rerun) Goal(g Goal) Goal {
	g.RerunOf = r.Run
	return g
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
func (w *Workbench) PlanRerun(ctx context.Context, run string, checkout bool) (*Rerun, error) {
	recipe, err := w.Recipe(run)
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
	let := w.gate.Own(p)
	if !checkout {
		if let, err = w.gate.Check(ctx, p); err != nil {
			return nil, err
		}
	}
	r := &Rerun{Run: run, Differs: []string{}}
	if was := recipe.ProfileHash; was != "" && fileHash(recipe.ProfilePath) != was {
		r.Differs = append(r.Differs, "the profile "+recipe.ProfilePath+" is not as it was; the one of then is used")
	}
	now, _ := gitState(ctx, p.CodeDir())
	differs := codeDiffers(recipe.Git, now)
	switch {
	case checkout && recipe.Git == nil:
		return nil, &event.Fault{What: "check out the code of run " + run, Node: -1, Why: "it is not known which commit it ran: " + strings.Join(recipe.Notes, "; "),
			Next: "leave --checkout out to use the code as it is now"}
	case checkout && len(differs) == 0:
		if let, err = w.gate.Check(ctx, p); err != nil {
			return nil, err
		}
	case checkout:
		if err := r.checkout(ctx, w, p.CodeDir(), recipe); err != nil {
			return nil, err
		}
		p.Code.Dir = filepath.Join(r.Checkout, filepath.FromSlash(recipe.Git.Prefix))
	default:
		r.Differs = append(r.Differs, differs...)
	}
	if recipe.Git != nil && recipe.Git.Partial {
		r.Differs = append(r.Differs, recipe.Notes...)
	}
	if r.Plan, err = w.planTrusted(ctx, let); err != nil {
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

// codeDiffers says in what the code now is not that of then.
func codeDiffers(then, now *GitState) []string {
	switch {
	case then == nil && now == nil:
		return []string{"the code is in no git repository: whether it is as it was can't be told"}
	case then == nil:
		return []string{"the code was in no git repository then: whether it is as it was can't be told"}
	case now == nil:
		return []string{"the code is in no git repository now; it was commit " + short(then.Commit)}
	}
	var differs []string
	if then.Commit != now.Commit {
		differs = append(differs, fmt.Sprintf("the commit is %s, and was %s", short(now.Commit), short(then.Commit)))
	}
	if then.DiffHash != now.DiffHash {
		differs = append(differs, fmt.Sprintf("not committed are %s, and were %s", orNone(now.diffText()), orNone(then.diffText())))
	}
	return differs
}

// checkout puts the code of a recipe into a directory of its own.
func (r *Rerun) checkout(ctx context.Context, w *Workbench, codeDir string, recipe Recipe) error {
	g := recipe.Git
	fail := func(err error) error {
		f := &event.Fault{What: "check out the code of run " + r.Run, Node: -1, Why: err.Error(), Next: "leave --checkout out to use the code as it is now"}
		if g.Remote != "" {
			f.Next = "git fetch " + g.Remote + " may bring commit " + short(g.Commit) + "; or " + f.Next
		}
		return errors.Join(f, r.Close())
	}
	parent := filepath.Join(w.dir, "worktrees")
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp(parent, r.Run+"-")
	if err != nil {
		return fail(err)
	}
	r.Checkout = dir
	w.checkouts.Store(dir, true)
	if err := r.fill(ctx, codeDir, g); err != nil {
		return fail(err)
	}
	return nil
}

// fill puts a commit into the directory of the checkout, with what was not
// committed on top.
func (r *Rerun) fill(ctx context.Context, codeDir string, g *GitState) error {
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

// CommandsByHand are the commands with which a person does a run again without
// its record: get the code, the packages and start the ranks.
func (r Recipe) CommandsByHand() []string {
	var lines []string
	if g := r.Git; g != nil {
		from := g.Remote
		if from == "" {
			from = r.CodeDir
		}
		lines = append(lines, "git clone "+shellword.Join(from)+" code && cd code", "git checkout "+g.Commit)
		if g.Diff != "" {
			lines = append(lines, "git apply uncommitted.diff")
		}
		if g.Prefix != "" {
			lines = append(lines, "cd "+shellword.Join(g.Prefix))
		}
	}
	if len(r.Packages) > 0 {
		lines = append(lines, "python3 -m venv .venv && .venv/bin/pip install -r requirements.lock")
	}
	seen := map[string]bool{}
	for _, rank := range r.Ranks {
		line := fmt.Sprintf("# node %d\n%s", rank.Node, r.rankByHand(rank))
		if !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	return slices.Clip(lines)
}

// rankByHand is the command of a rank without what dlwb puts around it. An
// engine without a launcher of its own leaves it to others to say who is who.
func (r Recipe) rankByHand(rank event.RankInfo) string {
	command := rank.Command
	if words, err := engine.Split(command); err == nil && len(words) > 3 && strings.HasSuffix(words[1], "/.dlwb/bin/rank") {
		command = engine.Join(words[3:])
	}
	if engine.HasLauncher(r.Engine) {
		return command
	}
	host := "127.0.0.1"
	if len(r.Machines) > 0 && !traits(r.Provider).SharedHost {
		host = r.Machines[0].Host
	}
	return fmt.Sprintf("RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d MASTER_ADDR=%s MASTER_PORT=29500 %s",
		rank.Rank, rank.LocalRank, len(r.Ranks), shellword.Join(host), command)
}
