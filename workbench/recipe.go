package workbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/store"
	"github.com/dlwb/dlwb/workbench/event"
)

// Recipe is how a run was made: enough to do it again, and to say what differs
// when it is. What could not be found out is missing, and Notes say why. It
// holds no secret: values that came from the environment are references.
type Recipe struct {
	Profile     string           `json:"profile"` // its text
	ProfilePath string           `json:"profile_path,omitempty"`
	ProfileHash string           `json:"profile_hash"`
	Engine      string           `json:"engine"`
	Command     string           `json:"command"`
	Ranks       []event.RankInfo `json:"ranks"`
	CodeDir     string           `json:"code_dir"`
	// Secrets are the names of variables that were given by --secret.
	Secrets []string  `json:"secrets,omitempty"`
	Git     *GitState `json:"git"` // null: the code is in no git repository
	// RerunOf is the run that this one does again.
	RerunOf string `json:"rerun_of,omitempty"`

	Python      string   `json:"python"`
	Environment string   `json:"environment"`
	Packages    []string `json:"packages"` // "torch==2.4.0", sorted; of node 0
	Torch       string   `json:"torch,omitempty"`
	CUDA        string   `json:"cuda,omitempty"` // that PyTorch was built for

	Provider     string        `json:"provider"`
	Region       string        `json:"region,omitempty"`
	Zone         string        `json:"zone,omitempty"`
	Instance     string        `json:"instance_type,omitempty"`
	Image        string        `json:"image,omitempty"`
	Spot         bool          `json:"spot,omitempty"`
	PricePerHour float64       `json:"price_per_hour"`
	Costs        []cloud.Cost  `json:"costs,omitempty"`
	Machines     []MachineFact `json:"machines"`

	Notes []string `json:"notes"`
	// Complete is set when the nodes were asked.
	Complete bool `json:"complete"`
}

// MachineFact is what is known of one node.
type MachineFact struct {
	Node   int      `json:"node"`
	Name   string   `json:"name"`
	Host   string   `json:"host,omitempty"`
	System string   `json:"system,omitempty"`
	Kernel string   `json:"kernel,omitempty"`
	Cores  int      `json:"cores,omitempty"`
	Memory int64    `json:"memory,omitempty"` // bytes
	GPUs   []string `json:"gpus"`
	Driver string   `json:"driver,omitempty"`
	CUDA   string   `json:"cuda,omitempty"` // the newest that the driver can
}

// Recipe returns how a run was made. Of a run of a dlwb that kept no recipes,
// what else is on record of it is there.
func (w *Workbench) Recipe(run string) (Recipe, error) {
	var r Recipe
	b, err := w.db.Recipe(run)
	if err == nil {
		err = json.Unmarshal(b, &r)
		return r, err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	row, data, err := w.runRecord(run)
	if err != nil {
		return r, err
	}
	r = Recipe{Engine: row.Engine, Command: row.Command, Ranks: data.Ranks, Python: data.Python, Packages: []string{}, Machines: []MachineFact{}}
	r.Notes = []string{"this run was made by a dlwb that kept no recipes: its code and packages are not known"}
	if c, err := w.db.ClusterLife(row.Life); err == nil {
		r.Profile, r.ProfilePath, r.Provider, r.PricePerHour = c.ProfileSource, c.ProfilePath, c.Provider, c.PricePerHour
	}
	return r, nil
}

func (w *Workbench) putRecipe(run string, r Recipe) error {
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
		git, notes := gitState(ctx, dir)
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
func (d *drive) recipe(data runData, engine string) Recipe {
	p, c := d.plan.Profile, d.data.Cluster
	r := Recipe{
		Profile: profiles.MaskSecrets(p.Source), ProfilePath: p.Path, ProfileHash: p.Hash(), Engine: engine, Command: p.Run.Command,
		Ranks: data.Ranks, CodeDir: d.plan.Code.Dir, Secrets: d.plan.Secrets, RerunOf: d.goal.RerunOf, Environment: d.plan.Environment,
		Provider: c.Provider, Region: c.Region, Zone: c.Zone, Instance: c.Instance, Spot: c.Spot, Image: p.Machines.Image,
		PricePerHour: c.PricePerHour, Costs: c.Costs, Packages: []string{}, Machines: []MachineFact{}, Notes: []string{},
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
	case <-time.After(recipeWait):
	case <-ctx.Done():
	}
}

// completeRecipe asks the nodes for what only they know.
func (w *Workbench) completeRecipe(ctx context.Context, l *link, s scope, r Recipe) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	python := "python3"
	if i := strings.IndexByte(r.Python, ' '); i >= 0 {
		python = r.Python[i+1:]
	}
	r.Machines = make([]MachineFact, len(l.nodes))
	facts := make([]nodeFacts, len(l.nodes))
	_ = l.each(ctx, func(ctx context.Context, i int, _ *remoteNode) error {
		facts[i] = askNode(ctx, l, i, python)
		return nil
	})
	for i, f := range facts {
		f.machine.Node, f.machine.Name = i, l.cluster.Nodes[i].Name
		r.Machines[i] = f.machine
		if f.err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("node%d could not be asked: %v", i, f.err))
		}
	}
	first := facts[0]
	if first.err == nil {
		r.Complete = true
		r.Packages = first.packages
		if first.image != "" {
			r.Image = first.image
		}
		if first.torch != "" {
			r.Torch, r.CUDA = first.torch, first.cuda
		}
		for i, f := range facts[1:] {
			if f.err == nil && !slices.Equal(f.packages, first.packages) {
				r.Notes = append(r.Notes, fmt.Sprintf("node%d has other packages than node0: %s", i+1, packageNews(first.packages, f.packages, 3)))
			}
		}
	}
	if err := w.putRecipe(s.run, r); err != nil {
		return err
	}
	return w.tellRerun(s, r)
}

// tellRerun says in what packages a run that is done again differs from the
// first: these are known only now.
func (w *Workbench) tellRerun(s scope, r Recipe) error {
	if r.RerunOf == "" || !r.Complete {
		return nil
	}
	old, err := w.Recipe(r.RerunOf)
	if err != nil || !old.Complete || slices.Equal(old.Packages, r.Packages) {
		return err
	}
	return w.publish(s, event.Noticed{Level: "warning", Text: "packages are not as they were in run " + r.RerunOf + ": " + packageNews(old.Packages, r.Packages, 8)})
}

// resumeRecipe asks the nodes where the dlwb that launched the run could not.
func (w *Workbench) resumeRecipe(l *link, s scope) {
	r, err := w.Recipe(s.run)
	if err != nil || r.Complete || r.Profile == "" {
		return
	}
	w.background(func(ctx context.Context) { _ = w.completeRecipe(ctx, l, s, r) })
}

// packageNews says what differs between two lists of packages, in a few words.
func packageNews(before, after []string, most int) string {
	var said []string
	for _, d := range packageDiff(before, after) {
		said = append(said, d[0]+" "+orNone(d[1])+" → "+orNone(d[2]))
	}
	if len(said) > most {
		said = append(said[:most], fmt.Sprintf("and %d more", len(said)-most))
	}
	return strings.Join(said, ", ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// packageDiff lists name, version before and version after of what differs, by
// name; an empty version means that it was not there.
func packageDiff(before, after []string) [][3]string {
	versions := func(list []string) map[string]string {
		m := map[string]string{}
		for _, p := range list {
			name, version := packageParts(p)
			m[name] = version
		}
		return m
	}
	a, b := versions(before), versions(after)
	var diff [][3]string
	for name, v := range a {
		if b[name] != v {
			diff = append(diff, [3]string{name, v, b[name]})
		}
	}
	for name, v := range b {
		if _, ok := a[name]; !ok {
			diff = append(diff, [3]string{name, "", v})
		}
	}
	slices.SortFunc(diff, func(x, y [3]string) int { return strings.Compare(x[0], y[0]) })
	return diff
}

// packageParts takes a line of pip freeze apart: torch==2.4.0, or
// name @ git+https://….
func packageParts(line string) (name, version string) {
	if name, version, ok := strings.Cut(line, "=="); ok {
		return name, version
	}
	name, version, _ = strings.Cut(line, " @ ")
	return name, version
}

// fileHash says whether a profile is still as it was; "" when it is not there.
func fileHash(path string) string {
	b, err := plainfile.Read(path, profiles.MaxSize)
	if err != nil {
		return ""
	}
	return (&profiles.Profile{Path: path, Source: string(b)}).Hash()
}
