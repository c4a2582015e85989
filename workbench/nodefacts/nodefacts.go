// Package nodefacts asks a node what it is and which packages its Python has, for the
// record of a run.
package nodefacts

import (
	"context"
	_ "embed" // the program
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/wire"
	"github.com/dlwb/dlwb/workbench/history"
)

//go:embed scripts/packages.py
var packagesProgram string

// Facts is what a node told of itself.
type Facts struct {
	Machine     history.MachineFact
	Packages    []string
	Torch, CUDA string // versions; empty where there is none
	Image       string // of the machine, where it was made from one
	Err         error  // what could not be asked or read; the rest holds
}

// factsLimit bounds the question to a node.
const factsLimit = 60 * time.Second

// mostPackages and longestFact bound what a node may tell.
const (
	mostPackages = 5000
	longestFact  = 300
)

// Ask asks a node for its machine and its packages.
func Ask(ctx context.Context, n *remote.Node, python string) Facts {
	ctx, cancel := context.WithTimeout(ctx, factsLimit)
	defer cancel()
	told, err := n.Facts(ctx)
	if err != nil {
		return Facts{Err: err, Machine: history.MachineFact{GPUs: []string{}}}
	}
	f := read(told)
	res, err := n.Exec(ctx, remote.Cmd{Line: "exec " + shellword.Join(python) + " -", Stdin: strings.NewReader(packagesProgram)})
	switch {
	case err != nil:
		f.Err = err
	case res.ExitCode == 0: // else there is no such Python
		f.python(res.Stdout)
	}
	return f
}

// Complete writes into a recipe what the nodes of a run have told, node 0 first. Its
// packages are those of node 0; a node that has others is noted.
func Complete(r *history.Recipe, facts []Facts) {
	r.Machines = make([]history.MachineFact, len(facts))
	for i, f := range facts {
		r.Machines[i] = f.Machine
		if f.Err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("node%d could not be asked: %v", i, f.Err))
		}
	}
	first := facts[0]
	if first.Err != nil {
		return
	}
	r.Complete, r.Packages = true, first.Packages
	if first.Image != "" {
		r.Image = first.Image
	}
	if first.Torch != "" {
		r.Torch, r.CUDA = first.Torch, first.CUDA
	}
	for i, f := range facts[1:] {
		if f.Err == nil && !slices.Equal(f.Packages, first.Packages) {
			r.Notes = append(r.Notes, fmt.Sprintf("node%d has other packages than node0: %s", i+1, history.PackageNews(first.Packages, f.Packages, 3)))
		}
	}
}

// read bounds what a node told of its machine.
func read(told wire.NodeFacts) Facts {
	f := Facts{Image: brief(told.Image), Packages: []string{}, Machine: history.MachineFact{
		Host: brief(told.Host), Kernel: brief(told.Kernel), System: brief(told.System), Cores: told.Cores,
		Memory: told.Memory, Driver: brief(told.Driver), CUDA: brief(told.CUDA), GPUs: []string{}}}
	for _, gpu := range told.GPUs[:min(len(told.GPUs), 64)] {
		f.Machine.GPUs = append(f.Machine.GPUs, brief(gpu))
	}
	return f
}

func brief(fact string) string { return fact[:min(len(fact), longestFact)] }

// python reads the packages, which come as one line of JSON.
func (f *Facts) python(text []byte) {
	var said struct {
		Packages    []string
		Torch, CUDA string
	}
	if err := json.Unmarshal(text, &said); err != nil {
		f.Err = fmt.Errorf("its Python's packages can't be read: %w", err)
		return
	}
	for _, p := range said.Packages[:min(len(said.Packages), mostPackages)] {
		f.Packages = append(f.Packages, brief(p))
	}
	slices.SortFunc(f.Packages, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	f.Packages = slices.Compact(f.Packages)
	f.Torch, f.CUDA = said.Torch, said.CUDA
}
