package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
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
func (h *History) Recipe(run string) (Recipe, error) {
	var r Recipe
	b, err := h.db.Recipe(run)
	if err == nil {
		err = json.Unmarshal(b, &r)
		return r, err
	}
	if !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	was, err := h.records.Run(run)
	if err != nil {
		return r, err
	}
	r = Recipe{Engine: was.Engine, Command: was.Command, Ranks: was.Ranks, Python: was.Python, Packages: []string{}, Machines: []MachineFact{}}
	r.Notes = []string{"this run was made by a dlwb that kept no recipes: its code and packages are not known"}
	if c, err := h.db.ClusterLife(was.Life); err == nil {
		r.Profile, r.ProfilePath, r.Provider, r.PricePerHour = c.ProfileSource, c.ProfilePath, c.Provider, c.PricePerHour
	}
	return r, nil
}

// PackageNews says what differs between two lists of packages, in a few words.
func PackageNews(before, after []string, most int) string {
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
