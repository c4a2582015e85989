package workbench

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
	"github.com/dlwb/dlwb/workbench/nodefacts"
)

func (w *Workbench) putRecipe(run string, r history.Recipe) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return w.db.PutRecipe(run, b)
}

// recipeWait bounds how long a drive that is through waits for the recipe of
// its run.
const recipeWait = 15 * time.Second

// keepRecipe begins to write down how a run is made, while its ranks start. The
// code's state is read first, as it may change any moment.
func (d *drive) keepRecipe(run string, data runData, engine string) {
	r := d.recipe(data, engine)
	done := make(chan struct{})
	d.recorded = done
	link, w, s, dir := d.link, d.w, d.s, r.CodeDir
	s.run = run
	w.background(func(ctx context.Context) {
		defer close(done)
		git, notes := history.ReadGit(ctx, dir)
		r.Git, r.Notes = git, append(r.Notes, notes...)
		err := w.putRecipe(run, r)
		if err == nil {
			err = w.completeRecipe(ctx, link, s, r)
		}
		if err != nil {
			slog.Debug("recipe", "run", run, "error", err)
		}
	})
}

// recipe is what is known of a run when it is launched.
func (d *drive) recipe(data runData, engine string) history.Recipe {
	p, c := d.plan.Profile, d.data.Cluster
	r := history.Recipe{
		Profile: profiles.MaskSecrets(p.Source), ProfilePath: p.Path, ProfileHash: p.Hash(), Engine: engine, Command: p.Run.Command,
		Ranks: data.Ranks, CodeDir: d.plan.Code.Dir, Secrets: d.plan.Secrets, RerunOf: d.goal.RerunOf, Environment: d.plan.Environment,
		Provider: c.Provider, Region: c.Region, Zone: c.Zone, Instance: c.Instance, Spot: c.Spot, Image: p.Machines.Image,
		PricePerHour: c.PricePerHour, Costs: c.Costs, Packages: []string{}, Machines: []history.MachineFact{}, Notes: []string{},
	}
	if len(d.data.Envs) > 0 {
		e := d.data.Envs[0]
		r.Python, r.Torch = strings.TrimSpace(e.Version+" "+e.Python), e.Torch
	}
	if p.Source == "" {
		r.Profile = string(profiles.Write(p))
	}
	return r
}

// awaitRecipe waits for the recipe, but not for long.
func (d *drive) awaitRecipe(ctx context.Context) {
	if d.recorded == nil {
		return
	}
	select {
	case <-d.recorded:
	case <-time.After(d.recipeWait()):
	case <-ctx.Done():
	}
}

// recipeWait is how long the recipe is waited for: a node that was given up answers
// no question.
func (d *drive) recipeWait() time.Duration {
	if d.outcome.Ended != nil && len(d.outcome.Ended.Silent) > 0 {
		return time.Second / 2
	}
	return recipeWait
}

// completeRecipe asks the nodes for what only they know.
func (w *Workbench) completeRecipe(ctx context.Context, l *link, s scope, r history.Recipe) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	python := "python3"
	if i := strings.IndexByte(r.Python, ' '); i >= 0 {
		python = r.Python[i+1:]
	}
	facts := make([]nodefacts.Facts, len(l.nodes))
	_ = l.each(ctx, func(ctx context.Context, i int, n *remote.Node) error {
		facts[i] = nodefacts.Ask(ctx, n, python)
		return nil
	})
	for i := range facts {
		facts[i].Machine.Node, facts[i].Machine.Name = i, l.cluster.Nodes[i].Name
	}
	nodefacts.Complete(&r, facts)
	if err := w.putRecipe(s.run, r); err != nil {
		return err
	}
	return w.tellRerun(s, r)
}

// tellRerun says in what packages a run that is done again differs from the
// first: these are known only now.
func (w *Workbench) tellRerun(s scope, r history.Recipe) error {
	if r.RerunOf == "" || !r.Complete {
		return nil
	}
	old, err := w.history.Recipe(r.RerunOf)
	if err != nil || !old.Complete || slices.Equal(old.Packages, r.Packages) {
		return err
	}
	return w.publish(s, event.Noticed{Level: "warning", Text: "packages are not as they were in run " + r.RerunOf + ": " + history.PackageNews(old.Packages, r.Packages, 8)})
}

// resumeRecipe asks the nodes where the dlwb that launched the run could not.
func (w *Workbench) resumeRecipe(l *link, s scope) {
	r, err := w.history.Recipe(s.run)
	if err != nil || r.Complete || r.Profile == "" {
		return
	}
	w.background(func(ctx context.Context) { _ = w.completeRecipe(ctx, l, s, r) })
}
